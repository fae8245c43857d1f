#include "core/operations/plain_image.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace systole {
namespace {

float At(const Value& image, int64_t y, int64_t x, int64_t c) {
  const auto i = static_cast<size_t>((y * image.width() + x) * image.channels() + c);
  return image.type.element == ElementType::kUint8 ? static_cast<float>(image.uint8s[i])
                                                   : image.floats[i];
}

// An image of height x width pixels, of which (y, x) is what `source` names of `image`.
template <typename Source>
Value Gather(const Value& image, int64_t height, int64_t width, const Source& source) {
  const int64_t channels = image.channels();
  Value out = Value::Create(image.type.element, {height, width, channels});
  size_t to = 0;
  for (int64_t y = 0; y < height; ++y) {
    for (int64_t x = 0; x < width; ++x) {
      const auto [from_y, from_x] = source(y, x);
      auto from = static_cast<size_t>((from_y * image.width() + from_x) * channels);
      for (int64_t c = 0; c < channels; ++c, ++to, ++from) {
        if (image.type.element == ElementType::kUint8) {
          out.uint8s[to] = image.uint8s[from];
        } else {
          out.floats[to] = image.floats[from];
        }
      }
    }
  }
  return out;
}

// Between which two rows (or columns) a row of the output lies.
struct Tap {
  int64_t lower = 0;
  int64_t upper = 0;
  float weight = 0;  // Of the upper one.
};

Tap TapOf(int64_t i, int64_t in, int64_t out) {
  const float scale = static_cast<float>(in) / static_cast<float>(out);
  const float source = (static_cast<float>(i) + 0.5f) * scale - 0.5f;
  auto floor = static_cast<int64_t>(source);
  if (static_cast<float>(floor) > source) --floor;
  const float weight = source - static_cast<float>(floor);
  const int64_t ceil = weight > 0 ? floor + 1 : floor;
  return {std::clamp<int64_t>(floor, 0, in - 1), std::min(ceil, in - 1), weight};
}

float Lerp(float a, float b, float weight) { return a + (b - a) * weight; }

}  // namespace

Value CropPlainly(const Value& image, const CropRect& rect) {
  return Gather(image, rect.height, rect.width,
                [&rect](int64_t y, int64_t x) { return std::pair(rect.y + y, rect.x + x); });
}

Value MirrorPlainly(const Value& image) {
  return Gather(image, image.height(), image.width(),
                [&image](int64_t y, int64_t x) { return std::pair(y, image.width() - 1 - x); });
}

Value ResizePlainly(const Value& image, const CropRect& rect, int height, int width) {
  Value out = Value::Create(ElementType::kFloat32, {height, width, image.channels()});
  size_t to = 0;
  for (int64_t y = 0; y < height; ++y) {
    const Tap row = TapOf(y, rect.height, height);
    for (int64_t x = 0; x < width; ++x) {
      const Tap column = TapOf(x, rect.width, width);
      for (int64_t c = 0; c < image.channels(); ++c, ++to) {
        const auto at = [&](int64_t from_y, int64_t from_x) {
          return At(image, rect.y + from_y, rect.x + from_x, c);
        };
        const float top =
            Lerp(at(row.lower, column.lower), at(row.lower, column.upper), column.weight);
        const float bottom =
            Lerp(at(row.upper, column.lower), at(row.upper, column.upper), column.weight);
        out.floats[to] = Lerp(top, bottom, row.weight);
      }
    }
  }
  return out;
}

}  // namespace systole
