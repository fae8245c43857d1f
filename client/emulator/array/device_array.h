// A piece of an emulated core's memory: a zeroed array on a 64-byte boundary. It has kArraySlack
// elements after its end, so that vector loops need no scalar tail. Any code may read these
// additional elements, and the array's owner may write them.
//
// Thread-compatible. A DeviceArray owns its memory. It can be moved but not copied. The trainer
// compares the sum of all sizes with its memory limit before it makes any array.
#ifndef SYSTOLE_CLIENT_EMULATOR_ARRAY_DEVICE_ARRAY_H_
#define SYSTOLE_CLIENT_EMULATOR_ARRAY_DEVICE_ARRAY_H_

#include <algorithm>
#include <cstdint>
#include <memory>
#include <new>
#include <type_traits>

#include "absl/types/span.h"

namespace systole::emulator {

// The number of elements that every DeviceArray has after its end. The widest vector has fewer
// elements.
inline constexpr int64_t kArraySlack = 64;

template <typename T>
class DeviceArray {
  static_assert(std::is_trivially_copyable_v<T>);

 public:
  DeviceArray() = default;
  explicit DeviceArray(int64_t size)
      : data_(static_cast<T*>(
            ::operator new(static_cast<size_t>(size + kArraySlack) * sizeof(T), kAlignment))),
        size_(size) {
    std::fill_n(data_.get(), size + kArraySlack, T{});
  }

  T* data() { return data_.get(); }
  const T* data() const { return data_.get(); }
  int64_t size() const { return size_; }
  T& operator[](int64_t i) { return data_[i]; }
  const T& operator[](int64_t i) const { return data_[i]; }
  absl::Span<T> span() { return absl::MakeSpan(data_.get(), static_cast<size_t>(size_)); }
  absl::Span<const T> span() const {
    return absl::MakeConstSpan(data_.get(), static_cast<size_t>(size_));
  }

 private:
  static constexpr std::align_val_t kAlignment{64};
  struct Delete {
    void operator()(T* p) const { ::operator delete(p, kAlignment); }
  };
  std::unique_ptr<T[], Delete> data_;
  int64_t size_ = 0;
};

}  // namespace systole::emulator

#endif  // SYSTOLE_CLIENT_EMULATOR_ARRAY_DEVICE_ARRAY_H_
