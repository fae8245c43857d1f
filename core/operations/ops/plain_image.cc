#include "core/operations/ops/plain_image.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "core/interrupt/interrupt.h"
#include "core/status/status_macros.h"

namespace systole {
namespace {

float At(const Value& image, int64_t y, int64_t x, int64_t c) {
  const auto i = static_cast<size_t>((y * image.width() + x) * image.channels() + c);
  return image.type.element == ElementType::kUint8 ? static_cast<float>(image.uint8s[i])
                                                   : image.floats[i];
}

template <size_t kChannels, typename T, typename Source>
void GatherPixels(const T* from, int64_t from_width, const Source& source, Value& image, T* to) {
  for (int64_t y = 0; y < image.height() && !InterruptRequested(); ++y) {
    for (int64_t x = 0; x < image.width(); ++x, to += kChannels) {
      const auto [from_y, from_x] = source(y, x);
      std::copy_n(from + (from_y * from_width + from_x) * static_cast<int64_t>(kChannels),
                  kChannels, to);
    }
  }
}

template <typename T, typename Source>
void GatherValues(const std::vector<T>& from, int64_t from_width, const Source& source,
                  Value& image, std::vector<T>& to) {
  if (image.channels() == 3) {
    GatherPixels<3>(from.data(), from_width, source, image, to.data());
  } else {
    GatherPixels<1>(from.data(), from_width, source, image, to.data());
  }
}

// An image of height x width pixels. Its pixel (y, x) is the pixel source(y, x) of `image`.
template <typename Source>
Value Gather(const Value& image, int64_t height, int64_t width, const Source& source) {
  Value out = Value::Create(image.type.element, {height, width, image.channels()});
  if (image.type.element == ElementType::kUint8) {
    GatherValues(image.uint8s, image.width(), source, out, out.uint8s);
  } else {
    GatherValues(image.floats, image.width(), source, out, out.floats);
  }
  return out;
}

// Mirrors each row of `width` pixels.
template <int64_t kChannels>
void MirrorRows(int64_t width, absl::Span<float> rows) {
  for (float* row = rows.data(); row < rows.data() + rows.size(); row += width * kChannels) {
    float* left = row;
    float* right = row + (width - 1) * kChannels;
    for (; left < right; left += kChannels, right -= kChannels) {
      std::swap_ranges(left, left + kChannels, right);
    }
  }
}

// Copies `rect` of an image to `to`, a place in another image. Both widths are in pixels.
template <typename T>
void CopyRows(const std::vector<T>& from, const CropRect& rect, int64_t from_width,
              int64_t channels, int64_t to_width, T* to) {
  const T* row = from.data() + (rect.y * from_width + rect.x) * channels;
  for (int64_t y = 0; y < rect.height && !InterruptRequested(); ++y) {
    std::copy_n(row, rect.width * channels, to);
    row += from_width * channels;
    to += to_width * channels;
  }
}

// Copies the rows of `from`, each of `row_values` values, in the opposite order.
template <typename T>
void CopyUpwards(const std::vector<T>& from, int64_t row_values, std::vector<T>& to) {
  auto row = from.end();
  for (auto place = to.begin(); place != to.end() && !InterruptRequested(); place += row_values) {
    row -= row_values;
    std::copy_n(row, row_values, place);
  }
}

// The two input rows (or columns) between which an output row (or column) lies.
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

// A view of the part `rect` of an image. The image has `values` and `type`.
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
      " takes more than ", kMaxResampledElements, " intermediate values: put a crop before it"));
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
  return PlacePlainly(image, rect, rect.height, rect.width, 0, 0);
}

Value MirrorPlainly(const Value& image) {
  return Gather(image, image.height(), image.width(),
                [&image](int64_t y, int64_t x) { return std::pair(y, image.width() - 1 - x); });
}

RowChange MirroredRows(const ValueType& image) {
  return [width = image.shape[1], channels = image.shape[2]](absl::Span<float> rows) {
    if (channels == 3) {
      MirrorRows<3>(width, rows);
    } else {
      MirrorRows<1>(width, rows);
    }
  };
}

Value TurnUpsideDownPlainly(const Value& image) {
  Value out = Value::Create(image.type.element, image.type.shape);
  const int64_t row_values = image.width() * image.channels();
  CopyUpwards(image.uint8s, row_values, out.uint8s);
  CopyUpwards(image.floats, row_values, out.floats);
  return out;
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
  Value out = Value::Create(image.type.element, {height, width, image.channels()});
  const int64_t to = (int64_t{y} * width + x) * image.channels();
  if (image.type.element == ElementType::kUint8) {
    CopyRows(image.uint8s, rect, image.width(), image.channels(), width, out.uint8s.data() + to);
  } else {
    CopyRows(image.floats, rect, image.width(), image.channels(), width, out.floats.data() + to);
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
