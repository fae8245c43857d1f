#include "core/image/jpeg/eighth_scale.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "core/status/check.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "core/image/jpeg/eighth_scale.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
// After foreach_target.h:
#include "hwy/highway.h"

#ifndef SYSTOLE_CORE_IMAGE_EIGHTH_SCALE_CC_ONCE_
#define SYSTOLE_CORE_IMAGE_EIGHTH_SCALE_CC_ONCE_
namespace systole {
namespace {

// The fraction bits of libjpeg's fixed-point numbers: in the transform's constants, and in the
// results of its first pass.
constexpr int kConstantBits = 13;
constexpr int kPass1Bits = 2;
// The weights of coefficients 1, 3, 5 and 7, times 2^kConstantBits. A row or column becomes two
// samples, which are proportional to
//   4 * coefficient 0 + the sum of the weighted coefficients 1, 3, 5 and 7,
//   4 * coefficient 0 - the same sum.
// Coefficients 2, 4 and 6 are left out. The weight of coefficient k is sqrt(2) times the sum of
// cos((2 * x + 1) * k * pi / 16) over x = 0 .. 3.
constexpr int32_t kOdd1 = 29692;   // 3.624509785
constexpr int32_t kOdd3 = -10426;  // -1.272758580
constexpr int32_t kOdd5 = 6967;    // 0.850430095
constexpr int32_t kOdd7 = -5906;   // -0.720959822

// MakeHalvedRow reads whole vectors of MCUs. A vector has at most this many MCUs.
constexpr size_t kMaxLanes = 16;

}  // namespace
}  // namespace systole
#endif  // SYSTOLE_CORE_IMAGE_EIGHTH_SCALE_CC_ONCE_

