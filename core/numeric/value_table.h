// Replaces each uint8 of a tensor by a value from a table. The tensor may come in pieces. If the
// rule is a multiplication and an addition, use normalise.h instead.
//
// Thread-compatible.
#ifndef SYSTOLE_CORE_NUMERIC_VALUE_TABLE_H_
#define SYSTOLE_CORE_NUMERIC_VALUE_TABLE_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "core/numeric/normalise.h"

namespace systole {

// Entries of a channel: one for each value of a uint8.
inline constexpr int kTableEntries = 256;
// The tables of 8 channels take 8 KiB in a serialised spec, and up to 8 KiB of the first-level
// cache.
inline constexpr int kMaxTableChannels = 8;

class ValueTable {
 public:
  // `entries` has either kTableEntries entries that serve all channels, or kTableEntries entries
  // for each channel, one channel after the other. Each entry is cast to `type` once, as in
  // normalise.h. Every NaN becomes CanonicalNan(). Value i of the tensor belongs to channel (i /
  // inner) mod channels, as for TensorNormaliser.
  //   InvalidArgument  `entries` has another size; inner < 1; `type` is kUint8.
  static absl::StatusOr<ValueTable> Create(absl::Span<const float> entries, int64_t inner,
                                           PixelType type);

  // Looks up the values first .. first + in.size() - 1 of the tensor and writes the results to
  // `out`: in.size() * PixelTypeBytes(type) bytes at any alignment, which must not overlap `in`.
  void Apply(int64_t first, absl::Span<const uint8_t> in, uint8_t* out) const;

 private:
  ValueTable() = default;
  // Apply() with entries of type Entry, which is as wide as the output values.
  template <typename Entry>
  void ApplyAs(const std::vector<Entry>& entries, int64_t first, absl::Span<const uint8_t> in,
               uint8_t* out) const;

  int64_t channels_ = 1;
  int64_t inner_ = 1;
  // Either narrow_ or wide_ holds all entries, in the output's type. The other vector is empty.
  std::vector<uint16_t> narrow_;
  std::vector<uint32_t> wide_;
};

}  // namespace systole

#endif  // SYSTOLE_CORE_NUMERIC_VALUE_TABLE_H_
