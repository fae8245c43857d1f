#include "core/image/resize/bilinear_resizer.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/interrupt/interrupt.h"
#include "core/status/check.h"
#include "core/status/status_macros.h"
#include "hwy/cache_control.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "core/image/resize/bilinear_resizer.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
// After foreach_target.h:
#include "core/numeric/cast-inl.h"
#include "hwy/highway.h"

#ifndef SYSTOLE_CORE_IMAGE_BILINEAR_RESIZER_CC_ONCE_
#define SYSTOLE_CORE_IMAGE_BILINEAR_RESIZER_CC_ONCE_
namespace systole {
namespace {

// Lanes of the widest vector that is used. Wider vectors are not faster, because loads and shuffles
// limit the kernels.
constexpr size_t kMaxLanes = 16;
// Three vectors hold whole pixels, of one or of three channels. So the factors of the channels
// repeat after this many values.
constexpr size_t kPattern = 3 * kMaxLanes;
// Vectors are stored in pairs, so a block has two patterns.
constexpr size_t kBlock = 2 * kPattern;

// The horizontal tables of a row; BilinearResizer's members describe them.
struct ColumnTables {
  size_t values;  // Padded to kBlock.
  const int32_t* lower_offset;
  const int32_t* upper_offset;
  const float* weight;
  const int32_t* window;
  const uint32_t* lower_shuffle;
  const uint32_t* upper_shuffle;
};

}  // namespace
}  // namespace systole
#endif  // SYSTOLE_CORE_IMAGE_BILINEAR_RESIZER_CC_ONCE_

