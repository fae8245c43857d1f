// The reference implementation of three kinds of steps together: decode_jpeg { scale: AUTO }, the
// crops after it, and the resize after the crops. They are one operation, because the scale of
// decode_jpeg depends on the crops and the resize.
//
// Thread-compatible; immutable.
#ifndef SYSTOLE_CORE_OPERATIONS_OPS_SCALED_DECODING_H_
#define SYSTOLE_CORE_OPERATIONS_OPS_SCALED_DECODING_H_

#include <cstddef>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "core/operations/ops/image_window.h"
#include "core/operations/ops/operation.h"

namespace systole {

class ScaledDecoding {
 public:
  // The operation that replaces the first operations of a program. Nullopt unless `operations`
  // begins with decode_jpeg { scale: AUTO }, any number of crops, and a resize whose
  // Operation::Parts() is not empty.
  static std::optional<ScaledDecoding> Create(absl::Span<const Operation* const> operations);

  // How many operations of the program this operation replaces: 2 or more.
  size_t num_operations() const { return num_operations_; }

  // Makes float32 [height, width, channels], the result of the resize.
  // Errors: those of the replaced operations.
  absl::StatusOr<Value> Apply(absl::string_view jpeg, const ExampleKey& example) const;

 private:
  ScaledDecoding() = default;

  size_t num_operations_ = 0;
  JpegDecoderOptions jpeg_;
  std::vector<Move> windows_;
  ResizePart resize_;
};

}  // namespace systole

#endif  // SYSTOLE_CORE_OPERATIONS_OPS_SCALED_DECODING_H_
