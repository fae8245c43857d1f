// Many short texts, one after the other in one piece of memory.
#ifndef SYSTOLE_CORE_RECORD_IMAGES_PACKED_TEXTS_H_
#define SYSTOLE_CORE_RECORD_IMAGES_PACKED_TEXTS_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"

namespace systole {

// Thread-compatible value type.
class PackedTexts {
 public:
  void Add(absl::string_view text) {
    bytes_.append(text.data(), text.size());
    ends_.push_back(bytes_.size());
  }

  size_t size() const { return ends_.size(); }
  // A view, valid until the next Add(). REQUIRES: i < size().
  absl::string_view operator[](size_t i) const {
    const uint64_t begin = i == 0 ? 0 : ends_[i - 1];
    return absl::string_view(bytes_).substr(begin, ends_[i] - begin);
  }

 private:
  std::string bytes_;
  std::vector<uint64_t> ends_;
};

}  // namespace systole

#endif  // SYSTOLE_CORE_RECORD_IMAGES_PACKED_TEXTS_H_
