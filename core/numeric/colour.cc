#include "core/numeric/colour.h"

#include <algorithm>
#include <cstddef>
#include <limits>

#include "core/numeric/normalise.h"
#include "core/status/check.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "core/numeric/colour.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
// After foreach_target.h:
#include "hwy/highway.h"

#ifndef SYSTOLE_CORE_NUMERIC_COLOUR_CC_ONCE_
#define SYSTOLE_CORE_NUMERIC_COLOUR_CC_ONCE_
namespace systole {
namespace {

// How many pixels are computed together. Their colours are in separate arrays, which fit in the
// first-level cache.
constexpr int kBlock = 128;

}  // namespace
}  // namespace systole
#endif  // SYSTOLE_CORE_NUMERIC_COLOUR_CC_ONCE_

// Where a pixel's values decide which formula applies, each lane computes all formulas, and a mask
// selects one of the results. Lanes beyond the last pixel compute, too, but their results stay in
// the Block and do not reach the output.
HWY_BEFORE_NAMESPACE();
namespace systole {
namespace HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

struct Block {
  alignas(64) float r[kBlock];
  alignas(64) float g[kBlock];
  alignas(64) float b[kBlock];
};

HWY_INLINE float Unit(float value) { return value; }
HWY_INLINE float Unit(uint8_t value) { return static_cast<float>(value) * kUint8ToUnit; }

// Loads `count` pixels, and fills the rest of the block with black pixels.
template <typename T>
HWY_INLINE void Load(const T* HWY_RESTRICT in, int count, Block& block) {
  for (int i = 0; i < count; ++i) {
    block.r[i] = Unit(in[3 * i]);
    block.g[i] = Unit(in[3 * i + 1]);
    block.b[i] = Unit(in[3 * i + 2]);
  }
  for (int i = count; i < kBlock; ++i) block.r[i] = block.g[i] = block.b[i] = 0;
}

HWY_INLINE void Store(const Block& block, int count, float* HWY_RESTRICT out) {
  for (int i = 0; i < count; ++i) {
    out[3 * i] = block.r[i];
    out[3 * i + 1] = block.g[i];
    out[3 * i + 2] = block.b[i];
  }
}

// NaN gives 0.
HWY_INLINE void ToUint8(const float* HWY_RESTRICT in, uint8_t* HWY_RESTRICT out) {
  for (int i = 0; i < kBlock; ++i) {
    const float scaled = in[i] * 255.5f;
    const float positive = scaled > 0 ? scaled : 0;
    out[i] = static_cast<uint8_t>(static_cast<int>(positive < 255 ? positive : 255));
  }
}

HWY_INLINE void Store(const Block& block, int count, uint8_t* HWY_RESTRICT out) {
  alignas(64) uint8_t r[kBlock], g[kBlock], b[kBlock];
  ToUint8(block.r, r);
  ToUint8(block.g, g);
  ToUint8(block.b, b);
  for (int i = 0; i < count; ++i) {
    out[3 * i] = r[i];
    out[3 * i + 1] = g[i];
    out[3 * i + 2] = b[i];
  }
}

using Floats = hn::ScalableTag<float>;
using V = hn::Vec<Floats>;
using M = hn::Mask<Floats>;

// float(double(x) + double(third) * (2.0 / 6.0)). A vector of doubles has half as many lanes as a
// vector of floats, so AddThirds() computes each half by itself.
template <class D>
HWY_INLINE hn::Vec<D> AddThirdsTo(D d, hn::Vec<D> x, hn::Vec<D> third) {
  const hn::Rebind<double, D> dd;
  return hn::DemoteTo(
      d, hn::Add(hn::PromoteTo(dd, x), hn::Mul(hn::PromoteTo(dd, third), hn::Set(dd, 2.0 / 6.0))));
}
HWY_INLINE V AddThirds(V x, V third) {
  const Floats d;
#if HWY_TARGET == HWY_SCALAR
  return AddThirdsTo(d, x, third);
#else
  const hn::Half<Floats> half;
  return hn::Combine(d, AddThirdsTo(half, hn::UpperHalf(half, x), hn::UpperHalf(half, third)),
                     AddThirdsTo(half, hn::LowerHalf(half, x), hn::LowerHalf(half, third)));
#endif
}

// Whether `sixth`, the number of a sixth of the hue circle, is `one` or `other`.
HWY_INLINE M IsOneOf(V sixth, float one, float other) {
  const Floats d;
  return hn::Or(hn::Eq(sixth, hn::Set(d, one)), hn::Eq(sixth, hn::Set(d, other)));
}

HWY_INLINE V EvenPart(V sixth) {
  const Floats d;
  return hn::Mul(hn::Floor(hn::Mul(sixth, hn::Set(d, 0.5f))), hn::Set(d, 2.0f));
}

HWY_INLINE void Saturate(float factor, int count, Block& block) {
  const Floats d;
  const V zero = hn::Zero(d);
  const V one = hn::Set(d, 1.0f);
  for (int i = 0; i < count; i += static_cast<int>(hn::Lanes(d))) {
    const V r = hn::Load(d, block.r + i);
    const V g = hn::Load(d, block.g + i);
    const V b = hn::Load(d, block.b + i);
    // `value` is std::max(r, std::max(g, b)), and std::min(r, std::min(g, b)) is subtracted from
    // it below. For NaN it matters which argument std::max and std::min return.
    const V larger = hn::IfThenElse(hn::Lt(g, b), b, g);
    const V value = hn::IfThenElse(hn::Lt(r, larger), larger, r);
    const V smaller = hn::IfThenElse(hn::Lt(b, g), b, g);
    const V range = hn::Sub(value, hn::IfThenElse(hn::Lt(smaller, r), smaller, r));
    const V saturation = hn::IfThenElseZero(hn::Gt(value, zero), hn::Div(range, value));
    const V norm = hn::Div(one, hn::Mul(hn::Set(d, 6.0f), range));
    const M is_red = hn::Eq(r, value);
    const M is_green = hn::Eq(g, value);
    const V difference = hn::IfThenElse(is_red, hn::Sub(g, b),
                                        hn::IfThenElse(is_green, hn::Sub(b, r), hn::Sub(r, g)));
    const V third = hn::IfThenElse(is_red, zero, hn::IfThenElse(is_green, one, hn::Set(d, 2.0f)));
    const V angle = AddThirds(hn::Mul(norm, difference), third);
    const V turned = hn::IfThenElse(hn::Lt(angle, zero), hn::Add(angle, one), angle);
    const M is_grey = hn::Lt(range, hn::Set(d, std::numeric_limits<float>::min()));
    const V sixths = hn::Mul(hn::IfThenElse(is_grey, zero, turned), hn::Set(d, 6.0f));

    const V scaled = hn::Mul(saturation, hn::Set(d, factor));
    const V positive = hn::IfThenElseZero(hn::Lt(zero, scaled), scaled);
    const V c = hn::Mul(hn::IfThenElse(hn::Lt(positive, one), positive, one), value);
    const V m = hn::Sub(value, c);
    // `sixth` is 0 to 5, except that NaN gives NaN and a whole circle gives 6. NaN and 6 match no
    // case below, so red, green and blue all become m.
    const V sixth = hn::Floor(sixths);
    const V turn = hn::Sub(sixths, EvenPart(sixth));
    const V x = hn::Mul(c, hn::Sub(one, hn::Abs(hn::Sub(turn, one))));
    const V red =
        hn::IfThenElse(IsOneOf(sixth, 0, 5), c, hn::IfThenElseZero(IsOneOf(sixth, 1, 4), x));
    const V green =
        hn::IfThenElse(IsOneOf(sixth, 1, 2), c, hn::IfThenElseZero(IsOneOf(sixth, 0, 3), x));
    const V blue =
        hn::IfThenElse(IsOneOf(sixth, 3, 4), c, hn::IfThenElseZero(IsOneOf(sixth, 2, 5), x));
    hn::Store(hn::Add(red, m), d, block.r + i);
    hn::Store(hn::Add(green, m), d, block.g + i);
    hn::Store(hn::Add(blue, m), d, block.b + i);
  }
}

// Turns each hue by `delta`, which is in sixths of the circle.
HWY_INLINE void Turn(float delta, int count, Block& block) {
  const Floats d;
  const V zero = hn::Zero(d);
  const V one = hn::Set(d, 1.0f);
  const V six = hn::Set(d, 6.0f);
  for (int i = 0; i < count; i += static_cast<int>(hn::Lanes(d))) {
    const V r = hn::Load(d, block.r + i);
    const V g = hn::Load(d, block.g + i);
    const V b = hn::Load(d, block.b + i);
    // Red and green are sorted first; then blue is below, above or between them.
    const M rises = hn::Lt(r, g);
    const V low = hn::IfThenElse(rises, r, g);
    const V high = hn::IfThenElse(rises, g, r);
    const M below = hn::Lt(b, low);
    const M above = hn::AndNot(below, hn::Gt(b, high));
    const M between = hn::Not(hn::Or(below, above));
    const V min = hn::IfThenElse(below, b, low);
    const V max = hn::IfThenElse(above, b, high);
    const V middle = hn::IfThenElse(below, low, hn::IfThenElse(above, high, b));
    const auto choose = [&](float if_below, float if_above, float if_between) HWY_ATTR {
      return hn::IfThenElse(below, hn::Set(d, if_below),
                            hn::IfThenElse(above, hn::Set(d, if_above), hn::Set(d, if_between)));
    };
    const V begin = hn::IfThenElse(rises, choose(1, 3, 2), choose(0, 4, 5));
    // In the odd sixths of the circle, the middle channel decreases as the angle grows.
    const V ratio = hn::Div(hn::Sub(middle, min), hn::Sub(max, min));
    const V part = hn::IfThenElse(hn::Xor(rises, between), hn::Sub(one, ratio), ratio);
    const V angle = hn::IfThenElse(hn::Eq(max, min), zero, hn::Add(begin, part));

    // The angle is 0 to 6, and `delta` is -6 to 6, so the sum is -6 to 12. If the sum is negative,
    // 6 is added. Then 6 is subtracted while the sum is 6 or more, at most twice.
    const V turned = hn::Add(angle, hn::Set(d, delta));
    const V raised = hn::IfThenElse(hn::Lt(turned, zero), hn::Add(turned, six), turned);
    const V lowered = hn::IfThenElse(hn::Ge(raised, six), hn::Sub(raised, six), raised);
    const V sixths = hn::IfThenElse(hn::Ge(lowered, six), hn::Sub(lowered, six), lowered);
    const V sixth = hn::Floor(sixths);
    const V rest = hn::Sub(sixths, sixth);
    const V share = hn::IfThenElse(hn::Eq(sixth, EvenPart(sixth)), rest, hn::Sub(one, rest));
    const V mixed = hn::Add(min, hn::Mul(share, hn::Sub(max, min)));
    // For NaN, TensorFlow takes the last sixth. Here `sixth` is then NaN and matches no case below.
    // So if no case matches, the results are those of the last sixth.
    hn::Store(
        hn::IfThenElse(IsOneOf(sixth, 1, 4), mixed, hn::IfThenElse(IsOneOf(sixth, 2, 3), min, max)),
        d, block.r + i);
    hn::Store(
        hn::IfThenElse(IsOneOf(sixth, 1, 2), max, hn::IfThenElse(IsOneOf(sixth, 0, 3), mixed, min)),
        d, block.g + i);
    hn::Store(
        hn::IfThenElse(IsOneOf(sixth, 3, 4), max, hn::IfThenElse(IsOneOf(sixth, 0, 1), min, mixed)),
        d, block.b + i);
  }
}

// Replaces the red channel by the brightness.
HWY_INLINE void ToGrey(int count, Block& block) {
  for (int i = 0; i < count; ++i) {
    block.r[i] = block.r[i] * 0.2989f + block.g[i] * 0.587f + block.b[i] * 0.114f;
  }
}

HWY_INLINE void StoreGrey(const Block& block, int count, float* HWY_RESTRICT out) {
  std::copy_n(block.r, count, out);
}
HWY_INLINE void StoreGrey(const Block& block, int count, uint8_t* HWY_RESTRICT out) {
  alignas(64) uint8_t grey[kBlock];
  ToUint8(block.r, grey);
  std::copy_n(grey, count, out);
}

// Calls compute(n, block, i) for each block. The block has `n` pixels and begins at pixel i.
template <typename T, typename Compute>
HWY_INLINE void ForEachBlock(const T* pixels, size_t count, const Compute& compute) {
  Block block;
  for (size_t i = 0; i < count; i += kBlock) {
    const int in_block = static_cast<int>(std::min<size_t>(kBlock, count - i));
    Load(pixels + 3 * i, in_block, block);
    compute(in_block, block, i);
  }
}

template <typename T>
HWY_INLINE void SaturateAll(float factor, T* pixels, size_t count) {
  ForEachBlock(pixels, count, [=](int in_block, Block& block, size_t i) HWY_ATTR {
    Saturate(factor, in_block, block);
    Store(block, in_block, pixels + 3 * i);
  });
}
template <typename T>
HWY_INLINE void TurnAll(float delta, T* pixels, size_t count) {
  ForEachBlock(pixels, count, [=](int in_block, Block& block, size_t i) HWY_ATTR {
    Turn(delta * 6, in_block, block);
    Store(block, in_block, pixels + 3 * i);
  });
}
template <typename T>
HWY_INLINE void MakeAllGrey(const T* pixels, size_t count, int channels, T* out) {
  ForEachBlock(pixels, count, [=](int in_block, Block& block, size_t i) HWY_ATTR {
    ToGrey(in_block, block);
    if (channels == 1) return StoreGrey(block, in_block, out + i);
    std::copy_n(block.r, in_block, block.g);
    std::copy_n(block.r, in_block, block.b);
    Store(block, in_block, out + 3 * i);
  });
}

void SaturationOfFloats(float factor, float* pixels, size_t count) {
  SaturateAll(factor, pixels, count);
}
void SaturationOfUint8(float factor, uint8_t* pixels, size_t count) {
  SaturateAll(factor, pixels, count);
}
void HueOfFloats(float delta, float* pixels, size_t count) { TurnAll(delta, pixels, count); }
void HueOfUint8(float delta, uint8_t* pixels, size_t count) { TurnAll(delta, pixels, count); }
void GreyOfFloats(const float* pixels, size_t count, int channels, float* out) {
  MakeAllGrey(pixels, count, channels, out);
}
void GreyOfUint8(const uint8_t* pixels, size_t count, int channels, uint8_t* out) {
  MakeAllGrey(pixels, count, channels, out);
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace systole
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace systole {
namespace {

HWY_EXPORT(SaturationOfFloats);
HWY_EXPORT(SaturationOfUint8);
HWY_EXPORT(HueOfFloats);
HWY_EXPORT(HueOfUint8);
HWY_EXPORT(GreyOfFloats);
HWY_EXPORT(GreyOfUint8);

// Checks the sizes and returns the number of pixels.
size_t CountGrey(size_t values, int channels, size_t out_values) {
  SYSTOLE_CHECK(values % 3 == 0);
  SYSTOLE_CHECK(channels == 1 || channels == 3);
  SYSTOLE_CHECK(out_values == values / 3 * static_cast<size_t>(channels));
  return values / 3;
}

}  // namespace

void AdjustSaturation(float factor, absl::Span<float> pixels) {
  SYSTOLE_CHECK(pixels.size() % 3 == 0);
  HWY_DYNAMIC_DISPATCH(SaturationOfFloats)(factor, pixels.data(), pixels.size() / 3);
}
void AdjustSaturation(float factor, absl::Span<uint8_t> pixels) {
  SYSTOLE_CHECK(pixels.size() % 3 == 0);
  HWY_DYNAMIC_DISPATCH(SaturationOfUint8)(factor, pixels.data(), pixels.size() / 3);
}

void AdjustHue(float delta, absl::Span<float> pixels) {
  SYSTOLE_CHECK(pixels.size() % 3 == 0);
  HWY_DYNAMIC_DISPATCH(HueOfFloats)(delta, pixels.data(), pixels.size() / 3);
}
void AdjustHue(float delta, absl::Span<uint8_t> pixels) {
  SYSTOLE_CHECK(pixels.size() % 3 == 0);
  HWY_DYNAMIC_DISPATCH(HueOfUint8)(delta, pixels.data(), pixels.size() / 3);
}

void MakeGrey(absl::Span<const float> pixels, int channels, absl::Span<float> out) {
  const size_t count = CountGrey(pixels.size(), channels, out.size());
  HWY_DYNAMIC_DISPATCH(GreyOfFloats)(pixels.data(), count, channels, out.data());
}
void MakeGrey(absl::Span<const uint8_t> pixels, int channels, absl::Span<uint8_t> out) {
  const size_t count = CountGrey(pixels.size(), channels, out.size());
  HWY_DYNAMIC_DISPATCH(GreyOfUint8)(pixels.data(), count, channels, out.data());
}

}  // namespace systole
#endif  // HWY_ONCE
