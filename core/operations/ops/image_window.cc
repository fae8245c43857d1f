#include "core/operations/ops/image_window.h"

#include "core/status/status_macros.h"

namespace systole {

absl::StatusOr<ImageWindow> WindowOf(absl::Span<const Move> moves, int height, int width,
                                     const ExampleKey& example) {
  ImageWindow window = {.rect = WholeImage(height, width)};
  CropRect& rect = window.rect;
  for (const Move& move : moves) {
    if (const auto* const mirror = std::get_if<MirrorPart>(&move)) {
      window.mirrored ^= mirror->mirrored(example);
      continue;
    }
    SYSTOLE_ASSIGN_OR_RETURN(CropRect inner,
                             std::get<WindowPart>(move).window(rect.height, rect.width, example));
    // The inner window lies in the image that the earlier moves make, and this image may be
    // mirrored.
    if (window.mirrored) inner.x = rect.width - inner.x - inner.width;
    inner.y += rect.y;
    inner.x += rect.x;
    rect = inner;
  }
  return window;
}

}  // namespace systole
