// Merges crops and mirrors. Any number of them make one window of the image, mirrored or not. So a
// decoder can decode only this window.
//
//   image   crop   flip   crop            image   window   mirror
//     '-------'------'------'       =       '-------'---------'
//
// Thread-safe: no state.
#ifndef SYSTOLE_CORE_OPERATIONS_OPS_IMAGE_WINDOW_H_
#define SYSTOLE_CORE_OPERATIONS_OPS_IMAGE_WINDOW_H_

#include <variant>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "core/image/window/crop.h"
#include "core/operations/ops/operation.h"

namespace systole {

// A part of an operation that moves pixels and computes none.
using Move = std::variant<WindowPart, MirrorPart>;

struct ImageWindow {
  CropRect rect;          // A part of the image.
  bool mirrored = false;  // Whether the result is the mirrored part.
};

// The window that the moves, one after the other, make of an image of height x width pixels.
//   DataLoss  a window does not fit into the image.
absl::StatusOr<ImageWindow> WindowOf(absl::Span<const Move> moves, int height, int width,
                                     const ExampleKey& example);

}  // namespace systole

#endif  // SYSTOLE_CORE_OPERATIONS_OPS_IMAGE_WINDOW_H_
