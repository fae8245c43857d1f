#include "core/image/resize/resampler.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <vector>

#include "core/image/resize/sampling_spans.h"
#include "core/image/resize/sampling_taps.h"
#include "core/interrupt/interrupt.h"
#include "core/status/check.h"

namespace systole {
namespace {

float Lerp(float a, float b, float weight) { return a + (b - a) * weight; }

template <typename T>
void ResampleBilinear(bool half_pixel_centres, const PixelView<const T>& in,
                      const PixelView<float>& out) {
  const std::vector<LinearTap> rows = MakeLinearTaps(half_pixel_centres, in.height, out.height);
  const std::vector<LinearTap> columns = MakeLinearTaps(half_pixel_centres, in.width, out.width);
  for (int y = 0; y < out.height && !InterruptRequested(); ++y) {
    const LinearTap& row = rows[static_cast<size_t>(y)];
    const T* const top = in.row(row.lower);
    const T* const bottom = in.row(row.upper);
    float* to = out.row(y);
    for (const LinearTap& column : columns) {
      const int64_t left = column.lower * in.channels;
      const int64_t right = column.upper * in.channels;
      for (int c = 0; c < in.channels; ++c) {
        const float above = Lerp(static_cast<float>(top[left + c]),
                                 static_cast<float>(top[right + c]), column.weight);
        const float below = Lerp(static_cast<float>(bottom[left + c]),
                                 static_cast<float>(bottom[right + c]), column.weight);
        *to++ = Lerp(above, below, row.weight);
      }
    }
  }
}

template <typename Value>
float Sum4(const std::array<float, 4>& weights, const Value& value) {
  return value(0) * weights[0] + value(1) * weights[1] + value(2) * weights[2] +
         value(3) * weights[3];
}

template <typename T>
void ResampleBicubic(bool half_pixel_centres, const PixelView<const T>& in,
                     const PixelView<float>& out) {
  const std::vector<CubicTap> rows = MakeCubicTaps(half_pixel_centres, in.height, out.height);
  const std::vector<CubicTap> columns = MakeCubicTaps(half_pixel_centres, in.width, out.width);
  for (int y = 0; y < out.height && !InterruptRequested(); ++y) {
    const CubicTap& row = rows[static_cast<size_t>(y)];
    float* to = out.row(y);
    for (const CubicTap& column : columns) {
      for (int c = 0; c < in.channels; ++c) {
        *to++ = Sum4(column.weights, [&](size_t across) {
          const int64_t at = column.places[across] * in.channels + c;
          return Sum4(row.weights, [&](size_t down) {
            return static_cast<float>(in.row(row.places[down])[at]);
          });
        });
      }
    }
  }
}

// For kArea: the input pixels [begin, end) that an output pixel covers. The first and the last of
// them may be covered only in part.
struct Cover {
  int64_t begin = 0;
  int64_t end = 0;
  float low = 0;  // The output pixel reaches from `low` to `high`.
  float high = 0;
  float scale = 0;