HWY_BEFORE_NAMESPACE();
namespace systole {
namespace HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

// Resizes a row horizontally. The sources of a value may be anywhere in the row.
void GatherLineKernel(const uint8_t* HWY_RESTRICT row, const ColumnTables& tables,
                      float* HWY_RESTRICT line) {
  for (size_t i = 0; i < tables.values; ++i) {
    const float a = row[tables.lower_offset[i]];
    const float b = row[tables.upper_offset[i]];
    line[i] = a + (b - a) * tables.weight[i];
  }
}

#if HWY_TARGET == HWY_SCALAR
void WindowLinesKernel(const uint8_t* row, const uint8_t* next_row, const ColumnTables& tables,
                       float* line, float* next_line) {
  GatherLineKernel(row, tables, line);
  if (next_row != nullptr) GatherLineKernel(next_row, tables, next_line);
}
#else
// Loads one 16-byte window of the row for each 128-bit block of the vector.
template <class D8>
HWY_INLINE hn::Vec<D8> LoadWindows(D8 d8, const uint8_t* row, const int32_t* window) {
  if constexpr (hn::MaxLanes(D8()) == 16) {
    return hn::LoadU(d8, row + window[0]);
  } else {
    const hn::Half<D8> half;
    const auto low = LoadWindows(half, row, window);
    return hn::Combine(d8, LoadWindows(half, row, window + hn::MaxLanes(half) / 16), low);
  }
}

// Resizes rows horizontally. The source bytes of every 4 values lie within a window of 16 bytes.
// Two byte shuffles of the window widen the source bytes to 32 bits.
template <bool kTwoRows>
HWY_INLINE void WindowLines(const uint8_t* HWY_RESTRICT row, const uint8_t* HWY_RESTRICT next_row,
                            const ColumnTables& tables_in_memory, float* HWY_RESTRICT line,
                            float* HWY_RESTRICT next_line) {
  const hn::CappedTag<float, kMaxLanes> d;
  const hn::RebindToSigned<decltype(d)> di;
  const hn::RebindToUnsigned<decltype(d)> du;
  const hn::Repartition<uint8_t, decltype(d)> d8;
  const size_t lanes = hn::Lanes(d);
  // The copy saves loads: the compiler must assume that a store to a line changes pointers in
  // memory.
  const ColumnTables tables = tables_in_memory;
  for (size_t i = 0; i < tables.values; i += lanes) {
    const auto lower_shuffle = hn::BitCast(d8, hn::Load(du, tables.lower_shuffle + i));
    const auto upper_shuffle = hn::BitCast(d8, hn::Load(du, tables.upper_shuffle + i));
    const auto t = hn::Load(d, tables.weight + i);
    const auto resize = [&](const uint8_t* from, float* to) HWY_ATTR {
      const auto bytes = LoadWindows(d8, from, tables.window + i / 4);
      const auto a =
          hn::ConvertTo(d, hn::BitCast(di, hn::TableLookupBytesOr0(bytes, lower_shuffle)));
      const auto b =
          hn::ConvertTo(d, hn::BitCast(di, hn::TableLookupBytesOr0(bytes, upper_shuffle)));
      hn::Store(hn::Add(a, hn::Mul(hn::Sub(b, a), t)), d, to + i);
    };
    resize(row, line);
    if constexpr (kTwoRows) resize(next_row, next_line);
  }
}

// Resizes one row, or two rows that share the loads of the tables.
void WindowLinesKernel(const uint8_t* row, const uint8_t* next_row, const ColumnTables& tables,
                       float* line, float* next_line) {
  if (next_row == nullptr) return WindowLines<false>(row, nullptr, tables, line, nullptr);
  WindowLines<true>(row, next_row, tables, line, next_line);
}
#endif

// Interpolates `values` values vertically, normalises and casts them. The lines are padded to whole
// blocks.
template <class Store>
HWY_INLINE void FinishAs(const float* HWY_RESTRICT top, const float* HWY_RESTRICT bottom,
                         float weight, const float* scale, const float* bias, size_t values,
                         uint8_t* HWY_RESTRICT out, Store store) {
  using Value = typename Store::Value;
  const hn::CappedTag<float, kMaxLanes> d;
  const size_t lanes = hn::Lanes(d);
  const auto t = hn::Set(d, weight);
  const auto scale0 = hn::LoadU(d, scale), bias0 = hn::LoadU(d, bias);
  const auto scale1 = hn::LoadU(d, scale + lanes), bias1 = hn::LoadU(d, bias + lanes);
  const auto scale2 = hn::LoadU(d, scale + 2 * lanes), bias2 = hn::LoadU(d, bias + 2 * lanes);
  using V = hn::Vec<decltype(d)>;
  const auto one = [&](size_t i, V scale_c, V bias_c) HWY_ATTR {
    const auto a = hn::Load(d, top + i);
    const auto b = hn::Load(d, bottom + i);
    const auto value = hn::Add(a, hn::Mul(hn::Sub(b, a), t));
    return hn::Add(hn::Mul(value, scale_c), bias_c);
  };
  const auto block = [&](size_t i, Value* to) HWY_ATTR {
    store(d, one(i, scale0, bias0), one(i + lanes, scale1, bias1), to);
    store(d, one(i + 2 * lanes, scale2, bias2), one(i + 3 * lanes, scale0, bias0), to + 2 * lanes);
    store(d, one(i + 4 * lanes, scale1, bias1), one(i + 5 * lanes, scale2, bias2), to + 4 * lanes);
  };
  // Only `store` writes through this pointer. All types of `store` but StreamFloat32 take any
  // alignment.
  Value* to = reinterpret_cast<Value*>(out);
  size_t i = 0;
  for (; i + 6 * lanes <= values; i += 6 * lanes) block(i, to + i);
  if (i < values) {
    Value rest[kBlock];
    block(i, rest);
    std::memcpy(out + i * sizeof(Value), rest, (values - i) * sizeof(Value));
  }
}

// Stores past the caches. Rows must be aligned and consist of whole blocks.
struct StreamFloat32 {
  using Value = float;
  template <class D>
  HWY_INLINE void operator()(D d, hn::Vec<D> low, hn::Vec<D> high, Value* out) const {
    hn::Stream(low, d, out);
    hn::Stream(high, d, out + hn::Lanes(d));
  }
};

void FinishRowKernel(const float* top, const float* bottom, float weight, const float* scale,
                     const float* bias, size_t values, PixelType type, bool stream, uint8_t* out) {
  switch (type) {
    case PixelType::kUint8:
      return FinishAs(top, bottom, weight, scale, bias, values, out, StoreUint8());
    case PixelType::kFloat32:
      return stream ? FinishAs(top, bottom, weight, scale, bias, values, out, StreamFloat32())
                    : FinishAs(top, bottom, weight, scale, bias, values, out, StoreFloat32());
    case PixelType::kBfloat16:
      return FinishAs(top, bottom, weight, scale, bias, values, out, StoreNumberBf16());
    case PixelType::kFloat16:
      return FinishAs(top, bottom, weight, scale, bias, values, out, StoreFloat16());
  }
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace systole
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace systole {
namespace {

HWY_EXPORT(GatherLineKernel);
HWY_EXPORT(WindowLinesKernel);
HWY_EXPORT(FinishRowKernel);

// An output row is fetched into the cache this many rows before it is written. The output is part
// of a slice, which is larger than the caches. Without the prefetch, a store would wait for memory,
// and all later stores would wait for this store.
constexpr int kPrefetchedRows = 8;
constexpr size_t kCacheLineBytes = 64;
// Images of float32 of this size and more are written past the caches. Batches of such images leave
// the caches before they are read. A store through the caches would first fetch the cache line,
// which would double the memory traffic.
constexpr int64_t kMinStreamedBytes = 256 << 10;
constexpr int kMaxOutputSide = 16384;
constexpr int kMaxInputSide = 65535;
// 255 * kMaxFactor + kMaxFactor is finite in float32. So no output is infinite or NaN.
constexpr float kMaxFactor = 1e30f;
// The byte shuffle that makes a 32-bit lane of one byte: it clears the three upper bytes.
constexpr uint32_t kWiden = 0x80808000u;

absl::Status CheckFactor(const std::vector<float>& factor, int channels, const char* name) {
  if (factor.size() != 1 && factor.size() != static_cast<size_t>(channels)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "BilinearResizerOptions.", name, " has ", factor.size(), " entries, want 1 or ", channels));
  }
  for (const float value : factor) {
    if (!(std::fabs(value) <= kMaxFactor)) {  // True for NaN, too.
      return absl::InvalidArgumentError(absl::StrCat("BilinearResizerOptions.", name, " contains ",
                                                     value, ", want at most ", kMaxFactor));
    }
  }
  return absl::OkStatus();
}

std::vector<float> Pattern(const std::vector<float>& factor, int channels) {
  std::vector<float> pattern(kPattern);
  for (size_t i = 0; i < kPattern; ++i) {
    pattern[i] = factor[factor.size() == 1 ? 0 : i % channels];
  }
  return pattern;
}

}  // namespace

absl::StatusOr<BilinearResizer> BilinearResizer::Create(BilinearResizerOptions options) {
  if (options.height < 1 || options.height > kMaxOutputSide || options.width < 1 ||
      options.width > kMaxOutputSide) {
    return absl::InvalidArgumentError(absl::StrCat("output size is ", options.height, "x",
                                                   options.width, ", want 1 to ", kMaxOutputSide,
                                                   " each"));
  }
  if (options.channels != 1 && options.channels != 3) {
    return absl::InvalidArgumentError(
        absl::StrCat("BilinearResizerOptions.channels is ", options.channels, ", want 1 or 3"));
  }
  SYSTOLE_RETURN_IF_ERROR(CheckFactor(options.scale, options.channels, "scale"));
  SYSTOLE_RETURN_IF_ERROR(CheckFactor(options.bias, options.channels, "bias"));
  return BilinearResizer(std::move(options));
}

BilinearResizer::BilinearResizer(BilinearResizerOptions options)
    : options_(std::move(options)),
      values_(static_cast<size_t>(options_.width) * options_.channels),
      padded_values_((values_ + kBlock - 1) / kBlock * kBlock),
      scale_pattern_(Pattern(options_.scale, options_.channels)),
      bias_pattern_(Pattern(options_.bias, options_.channels)) {
  output_bytes_ = int64_t{options_.height} * values_ * PixelTypeBytes(options_.type);
  // In the padding, the weights stay 0, and BuildColumns() sets the other entries.
  lower_offset_.resize(padded_values_);
  upper_offset_.resize(padded_values_);
  weight_.resize(padded_values_);
  window_.resize(padded_values_ / 4);
  lower_shuffle_.resize(padded_values_, kWiden);
  upper_shuffle_.resize(padded_values_, kWiden);
  for (auto& line : lines_) line.resize(padded_values_);
  next_out_ = options_.height;  // done() is true before Start.
}

void BilinearResizer::FillTaps(const SourceSide& in, int out, std::vector<Tap>* taps) {
  taps->resize(out);
  const float scale = in.extent / static_cast<float>(out);
  const float offset = in.begin - 0.5f;
  const int last = in.pixels - 1;
  for (int i = 0; i < out; ++i) {
    const float source = (static_cast<float>(i) + 0.5f) * scale + offset;  // >= -0.5
    int floor = static_cast<int>(source);
    if (static_cast<float>(floor) > source) --floor;
    const float weight = source - static_cast<float>(floor);
    const int ceil = weight > 0 ? floor + 1 : floor;
    // The outer std::min() keeps `lower` inside the image even if rounding makes `source` too
    // large. This makes no result differ from TensorFlow's.
    (*taps)[i] = {std::min(std::max(floor, 0), last), std::min(ceil, last), weight};
  }
}

void BilinearResizer::BuildColumns(const SourceSide& in_columns, bool flip) {
  in_columns_ = in_columns;
  flip_ = flip;
  FillTaps(in_columns, options_.width, &columns_);
  if (flip) std::reverse(columns_.begin(), columns_.end());
  const int channels = options_.channels;
  size_t i = 0;
  for (const Tap& tap : columns_) {
    for (int c = 0; c < channels; ++c, ++i) {
      lower_offset_[i] = tap.lower * channels + c;
      upper_offset_[i] = tap.upper * channels + c;
      weight_[i] = tap.weight;
    }
  }
  // The padding repeats the last value's bytes, so that it never widens a window.
  for (; i < padded_values_; ++i) {
    lower_offset_[i] = lower_offset_[values_ - 1];
    upper_offset_[i] = upper_offset_[values_ - 1];
  }
  int widest = 0;
  for (size_t group = 0; group < padded_values_ / 4; ++group) {
    const int32_t* lower = lower_offset_.data() + group * 4;
    const int32_t* upper = upper_offset_.data() + group * 4;
    const int begin = std::min(std::min(lower[0], lower[1]), std::min(lower[2], lower[3]));
    const int last = std::max(std::max(upper[0], upper[1]), std::max(upper[2], upper[3]));
    widest = std::max(widest, last - begin + 1);
    window_[group] = begin;
    for (size_t j = 0; j < 4; ++j) {
      lower_shuffle_[group * 4 + j] = kWiden | static_cast<uint32_t>(lower[j] - begin);
      upper_shuffle_[group * 4 + j] = kWiden | static_cast<uint32_t>(upper[j] - begin);
    }
  }
  windows_fit_ = widest <= 16;
}

// Makes the vertical tables. Their taps have line numbers in place of input rows. Line n is made
// from the n-th needed input row, counted from 0.
void BilinearResizer::BuildRows(const SourceSide& in_rows) {
  in_rows_ = in_rows;
  FillTaps(in_rows, options_.height, &rows_);
  line_rows_.clear();
  const auto line_of = [&](int row) {
    if (line_rows_.empty() || line_rows_.back() < row) line_rows_.push_back(row);
    // `row` is now the input row of the last line or, if it is a Tap::lower, perhaps of the line
    // before the last one.
    return static_cast<int>(line_rows_.size()) - (line_rows_.back() == row ? 1 : 2);
  };
  for (Tap& tap : rows_) {
    tap.lower = line_of(tap.lower);
    tap.upper = line_of(tap.upper);
  }
}

absl::Status BilinearResizer::Start(const SourceSide& in_rows, const SourceSide& in_columns,
                                    bool flip, absl::Span<uint8_t> out) {
  for (const SourceSide& side : {in_rows, in_columns}) {
    if (side.pixels < 1 || side.pixels > kMaxInputSide) {
      return absl::InvalidArgumentError(absl::StrCat("input size is ", in_rows.pixels, "x",
                                                     in_columns.pixels, ", want 1 to ",
                                                     kMaxInputSide, " each"));
    }
    if (!(side.begin >= 0 && side.extent > 0 &&
          side.begin + side.extent <= static_cast<float>(side.pixels))) {
      return absl::InvalidArgumentError(
          absl::StrCat("the part of ", side.pixels, " input pixels begins at ", side.begin,
                       " and has ", side.extent, " pixels, want it inside the input"));
    }
  }
  if (static_cast<int64_t>(out.size()) < output_bytes_) {
    return absl::InvalidArgumentError(
        absl::StrCat("output has ", out.size(), " bytes, want at least ", output_bytes_));
  }
  if (in_columns != in_columns_ || flip != flip_) BuildColumns(in_columns, flip);
  if (in_rows != in_rows_) BuildRows(in_rows);
  next_in_ = 0;
  next_line_ = 0;
  next_out_ = 0;
  out_ = out;
  stream_ = options_.type == PixelType::kFloat32 && !options_.read_soon &&
            output_bytes_ >= kMinStreamedBytes && values_ % kBlock == 0 &&
            reinterpret_cast<uintptr_t>(out.data()) % kCacheLineBytes == 0;
  for (int row = 0; row < kPrefetchedRows; ++row) PrefetchRow(row);
  return absl::OkStatus();
}

void BilinearResizer::AddRows(const uint8_t* rows, size_t stride_bytes, int count) {
  SYSTOLE_CHECK(!done() && next_in_ + count <= in_rows_.pixels);
  const auto find = [&, end = next_in_ + count](int line) -> const uint8_t* {
    if (line >= static_cast<int>(line_rows_.size()) || line_rows_[line] >= end) return nullptr;
    return rows + (line_rows_[line] - (end - count)) * stride_bytes;
  };
  next_in_ += count;
  while (const uint8_t* row = find(next_line_)) {
    MakeLines(row, find(next_line_ + 1));
    while (!done() && rows_[next_out_].upper < next_line_) {
      // If the image is no longer needed, skips the rest of it.
      if (InterruptRequested()) return Finish();
      WriteRow(rows_[next_out_]);
    }
  }
  if (done()) Finish();
}

void BilinearResizer::Finish() {
  next_out_ = options_.height;
  // The written rows must be in memory before another thread reads them or, if the image was given
  // up, overwrites them.
  if (stream_) hwy::FlushStream();
}

// Makes one line, or two if `next_row` is not null.
void BilinearResizer::MakeLines(const uint8_t* row, const uint8_t* next_row) {
  const ColumnTables tables = {padded_values_,       lower_offset_.data(), upper_offset_.data(),
                               weight_.data(),       window_.data(),       lower_shuffle_.data(),
                               upper_shuffle_.data()};
  float* line = lines_[next_line_ % kLines].data();
  float* next_line = lines_[(next_line_ + 1) % kLines].data();
  next_line_ += next_row == nullptr ? 1 : 2;
  if (windows_fit_) {
    HWY_DYNAMIC_DISPATCH(WindowLinesKernel)(row, next_row, tables, line, next_line);
    return;
  }
  HWY_DYNAMIC_DISPATCH(GatherLineKernel)(row, tables, line);
  if (next_row != nullptr) HWY_DYNAMIC_DISPATCH(GatherLineKernel)(next_row, tables, next_line);
}

uint8_t* BilinearResizer::OutputRow(int row) const {
  return out_.data() + row * values_ * PixelTypeBytes(options_.type);
}

void BilinearResizer::PrefetchRow(int out_row) const {
  if (out_row >= options_.height || stream_) return;
  const uint8_t* const end = OutputRow(out_row + 1);
  for (const uint8_t* line = OutputRow(out_row); line < end; line += kCacheLineBytes) {
    hwy::Prefetch(line);
  }
}

void BilinearResizer::WriteRow(const Tap& tap) {
  PrefetchRow(next_out_ + kPrefetchedRows);
  HWY_DYNAMIC_DISPATCH(FinishRowKernel)
  (lines_[tap.lower % kLines].data(), lines_[tap.upper % kLines].data(), tap.weight,
   scale_pattern_.data(), bias_pattern_.data(), values_, options_.type, stream_,
   OutputRow(next_out_));
  ++next_out_;
}

}  // namespace systole
#endif  // HWY_ONCE
