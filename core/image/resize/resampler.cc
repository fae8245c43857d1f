#include "core/image/resize/resampler.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <vector>

#include "core/image/resize/sampling_spans.h"
#include "core/interrupt/interrupt.h"
#include "core/status/check.h"

namespace systole {
namespace {

// Input pixels for each output pixel.
float ScaleOf(int in, int out) { return static_cast<float>(in) / static_cast<float>(out); }

// The place of output pixel `i` in the input.
float SourceOf(bool half_pixel_centres, int i, float scale) {
  const auto place = static_cast<float>(i);
  return half_pixel_centres ? (place + 0.5f) * scale - 0.5f : place * scale;
}

// Bilinear: the two pixels around an output pixel.
struct Tap {
  int64_t lower = 0;
  int64_t upper = 0;
  float weight = 0;  // The weight of `upper`.
};

std::vector<Tap> TapsOf(bool half_pixel_centres, int in, int out) {
  const float scale = ScaleOf(in, out);
  std::vector<Tap> taps(static_cast<size_t>(out));
  for (int i = 0; i < out; ++i) {
    const float source = SourceOf(half_pixel_centres, i, scale);
    const float floor = std::floor(source);
    taps[static_cast<size_t>(i)] = {
        .lower = std::clamp<int64_t>(static_cast<int64_t>(floor), 0, in - 1),
        .upper = std::clamp<int64_t>(static_cast<int64_t>(std::ceil(source)), 0, in - 1),
        .weight = source - floor};
  }
  return taps;
}

float Lerp(float a, float b, float weight) { return a + (b - a) * weight; }

template <typename T>
void ResampleBilinear(bool half_pixel_centres, const PixelView<const T>& in,
                      const PixelView<float>& out) {
  const std::vector<Tap> rows = TapsOf(half_pixel_centres, in.height, out.height);
  const std::vector<Tap> columns = TapsOf(half_pixel_centres, in.width, out.width);
  for (int y = 0; y < out.height && !InterruptRequested(); ++y) {
    const Tap& row = rows[static_cast<size_t>(y)];
    const T* const top = in.row(row.lower);
    const T* const bottom = in.row(row.upper);
    float* to = out.row(y);
    for (const Tap& column : columns) {
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

// Bicubic: the four pixels around an output pixel.
struct CubicTap {
  std::array<int64_t, 4> places = {};
  std::array<float, 4> weights = {};
};

// The cubic kernel at n / 1024 and at 1 + n / 1024.
constexpr int kCubicSteps = 1024;
struct CubicTable {
  std::array<float, kCubicSteps + 1> inner;
  std::array<float, kCubicSteps + 1> outer;

  explicit CubicTable(double a) {
    for (int i = 0; i <= kCubicSteps; ++i) {
      float x = static_cast<float>(i) / kCubicSteps;
      inner[static_cast<size_t>(i)] = static_cast<float>(((a + 2) * x - (a + 3)) * x * x + 1);
      x += 1.0f;
      outer[static_cast<size_t>(i)] = static_cast<float>(((a * x - 5 * a) * x + 8 * a) * x - 4 * a);
    }
  }
};

std::vector<CubicTap> CubicTapsOf(bool half_pixel_centres, int in, int out) {
  static const CubicTable keys(-0.5);
  static const CubicTable legacy(-0.75);
  const CubicTable& table = half_pixel_centres ? keys : legacy;
  const float scale = ScaleOf(in, out);
  std::vector<CubicTap> taps(static_cast<size_t>(out));
  for (int i = 0; i < out; ++i) {
    CubicTap& tap = taps[static_cast<size_t>(i)];
    const float source = SourceOf(half_pixel_centres, i, scale);
    const auto floor = static_cast<int64_t>(std::floor(source));
    const float delta = source - static_cast<float>(floor);
    const auto step = static_cast<size_t>(std::nearbyint(delta * float{kCubicSteps}));
    tap.weights = {table.outer[step], table.inner[step], table.inner[kCubicSteps - step],
                   table.outer[kCubicSteps - step]};
    for (size_t k = 0; k < 4; ++k) {
      const int64_t place = floor - 1 + static_cast<int64_t>(k);
      tap.places[k] = std::clamp<int64_t>(place, 0, in - 1);
      // Outside the image TensorFlow 1 repeats the pixel at the edge. TensorFlow 2 leaves it out.
      if (half_pixel_centres && tap.places[k] != place) tap.weights[k] = 0.0f;
    }
    if (!half_pixel_centres) continue;
    const float sum = tap.weights[0] + tap.weights[1] + tap.weights[2] + tap.weights[3];
    if (std::fabs(sum) < 1000.0f * std::numeric_limits<float>::min()) continue;
    const float one_over_sum = 1.0f / sum;
    for (float& weight : tap.weights) weight *= one_over_sum;
  }
  return taps;
}

template <typename Value>
float Sum4(const std::array<float, 4>& weights, const Value& value) {
  return value(0) * weights[0] + value(1) * weights[1] + value(2) * weights[2] +
         value(3) * weights[3];
}

template <typename T>
void ResampleBicubic(bool half_pixel_centres, const PixelView<const T>& in,
                     const PixelView<float>& out) {
  const std::vector<CubicTap> rows = CubicTapsOf(half_pixel_centres, in.height, out.height);
  const std::vector<CubicTap> columns = CubicTapsOf(half_pixel_centres, in.width, out.width);
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

// Area: the pixels [begin, end) that an output pixel covers. It may cover the first and the last in
// part.
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
  const float scale = ScaleOf(in, out);
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
  const float scale = 1.0f / (ScaleOf(in.height, out.height) * ScaleOf(in.width, out.width));
  // By rounding, a cover may end one pixel beyond the image. The last pixel then counts again.
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

// Sums rows first, for one row of the output at a time, then columns.
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
  const float scale = ScaleOf(in, out);
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

template <typename T>
void Resample(const ResampleOptions& options, const PixelView<const T>& in,
              const PixelView<float>& out) {
  CheckSizes(in, out);
  const auto spans = [&](SamplingKernel kernel) {
    ResampleSpans(kernel, options.antialias, in, out);
  };
  switch (options.method) {
    case ResampleMethod::kBilinear:
      if (options.antialias) return spans(SamplingKernel::kTriangle);
      return ResampleBilinear(options.half_pixel_centres, in, out);
    case ResampleMethod::kBicubic:
      if (options.antialias) return spans(SamplingKernel::kKeysCubic);
      return ResampleBicubic(options.half_pixel_centres, in, out);
    case ResampleMethod::kArea:
      return ResampleArea(in, out);
    case ResampleMethod::kLanczos3:
      return spans(SamplingKernel::kLanczos3);
    case ResampleMethod::kLanczos5:
      return spans(SamplingKernel::kLanczos5);
    case ResampleMethod::kGaussian:
      return spans(SamplingKernel::kGaussian);
    case ResampleMethod::kMitchellCubic:
      return spans(SamplingKernel::kMitchellCubic);
    case ResampleMethod::kNearest:
      SYSTOLE_CHECK(false);  // ResampleNearest() has it.
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