  // How much of pixel `i` is covered.
  float WeightOf(int64_t i) const {
    const auto at = static_cast<float>(i);
    const auto next = static_cast<float>(i + 1);
    if (at < low) return next > high ? scale : next - low;
    return next > high ? high - at : 1.0f;
  }
};

std::vector<Cover> CoversOf(int in, int out) {
  const float scale = SourceScale(in, out);
  std::vector<Cover> covers(static_cast<size_t>(out));
  for (int i = 0; i < out; ++i) {
    Cover& cover = covers[static_cast<size_t>(i)];
    cover.low = static_cast<float>(i) * scale;
    cover.high = static_cast<float>(i + 1) * scale;
    cover.begin = static_cast<int64_t>(std::floor(cover.low));
    cover.end = static_cast<int64_t>(std::ceil(cover.high));
    cover.scale = scale;
  }
  return covers;
}

template <typename T>
void ResampleArea(const PixelView<const T>& in, const PixelView<float>& out) {
  const std::vector<Cover> rows = CoversOf(in.height, out.height);
  const std::vector<Cover> columns = CoversOf(in.width, out.width);
  const float scale =
      1.0f / (SourceScale(in.height, out.height) * SourceScale(in.width, out.width));
  // Because of rounding, a cover may end one pixel beyond the image. The last pixel then counts
  // again.
  const auto at = [&in](int64_t x, int c) {
    return std::clamp<int64_t>(x, 0, in.width - 1) * in.channels + c;
  };
  for (int y = 0; y < out.height && !InterruptRequested(); ++y) {
    const Cover& row = rows[static_cast<size_t>(y)];
    float* to = out.row(y);
    for (const Cover& column : columns) {
      const float first = column.WeightOf(column.begin);
      const float last = column.WeightOf(column.end - 1);
      for (int c = 0; c < in.channels; ++c) {
        float sum = 0.0f;
        for (int64_t i = row.begin; i < row.end; ++i) {
          const T* const from = in.row(std::clamp<int64_t>(i, 0, in.height - 1));
          float line = static_cast<float>(from[at(column.begin, c)]) * first;
          for (int64_t x = column.begin + 1; x < column.end - 1; ++x) {
            line += static_cast<float>(from[at(x, c)]);
          }
          if (column.begin + 1 != column.end) {
            line += static_cast<float>(from[at(column.end - 1, c)]) * last;
          }
          sum += line * row.WeightOf(i);
        }
        *to++ = sum * scale;
      }
    }
  }
}

// Makes one row of the output at a time: first sums over input rows, then over columns.
template <typename T>
void ResampleSpans(SamplingKernel kernel, bool antialias, const PixelView<const T>& in,
                   const PixelView<float>& out) {
  const SamplingSpans rows = MakeSamplingSpans(kernel, in.height, out.height, antialias);
  const SamplingSpans columns = MakeSamplingSpans(kernel, in.width, out.width, antialias);
  std::vector<float> line(static_cast<size_t>(in.width) * static_cast<size_t>(in.channels));
  for (int y = 0; y < out.height && !InterruptRequested(); ++y) {
    std::fill(line.begin(), line.end(), 0.0f);
    const int first = rows.starts[static_cast<size_t>(y)];
    const int row_count = std::min(rows.span, in.height - first);
    for (int k = 0; k < row_count; ++k) {
      const float weight = rows.weights[static_cast<size_t>(y) * rows.span + k];
      const T* const from = in.row(first + k);
      for (size_t i = 0; i < line.size(); ++i) line[i] += weight * static_cast<float>(from[i]);
    }
    float* to = out.row(y);
    for (int x = 0; x < out.width; ++x) {
      const int start = columns.starts[static_cast<size_t>(x)];
      const int count = std::min(columns.span, in.width - start);
      const float* const weights = &columns.weights[static_cast<size_t>(x) * columns.span];
      for (int c = 0; c < in.channels; ++c) {
        float sum = 0.0f;
        for (int k = 0; k < count; ++k) {
          sum += weights[k] * line[static_cast<size_t>(start + k) * in.channels + c];
        }
        *to++ = sum;
      }
    }
  }
}

std::vector<int64_t> NearestOf(bool half_pixel_centres, int in, int out) {
  const float scale = SourceScale(in, out);
  std::vector<int64_t> places(static_cast<size_t>(out));
  for (int i = 0; i < out; ++i) {
    const auto place = static_cast<float>(i);
    const float source = half_pixel_centres ? (place + 0.5f) * scale : place * scale;
    places[static_cast<size_t>(i)] =
        std::clamp<int64_t>(static_cast<int64_t>(std::floor(source)), 0, in - 1);
  }
  return places;
}

template <typename T, typename U>
void CheckSizes(const PixelView<T>& in, const PixelView<U>& out) {
  const auto fits = [](int size) { return size >= 1 && size <= 65535; };
  SYSTOLE_CHECK(fits(in.height) && fits(in.width) && fits(out.height) && fits(out.width) &&
                in.channels >= 1 && in.channels == out.channels);
}

}  // namespace

std::optional<SamplingKernel> SpansKernel(const ResampleOptions& options) {
  switch (options.method) {
    case ResampleMethod::kBilinear:
      if (options.antialias) return SamplingKernel::kTriangle;
      return std::nullopt;
    case ResampleMethod::kBicubic:
      if (options.antialias) return SamplingKernel::kKeysCubic;
      return std::nullopt;
    case ResampleMethod::kLanczos3:
      return SamplingKernel::kLanczos3;
    case ResampleMethod::kLanczos5:
      return SamplingKernel::kLanczos5;
    case ResampleMethod::kGaussian:
      return SamplingKernel::kGaussian;
    case ResampleMethod::kMitchellCubic:
      return SamplingKernel::kMitchellCubic;
    case ResampleMethod::kNearest:
    case ResampleMethod::kArea:
      return std::nullopt;
  }
  return std::nullopt;
}

template <typename T>
void Resample(const ResampleOptions& options, const PixelView<const T>& in,
              const PixelView<float>& out) {
  CheckSizes(in, out);
  if (const std::optional<SamplingKernel> kernel = SpansKernel(options); kernel.has_value()) {
    return ResampleSpans(*kernel, options.antialias, in, out);
  }
  switch (options.method) {
    case ResampleMethod::kBilinear:
      return ResampleBilinear(options.half_pixel_centres, in, out);
    case ResampleMethod::kBicubic:
      return ResampleBicubic(options.half_pixel_centres, in, out);
    case ResampleMethod::kArea:
      return ResampleArea(in, out);
    default:
      SYSTOLE_CHECK(false);  // For kNearest there is ResampleNearest().
  }
}

template <typename T>
void ResampleNearest(bool half_pixel_centres, const PixelView<const T>& in,
                     const PixelView<T>& out) {
  CheckSizes(in, out);
  const std::vector<int64_t> rows = NearestOf(half_pixel_centres, in.height, out.height);
  const std::vector<int64_t> columns = NearestOf(half_pixel_centres, in.width, out.width);
  for (int y = 0; y < out.height && !InterruptRequested(); ++y) {
    const T* const from = in.row(rows[static_cast<size_t>(y)]);
    T* to = out.row(y);
    for (const int64_t x : columns) to = std::copy_n(from + x * in.channels, in.channels, to);
  }
}

template void Resample(const ResampleOptions&, const PixelView<const uint8_t>&,
                       const PixelView<float>&);
template void Resample(const ResampleOptions&, const PixelView<const float>&,
                       const PixelView<float>&);
template void ResampleNearest(bool, const PixelView<const uint8_t>&, const PixelView<uint8_t>&);
template void ResampleNearest(bool, const PixelView<const float>&, const PixelView<float>&);

}  // namespace systole
