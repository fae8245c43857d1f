#include "core/operations/ops/plain_image.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/interrupt/interrupt.h"
#include "core/status/status_macros.h"

namespace systole {
namespace {

float At(const Value& image, int64_t y, int64_t x, int64_t c) {
  const auto i = static_cast<size_t>((y * image.width() + x) * image.channels() + c);
  return image.type.element == ElementType::kUint8 ? static_cast<float>(image.uint8s[i])
                                                   : image.floats[i];
}

// An image of height x width pixels. Its pixel (y, x) is the pixel source(y, x) of `image`.
template <typename Source>
Value Gather(const Value& image, int64_t height, int64_t width, const Source& source) {
  const int64_t channels = image.channels();
  Value out = Value::Create(image.type.element, {height, width, channels});
  size_t to = 0;
  for (int64_t y = 0; y < height && !InterruptRequested(); ++y) {
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

// The two rows (or columns) of the input between which one of the output lies.
struct Tap {
  int64_t lower = 0;
  int64_t upper = 0;
  float weight = 0;  // The weight of `upper`.
};

Tap TapOf(int64_t i, const SourceSide& in, int64_t out) {
  const float scale = in.extent / static_cast<float>(out);
  const float source = (static_cast<float>(i) + 0.5f) * scale + (in.begin - 0.5f);
  auto floor = static_cast<int64_t>(source);
  if (static_cast<float>(floor) > source) --floor;
  const float weight = source - static_cast<float>(floor);
  const int64_t ceil = weight > 0 ? floor + 1 : floor;
  const int64_t last = in.pixels - 1;
  return {std::clamp<int64_t>(floor, 0, last), std::min(ceil, last), weight};
}

float Lerp(float a, float b, float weight) { return a + (b - a) * weight; }

// A view of `rect`, a part of the image that has `values` and `type`.
template <typename T>
PixelView<T> ViewOf(T* values, const ValueType& type, const CropRect& rect) {
  const int64_t channels = type.shape[2];
  const int64_t row_values = type.shape[1] * channels;
  return {.values = values + rect.y * row_values + rect.x * channels,
          .row_values = row_values,
          .height = rect.height,
          .width = rect.width,
          .channels = static_cast<int>(channels)};
}

absl::Status CheckResampled(const Value& image, const CropRect& rect, const CropRect& to) {
  if (int64_t{to.height} * rect.width * image.channels() <= kMaxResampledElements) {
    return absl::OkStatus();
  }
  return absl::ResourceExhaustedError(absl::StrCat(
      "resizing ", rect.height, " x ", rect.width, " pixels to ", to.height, " x ", to.width,
      " takes more than ", kMaxResampledElements, " intermediate values; crop before it"));
}

// ResamplePlainly() without its check. `resample` is Resample() or FastResample().
template <typename Function>
Value ResampledBy(const Function& resample, const Value& image, const CropRect& rect,
                  const ResampleOptions& options, const CropRect& to, int out_height,
                  int out_width) {
  const bool nearest = options.method == ResampleMethod::kNearest;
  const bool is_uint8 = image.type.element == ElementType::kUint8;
  Value out = Value::Create(nearest ? image.type.element : ElementType::kFloat32,
                            {out_height, out_width, image.channels()});
  const auto view_of = [&](const auto& values) { return ViewOf(values.data(), image.type, rect); };
  const auto target = [&](auto& values) { return ViewOf(values.data(), out.type, to); };
  if (nearest && is_uint8) {
    ResampleNearest(options.half_pixel_centres, view_of(image.uint8s), target(out.uint8s));
  } else if (nearest) {
    ResampleNearest(options.half_pixel_centres, view_of(image.floats), target(out.floats));
  } else if (is_uint8) {
    resample(options, view_of(image.uint8s), target(out.floats));
  } else {
    resample(options, view_of(image.floats), target(out.floats));
  }
  return out;
}

}  // namespace

Value CropPlainly(const Value& image, const CropRect& rect) {
  return Gather(image, rect.height, rect.width,
                [&rect](int64_t y, int64_t x) { return std::pair(rect.y + y, rect.x + x); });
}

Value MirrorPlainly(const Value& image) {
  return Gather(image, image.height(), image.width(),
                [&image](int64_t y, int64_t x) { return std::pair(y, image.width() - 1 - x); });
}

Value TurnUpsideDownPlainly(const Value& image) {
  return Gather(image, image.height(), image.width(),
                [&image](int64_t y, int64_t x) { return std::pair(image.height() - 1 - y, x); });
}

Value TransposePlainly(const Value& image) {
  return Gather(image, image.width(), image.height(),
                [](int64_t y, int64_t x) { return std::pair(x, y); });
}

Value RotatePlainly(const Value& image, int quarters) {
  const int64_t bottom = image.height() - 1;
  const int64_t right = image.width() - 1;
  switch (quarters) {
    case 1:
      return Gather(image, image.width(), image.height(),
                    [right](int64_t y, int64_t x) { return std::pair(x, right - y); });
    case 2:
      return Gather(image, image.height(), image.width(), [bottom, right](int64_t y, int64_t x) {
        return std::pair(bottom - y, right - x);
      });
    case 3:
      return Gather(image, image.width(), image.height(),
                    [bottom](int64_t y, int64_t x) { return std::pair(bottom - x, y); });
    default:
      return image;
  }
}

Value PlacePlainly(const Value& image, const CropRect& rect, int height, int width, int y, int x) {
  const int64_t channels = image.channels();
  Value out = Value::Create(image.type.element, {height, width, channels});
  for (int64_t row = 0; row < rect.height; ++row) {
    const int64_t from = ((rect.y + row) * image.width() + rect.x) * channels;
    const int64_t to = ((y + row) * width + x) * channels;
    const int64_t count = rect.width * channels;
    if (image.type.element == ElementType::kUint8) {
      std::copy_n(image.uint8s.begin() + from, count, out.uint8s.begin() + to);
    } else {
      std::copy_n(image.floats.begin() + from, count, out.floats.begin() + to);
    }
  }
  return out;
}

Value ResizePlainly(const Value& image, const CropRect& rect, int height, int width) {
  return ResizePlainly(CropPlainly(image, rect), WholeSide(rect.height), WholeSide(rect.width),
                       height, width);
}

Value ResizePlainly(const Value& image, const SourceSide& rows, const SourceSide& columns,
                    int height, int width) {
  Value out = Value::Create(ElementType::kFloat32, {height, width, image.channels()});
  size_t to = 0;
  for (int64_t y = 0; y < height && !InterruptRequested(); ++y) {
    const Tap row = TapOf(y, rows, height);
    for (int64_t x = 0; x < width; ++x) {
      const Tap column = TapOf(x, columns, width);
      for (int64_t c = 0; c < image.channels(); ++c, ++to) {
        const auto at = [&](int64_t from_y, int64_t from_x) {
          return At(image, from_y, from_x, c);
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

absl::StatusOr<Value> ResamplePlainly(const Value& image, const CropRect& rect,
                                      const ResampleOptions& options, const CropRect& to,
                                      int out_height, int out_width) {
  SYSTOLE_RETURN_IF_ERROR(CheckResampled(image, rect, to));
  return ResampledBy([](const auto&... arguments) { Resample(arguments...); }, image, rect, options,
                     to, out_height, out_width);
}

Value ResizeFast(const Value& image, const CropRect& rect, int height, int width) {
  return ResampledBy([](const auto&... arguments) { FastResample(arguments...); }, image, rect, {},
                     WholeImage(height, width), height, width);
}

absl::StatusOr<Value> ResampleFast(const Value& image, const CropRect& rect,
                                   const ResampleOptions& options, const CropRect& to,
                                   int out_height, int out_width) {
  SYSTOLE_RETURN_IF_ERROR(CheckResampled(image, rect, to));
  return ResampledBy([](const auto&... arguments) { FastResample(arguments...); }, image, rect,
                     options, to, out_height, out_width);
}

absl::Status ResampleRows(const Value& image, const ResampleOptions& options, int height, int width,
                          bool mirrored, TakeRows take) {
  const CropRect whole =
      WholeImage(static_cast<int>(image.height()), static_cast<int>(image.width()));
  SYSTOLE_RETURN_IF_ERROR(CheckResampled(image, whole, WholeImage(height, width)));
  FastResampleRows(options, ViewOf(image.uint8s.data(), image.type, whole), height, width, mirrored,
                   take);
  return absl::OkStatus();
}

}  // namespace systole
