#include "client/cli/shards/image_shrinker.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "core/image/resize/bilinear_resizer.h"
#include "core/status/status_macros.h"

namespace systole {
namespace {

constexpr int kChannels = 3;

RgbImage Halve(const RgbImage& image) {
  RgbImage half{image.width / 2, image.height / 2, {}};
  half.pixels.resize(static_cast<size_t>(half.width) * half.height * kChannels);
  const size_t stride = static_cast<size_t>(image.width) * kChannels;
  size_t at = 0;
  for (int y = 0; y < half.height; ++y) {
    const uint8_t* upper = image.pixels.data() + 2 * y * stride;
    const uint8_t* lower = upper + stride;
    for (int x = 0; x < half.width; ++x) {
      for (int c = 0; c < kChannels; ++c) {
        const size_t left = static_cast<size_t>(2 * x) * kChannels + c;
        const size_t right = left + kChannels;
        half.pixels[at++] =
            static_cast<uint8_t>((upper[left] + upper[right] + lower[left] + lower[right] + 2) / 4);
      }
    }
  }
  return half;
}

}  // namespace

absl::StatusOr<RgbImage> ShrinkShortSide(RgbImage image, int short_px) {
  if (short_px < 1) {
    return absl::InvalidArgumentError(absl::StrCat("short_px is ", short_px, ", want at least 1"));
  }
  // The result's size is computed from the original image, because a halved one may have lost a row
  // or a column.
  const int64_t whole_short = std::min(image.width, image.height);
  if (whole_short <= short_px) return image;
  const auto scaled = [&](int64_t side) {
    return static_cast<int>((2 * side * short_px + whole_short) / (2 * whole_short));
  };
  RgbImage small{scaled(image.width), scaled(image.height), {}};
  while (image.width >= 2 * small.width && image.height >= 2 * small.height) image = Halve(image);
  if (image.width == small.width && image.height == small.height) return image;

  SYSTOLE_ASSIGN_OR_RETURN(
      BilinearResizer resizer,
      BilinearResizer::Create(
          {.height = small.height, .width = small.width, .channels = kChannels}));
  small.pixels.resize(static_cast<size_t>(small.width) * small.height * kChannels);
  SYSTOLE_RETURN_IF_ERROR(
      resizer.Start(image.height, image.width, /*flip=*/false, absl::MakeSpan(small.pixels)));
  image.pixels.resize(image.pixels.size() + BilinearResizer::kRowPaddingBytes);
  const size_t stride = static_cast<size_t>(image.width) * kChannels;
  for (int y = 0; y < image.height && !resizer.done(); ++y) {
    resizer.AddRow(image.pixels.data() + y * stride);
  }
  return small;
}

}  // namespace systole
