// Converts values to the bytes that a cache keeps, and back. A finished example is kept with the
// values that are fed, but not yet in the layout of its output. An image is kept as its values. If
// the image's size depends on the record, 12 bytes come before the values: height, width and
// channels, 4 bytes each.
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

// About how many bytes a kept image of type `type` takes. Operations between the decode and the
// kept image are ignored.
int64_t KeptBytes(const ImageInfo& decoded, ValueType type);

// The bytes that are kept for `image`. `type` describes the images of all records, so its shape may
// leave the size open.
std::string ToKept(const Value& image, const ValueType& type);

// The image in `kept`, which is borrowed. Nullopt if `kept` is not an image of this type.
std::optional<KeptImage> ParseKept(absl::string_view kept, const ValueType& type);

// Whether `kept` is a value of this form. Check this for bytes from disk, which may be anything.
bool IsKept(absl::string_view kept, const KeptForm& form);

}  // namespace systole

#endif  // SYSTOLE_CORE_ENGINE_KEPT_BYTES_H_
