#include "core/image/resize/fast_resampler.h"

#include <algorithm>
#include <optional>
#include <type_traits>
#include <vector>

#include "core/image/resize/sampling_spans.h"
#include "core/image/resize/sampling_taps.h"
#include "core/interrupt/interrupt.h"
#include "core/status/check.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "core/image/resize/fast_resampler.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
// After foreach_target.h:
#include "hwy/highway.h"

#ifndef SYSTOLE_CORE_IMAGE_FAST_RESAMPLER_CC_ONCE_
#define SYSTOLE_CORE_IMAGE_FAST_RESAMPLER_CC_ONCE_
namespace systole {
namespace {

// Describes a sum: `count` pixels from `start` on, each times its weight.
struct WeightedSpan {
  int64_t start = 0;
  int64_t count = 0;
  const float* weights = nullptr;
};

// The value that a sum starts from. It decides the sign of a sum of zeros.
enum class SumFrom { kZero, kFirstProduct };

// Pixels of three channels are loaded and stored as four values. So a line has this many spare
// values after its end.
constexpr size_t kLinePadding = 4;

}  // namespace
}  // namespace systole
#endif  // SYSTOLE_CORE_IMAGE_FAST_RESAMPLER_CC_ONCE_

HWY_BEFORE_NAMESPACE();
namespace systole {
namespace HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

template <class D>
HWY_INLINE hn::Vec<D> LoadAsFloat(D d, const float* in) {
  return hn::LoadU(d, in);
}
template <class D>
HWY_INLINE hn::Vec<D> LoadAsFloat(D d, const uint8_t* in) {
  const hn::Rebind<uint8_t, D> d8;
  const hn::RebindToSigned<D> di;
  return hn::ConvertTo(d, hn::PromoteTo(di, hn::LoadU(d8, in)));
}

// Computes one vector of SumRows(), beginning at value `i`.
template <SumFrom kFrom, class D, typename T>
HWY_INLINE hn::Vec<D> SumOfRows(D d, const T* const* rows, const float* weights, int64_t count,
                                size_t i) {
  int64_t k = 0;
  auto sum = hn::Zero(d);
  if constexpr (kFrom == SumFrom::kFirstProduct) {
    sum = hn::Mul(LoadAsFloat(d, rows[0] + i), hn::Set(d, weights[0]));
    k = 1;
  }
  for (; k < count; ++k) {
    sum = hn::Add(sum, hn::Mul(LoadAsFloat(d, rows[k] + i), hn::Set(d, weights[k])));
  }
  return sum;
}

// Makes line[i] the sum of rows[k][i] * weights[k] over k, in the order of k.
template <SumFrom kFrom, typename T>
HWY_INLINE void SumRows(const T* const* rows, const float* weights, int64_t count, size_t values,
                        float* HWY_RESTRICT line) {
  const hn::CappedTag<float, 16> d;
  const size_t lanes = hn::Lanes(d);
  size_t i = 0;
  // Two vectors at a time hide the latency of an addition.
  for (; i + 2 * lanes <= values; i += 2 * lanes) {
    const auto low = SumOfRows<kFrom>(d, rows, weights, count, i);
    const auto high = SumOfRows<kFrom>(d, rows, weights, count, i + lanes);
    hn::StoreU(low, d, line + i);
    hn::StoreU(high, d, line + i + lanes);
  }
  // Rows must not be read beyond their end.
  const hn::CappedTag<float, 1> d1;
  for (; i < values; ++i) {
    hn::StoreU(SumOfRows<kFrom>(d1, rows, weights, count, i), d1, line + i);
  }
}

void SumRowsOfBytes(const uint8_t* const* rows, const WeightedSpan& span, SumFrom from,
                    size_t values, float* line) {
  if (from == SumFrom::kZero) {
    return SumRows<SumFrom::kZero>(rows, span.weights, span.count, values, line);
  }
  SumRows<SumFrom::kFirstProduct>(rows, span.weights, span.count, values, line);
}

void SumRowsOfFloats(const float* const* rows, const WeightedSpan& span, SumFrom from,
                     size_t values, float* line) {
  if (from == SumFrom::kZero) {
    return SumRows<SumFrom::kZero>(rows, span.weights, span.count, values, line);
  }
  SumRows<SumFrom::kFirstProduct>(rows, span.weights, span.count, values, line);
}

// Sums pixels of a line, each times its weight. Computes as many values of a pixel at once as D has
// lanes.
template <SumFrom kFrom, class D>
HWY_INLINE hn::Vec<D> SumOfColumns(D d, const float* from, size_t channels,
                                   const WeightedSpan& span) {
  int64_t k = 0;
  auto sum = hn::Zero(d);
  if constexpr (kFrom == SumFrom::kFirstProduct) {
    sum = hn::Mul(hn::LoadU(d, from), hn::Set(d, span.weights[0]));
    from += channels;
    k = 1;
  }
  for (; k < span.count; ++k, from += channels) {
    sum = hn::Add(sum, hn::Mul(hn::LoadU(d, from), hn::Set(d, span.weights[k])));
  }
  return sum;
}

// Makes a row of output pixels from a line.
template <SumFrom kFrom>
HWY_INLINE void SumColumns(const float* HWY_RESTRICT line, const WeightedSpan* columns,
                           size_t width, size_t channels, float* HWY_RESTRICT out) {
  size_t x = 0;
#if HWY_TARGET != HWY_SCALAR
  if (channels == 3) {
    const hn::FixedTag<float, 4> d;
    // The next pixel overwrites the fourth value. The last pixel is written by the loop below,
    // because no pixel follows it.
    for (; x + 1 < width; ++x, out += 3) {
      const float* const from = line + columns[x].start * 3;
      hn::StoreU(SumOfColumns<kFrom>(d, from, 3, columns[x]), d, out);
    }
  }
#endif
  const hn::CappedTag<float, 1> d1;
  for (; x < width; ++x) {
    const float* const from = line + columns[x].start * static_cast<int64_t>(channels);
    for (size_t c = 0; c < channels; ++c, ++out) {
      hn::StoreU(SumOfColumns<kFrom>(d1, from + c, channels, columns[x]), d1, out);
    }
  }
}

void SumColumnsKernel(const float* line, const WeightedSpan* columns, size_t width, size_t channels,
                      SumFrom from, float* out) {
  if (from == SumFrom::kZero) {
    return SumColumns<SumFrom::kZero>(line, columns, width, channels, out);
  }
  SumColumns<SumFrom::kFirstProduct>(line, columns, width, channels, out);
}

// Casts a row to float. The row must not be read beyond its end.
void WidenRow(const uint8_t* HWY_RESTRICT row, size_t values, float* HWY_RESTRICT line) {
  const hn::CappedTag<float, 16> d;
  const size_t lanes = hn::Lanes(d);
  size_t i = 0;
  for (; i + lanes <= values; i += lanes) hn::StoreU(LoadAsFloat(d, row + i), d, line + i);
  for (; i < values; ++i) line[i] = row[i];
}

template <class D>
HWY_INLINE hn::Vec<D> Lerp(hn::Vec<D> a, hn::Vec<D> b, hn::Vec<D> weight) {
  return hn::Add(a, hn::Mul(hn::Sub(b, a), weight));
}

// Interpolates between the columns of a line.
void LerpColumns(const float* HWY_RESTRICT line, const LinearTap* columns, size_t width,
                 size_t channels, float* HWY_RESTRICT out) {
#if HWY_TARGET != HWY_SCALAR
  if (channels == 3) {
    const hn::FixedTag<float, 4> d;
    for (size_t x = 0; x < width; ++x, out += 3) {
      const auto a = hn::LoadU(d, line + columns[x].lower * 3);
      const auto b = hn::LoadU(d, line + columns[x].upper * 3);
      hn::StoreU(Lerp<decltype(d)>(a, b, hn::Set(d, columns[x].weight)), d, out);
    }
    return;
  }
#endif
  for (size_t x = 0; x < width; ++x) {
    const float* const lower = line + columns[x].lower * static_cast<int64_t>(channels);
    const float* const upper = line + columns[x].upper * static_cast<int64_t>(channels);
    for (size_t c = 0; c < channels; ++c) {
      *out++ = lower[c] + (upper[c] - lower[c]) * columns[x].weight;
    }
  }
}

// Interpolates between two lines. The lines are padded, `out` is not.
void LerpLines(const float* HWY_RESTRICT top, const float* HWY_RESTRICT bottom, float weight,
               size_t values, float* HWY_RESTRICT out) {
  const hn::CappedTag<float, 16> d;
  const size_t lanes = hn::Lanes(d);
  const auto t = hn::Set(d, weight);
  size_t i = 0;
  for (; i + lanes <= values; i += lanes) {
    hn::StoreU(Lerp<decltype(d)>(hn::LoadU(d, top + i), hn::LoadU(d, bottom + i), t), d, out + i);
  }
  for (; i < values; ++i) out[i] = top[i] + (bottom[i] - top[i]) * weight;
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace systole
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace systole {
namespace {

HWY_EXPORT(SumRowsOfBytes);
HWY_EXPORT(SumRowsOfFloats);
HWY_EXPORT(SumColumnsKernel);
HWY_EXPORT(WidenRow);
HWY_EXPORT(LerpColumns);
HWY_EXPORT(LerpLines);

void SumLine(const uint8_t* const* rows, const WeightedSpan& span, SumFrom from, size_t values,
             float* line) {
  HWY_DYNAMIC_DISPATCH(SumRowsOfBytes)(rows, span, from, values, line);
}
void SumLine(const float* const* rows, const WeightedSpan& span, SumFrom from, size_t values,
             float* line) {
  HWY_DYNAMIC_DISPATCH(SumRowsOfFloats)(rows, span, from, values, line);
}

void Widen(const uint8_t* row, size_t values, float* line) {
  HWY_DYNAMIC_DISPATCH(WidenRow)(row, values, line);
}
void Widen(const float* row, size_t values, float* line) { std::copy_n(row, values, line); }

// Where a result's rows are written: directly into an image.
struct RowsInPlace {
  const PixelView<float>& out;

  float* row(int y) const { return out.row(y); }
  void Finish(int /*y*/) const {}
};

// Where a result's rows are written: into a buffer, from which a few rows at a time go to `take`.
class RowsInTurn {
 public:
  RowsInTurn(int height, size_t row_values, TakeRows take)
      : height_(height), row_values_(row_values), rows_(kRows * row_values), take_(take) {}

  float* row(int y) { return rows_.data() + static_cast<size_t>(y - first_) * row_values_; }
  void Finish(int y) {
    const int count = y + 1 - first_;
    if (count < kRows && y + 1 < height_) return;
    take_(first_, count, rows_.data());
    first_ = y + 1;
  }

 private:
  // This many rows stay in the second-level cache, and share the cost of a call of `take_`.
  static constexpr int kRows = 16;

  int height_;
  size_t row_values_;
  std::vector<float> rows_;
  TakeRows take_;
  int first_ = 0;  // The row at the beginning of rows_.
};

// For each row of the output, sums rows of the input to a line, and columns of the line to the
// output's pixels. Spans may reach beyond the image: a row or column outside counts as the nearest
// one at the edge.
template <typename T, typename Rows>
void ResampleSpans(const std::vector<WeightedSpan>& rows, const std::vector<WeightedSpan>& columns,
                   SumFrom from, const PixelView<const T>& in, Rows& out) {
  const auto channels = static_cast<size_t>(in.channels);
  const size_t values = static_cast<size_t>(in.width) * channels;
  // How many pixels beyond the edges of the image are read.
  int64_t left = 0;
  int64_t right = 0;
  for (const WeightedSpan& column : columns) {
    left = std::max(left, -column.start);
    right = std::max(right, column.start + column.count - in.width);
  }
  const size_t left_values = static_cast<size_t>(left) * channels;
  const size_t right_values = static_cast<size_t>(right) * channels;
  std::vector<float> padded(left_values + values + right_values + kLinePadding);
  float* const line = padded.data() + left_values;
  std::vector<const T*> sources;
  const auto height = static_cast<int>(rows.size());
  for (int y = 0; y < height && !InterruptRequested(); ++y) {
    const WeightedSpan& row = rows[static_cast<size_t>(y)];
    sources.clear();
    for (int64_t k = 0; k < row.count; ++k) {
      sources.push_back(in.row(std::clamp<int64_t>(row.start + k, 0, in.height - 1)));
    }
    SumLine(sources.data(), row, from, values, line);
    for (size_t i = 0; i < left_values; ++i) padded[i] = line[i % channels];
    for (size_t i = 0; i < right_values; ++i) line[values + i] = line[values + i - channels];
    HWY_DYNAMIC_DISPATCH(SumColumnsKernel)
    (line, columns.data(), columns.size(), channels, from, out.row(y));
    out.Finish(y);
  }
}

std::vector<WeightedSpan> SpansOf(const SamplingSpans& spans, int in) {
  std::vector<WeightedSpan> made;
  const float* weights = spans.weights.data();
  for (const int start : spans.starts) {
    made.push_back({.start = start, .count = std::min(spans.span, in - start), .weights = weights});
    weights += spans.span;
  }
  return made;
}

// The number of weights without the zeros at the end.
int64_t UsedWeights(const WeightedSpan& span) {
  int64_t count = span.count;
  while (count > 0 && span.weights[count - 1] == 0) --count;
  return count;
}

// Leaves out weights of 0 at the end of spans. If the pixels are finite, this changes no bit: a sum
// starts from 0, so it is never -0, and adding 0 or -0 does not change it. All columns keep as many
// weights as the longest column needs, because a CPU predicts a loop best if the number of rounds
// is always the same. So the span of a column that needs fewer weights may reach beyond the image.
void LeaveZerosOut(std::vector<WeightedSpan>& rows, std::vector<WeightedSpan>& columns) {
  for (WeightedSpan& row : rows) row.count = UsedWeights(row);
  int64_t longest = 0;
  for (const WeightedSpan& column : columns) longest = std::max(longest, UsedWeights(column));
  for (WeightedSpan& column : columns) column.count = longest;
}

std::vector<WeightedSpan> SpansOf(const std::vector<CubicTap>& taps, int in) {
  std::vector<WeightedSpan> made;
  for (const CubicTap& tap : taps) {
    // If all four pixels lie beyond an edge, each counts as the pixel at the edge. So their
    // distance from the edge does not matter, and the start may be clamped.
    const int64_t start = std::clamp<int64_t>(tap.first, -4, in);
    made.push_back({.start = start, .count = 4, .weights = tap.weights.data()});
  }
  return made;
}

template <typename T, typename Rows>
void ResampleBilinear(const std::vector<LinearTap>& rows, const std::vector<LinearTap>& columns,
                      const PixelView<const T>& in, Rows& out) {
  const auto channels = static_cast<size_t>(in.channels);
  const size_t in_values = static_cast<size_t>(in.width) * channels;
  const size_t out_values = columns.size() * channels;
  std::vector<float> wide(in_values + kLinePadding);
  // The last two lines, and the input rows from which they were made.
  std::vector<float> lines[2];
  for (std::vector<float>& line : lines) line.resize(out_values + kLinePadding);
  int64_t rows_of_lines[2] = {-1, -1};
  // Returns the line of `row`, and makes this line if needed. Does not overwrite the line of
  // `other`.
  const auto line_of = [&](int64_t row, int64_t other) -> const float* {
    size_t slot = rows_of_lines[1] == row ? 1 : 0;
    if (rows_of_lines[slot] != row) {
      if (rows_of_lines[0] == other) slot = 1;
      rows_of_lines[slot] = row;
      Widen(in.row(row), in_values, wide.data());
      HWY_DYNAMIC_DISPATCH(LerpColumns)
      (wide.data(), columns.data(), columns.size(), channels, lines[slot].data());
    }
    return lines[slot].data();
  };
  const auto height = static_cast<int>(rows.size());
  for (int y = 0; y < height && !InterruptRequested(); ++y) {
    const LinearTap& row = rows[static_cast<size_t>(y)];
    const float* const top = line_of(row.lower, row.upper);
    const float* const bottom = line_of(row.upper, row.lower);
    HWY_DYNAMIC_DISPATCH(LerpLines)(top, bottom, row.weight, out_values, out.row(y));
    out.Finish(y);
  }
}

// Makes the rows of a height x width result.
template <typename T, typename Rows>
void ResampleTo(const ResampleOptions& options, const PixelView<const T>& in, int height, int width,
                bool mirrored, Rows out) {
  // A mirrored result has the same columns, from right to left.
  const auto arranged = [mirrored](auto columns) {
    if (mirrored) std::reverse(columns.begin(), columns.end());
    return columns;
  };
  if (const std::optional<SamplingKernel> kernel = SpansKernel(options); kernel.has_value()) {
    const SamplingSpans row_tables =
        MakeSamplingSpans(*kernel, in.height, height, options.antialias);
    const SamplingSpans column_tables =
        MakeSamplingSpans(*kernel, in.width, width, options.antialias);
    std::vector<WeightedSpan> rows = SpansOf(row_tables, in.height);
    std::vector<WeightedSpan> columns = arranged(SpansOf(column_tables, in.width));
    if (std::is_same_v<T, uint8_t>) LeaveZerosOut(rows, columns);
    return ResampleSpans(rows, columns, SumFrom::kZero, in, out);
  }
  if (options.method == ResampleMethod::kBilinear) {
    return ResampleBilinear(MakeLinearTaps(options.half_pixel_centres, in.height, height),
                            arranged(MakeLinearTaps(options.half_pixel_centres, in.width, width)),
                            in, out);
  }
  SYSTOLE_CHECK(options.method == ResampleMethod::kBicubic);  // kNearest has ResampleNearest().
  const std::vector<CubicTap> rows = MakeCubicTaps(options.half_pixel_centres, in.height, height);
  const std::vector<CubicTap> columns = MakeCubicTaps(options.half_pixel_centres, in.width, width);
  ResampleSpans(SpansOf(rows, in.height), arranged(SpansOf(columns, in.width)),
                SumFrom::kFirstProduct, in, out);
}

}  // namespace

template <typename T>
void FastResample(const ResampleOptions& options, const PixelView<const T>& in,
                  const PixelView<float>& out) {
  if (options.method == ResampleMethod::kArea) return Resample(options, in, out);
  SYSTOLE_CHECK(in.channels >= 1 && in.channels == out.channels);
  ResampleTo(options, in, out.height, out.width, /*mirrored=*/false, RowsInPlace{out});
}

template void FastResample(const ResampleOptions&, const PixelView<const uint8_t>&,
                           const PixelView<float>&);
template void FastResample(const ResampleOptions&, const PixelView<const float>&,
                           const PixelView<float>&);

bool GivesRows(const ResampleOptions& options) {
  return options.method != ResampleMethod::kArea && options.method != ResampleMethod::kNearest;
}

void FastResampleRows(const ResampleOptions& options, const PixelView<const uint8_t>& in,
                      int height, int width, bool mirrored, TakeRows take) {
  SYSTOLE_CHECK(in.channels >= 1);
  const size_t row_values = static_cast<size_t>(width) * static_cast<size_t>(in.channels);
  ResampleTo(options, in, height, width, mirrored, RowsInTurn(height, row_values, take));
}

}  // namespace systole
#endif  // HWY_ONCE
