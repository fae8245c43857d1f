// Converts values to the bytes that a cache keeps, and back. A finished example is kept as it is
// fed, but before its layout is applied. An image is kept as its values. If its size depends on the
// record, height, width and channels come first, in 4 bytes each.
//
// Thread-safe: no state.
#ifndef SYSTOLE_CORE_ENGINE_KEPT_BYTES_H_
#define SYSTOLE_CORE_ENGINE_KEPT_BYTES_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "core/image/jpeg/jpeg_decoder.h"
#include "core/operations/ops/value.h"
#include "core/plan/output_plan.h"

namespace systole {

struct KeptImage {
  std::vector<int64_t> shape;
  absl::string_view values;
};

// The bytes of a kept image of type `type`, approximately: operations between the decode and the
// image are ignored.
int64_t KeptBytes(const ImageInfo& decoded, ValueType type);

// The bytes that are kept for `image`. `type` is one type for the images of all records, so it may
// leave the size open.
std::string ToKept(const Value& image, const ValueType& type);

// The image in `kept`, which is borrowed. Nullopt if it is not such an image.
std::optional<KeptImage> ParseKept(absl::string_view kept, const ValueType& type);

// Whether `kept` is a value of this form. A file on disk may hold anything.
bool IsKept(absl::string_view kept, const KeptForm& form);

}  // namespace systole

#endif  // SYSTOLE_CORE_ENGINE_KEPT_BYTES_H_