HWY_BEFORE_NAMESPACE();
namespace systole {
namespace HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

template <int kBits>
HWY_INLINE int32_t RoundedShift(int32_t x) {
  return (x + (1 << (kBits - 1))) >> kBits;
}

HWY_INLINE uint8_t Clamped(int32_t x) { return static_cast<uint8_t>(std::clamp(x, 0, 255)); }

// Returns false if a coefficient is beyond its limit.
HWY_INLINE bool AreWithinLimits(const int16_t* block,
                                const EighthScale::Dequantization& dequantization) {
  const hn::CappedTag<int16_t, 64> d;
  const hn::RebindToUnsigned<decltype(d)> du;
  auto beyond = hn::Zero(du);
  for (size_t i = 0; i < 64; i += hn::Lanes(d)) {
    const auto size = hn::BitCast(du, hn::Abs(hn::LoadU(d, block + i)));
    const auto limits = hn::LoadU(du, dequantization.limits.data() + i);
    beyond = hn::Or(beyond, hn::SaturatedSub(size, limits));
  }
  return hn::AllTrue(du, hn::Eq(beyond, hn::Zero(du)));
}

// The transform's first pass.
bool SumColumns(const int16_t* block, const EighthScale::Dequantization& dequantization,
                EighthScale::ColumnSums& upper, EighthScale::ColumnSums& lower) {
  const hn::CappedTag<int32_t, 8> d;
  const hn::Rebind<int16_t, decltype(d)> d16;
  alignas(16) int16_t sums[2][8];
  for (size_t x = 0; x < 8; x += hn::Lanes(d)) {
    const auto multiplied = [&](size_t row) HWY_ATTR {
      return hn::Mul(hn::PromoteTo(d, hn::LoadU(d16, block + 8 * row + x)),
                     hn::LoadU(d, dequantization.factors.data() + 8 * row + x));
    };
    constexpr int kBits = kConstantBits - kPass1Bits + 2;
    const auto even =
        hn::Add(hn::ShiftLeft<kConstantBits + 2>(multiplied(0)), hn::Set(d, 1 << (kBits - 1)));
    const auto odd =
        hn::Add(hn::Add(multiplied(1), multiplied(3)), hn::Add(multiplied(5), multiplied(7)));
    hn::StoreU(hn::DemoteTo(d16, hn::ShiftRight<kBits>(hn::Add(even, odd))), d16, sums[0] + x);
    hn::StoreU(hn::DemoteTo(d16, hn::ShiftRight<kBits>(hn::Sub(even, odd))), d16, sums[1] + x);
  }
  std::memcpy(&upper, sums[0], sizeof(upper));
  std::memcpy(&lower, sums[1], sizeof(lower));
  return AreWithinLimits(block, dequantization);
}

// The transform's second pass: makes two samples from each MCU and writes each sample once or twice
// (`pixels` times). Reads and writes whole vectors of MCUs. Returns false if a sample has more than
// 10 bits. For such samples libjpeg's C code wraps around, but libjpeg's vector code clamps.
bool MakeHalvedRow(const EighthScale::ColumnSums* mcus, size_t num_mcus, int pixels, uint8_t* out) {
  const hn::CappedTag<int32_t, kMaxLanes> d;
  constexpr int kBits = kConstantBits + kPass1Bits + 3 + 2;
  const auto half = hn::Set(d, 1 << (kBits - 1));
  const auto zero = hn::Zero(d);
  auto beyond = zero;
  for (size_t i = 0; i < num_mcus; i += hn::Lanes(d)) {
    auto sums01 = zero, sums23 = zero, sums45 = zero, sums67 = zero;
    hn::LoadInterleaved4(d, mcus[i].data(), sums01, sums23, sums45, sums67);
    const auto weighted = [&](auto sums, int32_t weight) HWY_ATTR {
      return hn::Mul(hn::ShiftRight<16>(sums), hn::Set(d, weight));
    };
    // The lower 16 bits as a signed number, times 2^15.
    const auto even =
        hn::Add(hn::ShiftRight<16 - kConstantBits - 2>(hn::ShiftLeft<16>(sums01)), half);
    const auto odd = hn::Add(hn::Add(weighted(sums01, kOdd1), weighted(sums23, kOdd3)),
                             hn::Add(weighted(sums45, kOdd5), weighted(sums67, kOdd7)));
    const auto left = hn::ShiftRight<kBits>(hn::Add(even, odd));
    const auto right = hn::ShiftRight<kBits>(hn::Sub(even, odd));
    // XOR with the sign bits gives at most 511 for values from -512 to 511, and more for other
    // values.
    beyond = hn::Or(beyond, hn::Or(hn::Xor(left, hn::ShiftRight<31>(left)),
                                   hn::Xor(right, hn::ShiftRight<31>(right))));
    const auto sample = [&](auto value) HWY_ATTR {
      return hn::Min(hn::Max(hn::Add(value, hn::Set(d, 128)), zero), hn::Set(d, 255));
    };
    if (pixels == 1) {
      const hn::Rebind<uint16_t, decltype(d)> d16;
      const auto pairs = hn::Or(sample(left), hn::ShiftLeft<8>(sample(right)));
      hn::StoreU(hn::DemoteTo(d16, pairs), d16, reinterpret_cast<uint16_t*>(out + 2 * i));
    } else {
      const auto pairs = hn::Or(sample(left), hn::ShiftLeft<16>(sample(right)));
      hn::StoreU(hn::Or(pairs, hn::ShiftLeft<8>(pairs)), d,
                 reinterpret_cast<int32_t*>(out + 4 * i));
    }
  }
  return hn::AllFalse(d, hn::Gt(beyond, hn::Set(d, 511)));
}

// Makes one sample from each mean. Returns false if a coefficient is beyond its limit. Within the
// limit no sample has more than 10 bits.
bool MakePlainRow(const int16_t* means, size_t count,
                  const EighthScale::Dequantization& dequantization, uint8_t* out) {
  const int32_t factor = dequantization.factors[0];
  const int32_t limit = dequantization.limits[0];
  int32_t beyond = 0;
  for (size_t i = 0; i < count; ++i) {
    const int32_t mean = means[i];
    beyond |= limit - std::abs(mean);
    out[i] = Clamped(RoundedShift<3>(mean * factor) + 128);
  }
  return beyond >= 0;
}

// ITU-R BT.601 in libjpeg's fixed point of 16 bits (jdcolor.c).
void ToRgb(const uint8_t* luma, const uint8_t* blue, const uint8_t* red, size_t width,
           uint8_t* rgb) {
  for (size_t i = 0; i < width; ++i, rgb += 3) {
    const int32_t cb = blue[i] - 128;
    const int32_t cr = red[i] - 128;
    rgb[0] = Clamped(luma[i] + RoundedShift<16>(91881 * cr));
    rgb[1] = Clamped(luma[i] + RoundedShift<16>(-22554 * cb - 46802 * cr));
    rgb[2] = Clamped(luma[i] + RoundedShift<16>(116130 * cb));
  }
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace systole
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace systole {
namespace {

HWY_EXPORT(SumColumns);
HWY_EXPORT(MakeHalvedRow);
HWY_EXPORT(MakePlainRow);
HWY_EXPORT(ToRgb);

// The largest dequantized coefficient that is accepted. Undamaged files of 8-bit samples have only
// smaller coefficients. If no coefficient is larger, the sum of every column fits into 16 bits.
constexpr int32_t kMaxValue = 2047;

// The weight of row `row` of a block in the sum of a column. 0 if the row is left out.
int32_t RowWeight(size_t row) {
  switch (row) {
    case 0:
      return 1;
    case 1:
      return kOdd1;
    case 3:
      return kOdd3;
    case 5:
      return kOdd5;
    case 7:
      return kOdd7;
    default:
      return 0;
  }
}

EighthScale::Dequantization MakeDequantization(const std::array<uint16_t, 64>& quantization) {
  EighthScale::Dequantization dequantization;
  for (size_t i = 0; i < 64; ++i) {
    const bool used = RowWeight(i / 8) != 0 && RowWeight(i % 8) != 0;
    const int32_t factor = used ? quantization[i] : 0;
    dequantization.factors[i] = factor * RowWeight(i / 8);
    dequantization.limits[i] = static_cast<uint16_t>(factor == 0 ? 0xffff : kMaxValue / factor);
  }
  return dequantization;
}

}  // namespace

void EighthScale::Start(const Format& format, int first_mcu, int num_mcus) {
  SYSTOLE_CHECK(format.num_planes == 1 || format.num_planes == kMaxPlanes);
  format_ = format;
  first_mcu_ = first_mcu;
  num_mcus_ = static_cast<size_t>(num_mcus);
  for (int i = 0; i < format.num_planes; ++i) {
    Plane& plane = planes_[i];
    const bool luma = i == 0;
    plane.width = luma ? format.mcu_width : 1;
    plane.height = luma ? format.mcu_height : 1;
    plane.dequantization = MakeDequantization(format.quantization[i]);
    int blocks = 0;
    for (int block = 0; block < format.num_blocks; ++block) {
      if (format.planes[block] == i) plane.blocks[blocks++] = block;
    }
    SYSTOLE_CHECK(blocks == plane.width * plane.height);
    // Blocks of a halved plane must have all their coefficients. IsOnePixel() (jpeg_entropy.cc)
    // decides from which blocks the decoder takes only the first coefficient. The condition in
    // IsOnePixel() is the opposite of this one.
    plane.halved = !luma && format.mcu_width % 2 == 0 && format.mcu_height % 2 == 0;
    plane.stride = num_mcus_ * static_cast<size_t>(plane.width);
    plane.row.resize((num_mcus_ + kMaxLanes) * static_cast<size_t>(format.mcu_width));
    if (plane.halved) {
      // The sums beyond the last MCU stay 0, so they never exceed a limit.
      for (auto& sums : plane.sums) sums.assign(num_mcus_ + kMaxLanes, {});
    } else {
      plane.means.resize(plane.stride * static_cast<size_t>(plane.height));
    }
  }
}

bool EighthScale::AddMcu(const HuffmanDecoder::Block* blocks, int column) {
  const auto mcu = static_cast<size_t>(column - first_mcu_);
  bool ok = true;
  for (int i = 0; i < format_.num_planes; ++i) {
    Plane& plane = planes_[i];
    if (plane.halved) {
      ok &= HWY_DYNAMIC_DISPATCH(SumColumns)(blocks[plane.blocks[0]], plane.dequantization,
                                             plane.sums[0][mcu], plane.sums[1][mcu]);
      continue;
    }
    int16_t* row = plane.means.data() + mcu * static_cast<size_t>(plane.width);
    const int* block = plane.blocks.data();
    for (int y = 0; y < plane.height; ++y, row += plane.stride) {
      for (int x = 0; x < plane.width; ++x) row[x] = blocks[*block++][0];
    }
  }
  return ok;
}

bool EighthScale::MakeRow(Plane& plane, int row) {
  if (plane.halved) {
    const auto& sums = plane.sums[row < format_.mcu_height / 2 ? 0 : 1];
    return HWY_DYNAMIC_DISPATCH(MakeHalvedRow)(sums.data(), num_mcus_, format_.mcu_width / 2,
                                               plane.row.data());
  }
  const auto y = static_cast<size_t>(row * plane.height / format_.mcu_height);
  const bool ok = HWY_DYNAMIC_DISPATCH(MakePlainRow)(
      plane.means.data() + y * plane.stride, plane.stride, plane.dequantization, plane.row.data());
  const auto repeats = static_cast<size_t>(format_.mcu_width / plane.width);
  // Goes from the end to the start, so that no sample is overwritten before it is repeated.
  for (size_t i = repeats > 1 ? plane.stride : 0; i-- > 0;) {
    std::fill_n(plane.row.data() + i * repeats, repeats, uint8_t{plane.row[i]});
  }
  return ok;
}

bool EighthScale::WriteRow(int row, int x, int width, uint8_t* out) {
  const auto first = static_cast<size_t>(x - first_mcu_ * format_.mcu_width);
  const auto count = static_cast<size_t>(width);
  bool ok = true;
  for (int i = 0; i < format_.num_planes; ++i) ok &= MakeRow(planes_[i], row);
  const uint8_t* const luma = planes_[0].row.data() + first;
  if (format_.channels == 1) {
    std::copy_n(luma, count, out);
  } else if (format_.num_planes == 1) {
    for (size_t i = 0; i < count; ++i) std::fill_n(out + 3 * i, 3, luma[i]);
  } else {
    HWY_DYNAMIC_DISPATCH(ToRgb)
    (luma, planes_[1].row.data() + first, planes_[2].row.data() + first, count, out);
  }
  return ok;
}

}  // namespace systole
#endif  // HWY_ONCE
