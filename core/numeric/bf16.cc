#include "core/numeric/bf16.h"

#include <cstddef>

#include "core/status/check.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "core/numeric/bf16.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace systole {
namespace HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

using U32 = hn::ScalableTag<uint32_t>;
using U16Half = hn::Rebind<uint16_t, U32>;

// One vector of float bits -> bf16 in the low half of each lane. Integer operations only, and never
// Highway's DemoteTo(bfloat16_t), which truncates in this version.
HWY_INLINE hn::Vec<U32> Round(U32 d, hn::Vec<U32> bits) {
  const auto upper = hn::ShiftRight<16>(bits);
  const auto odd = hn::And(upper, hn::Set(d, 1u));
  const auto rounded = hn::ShiftRight<16>(hn::Add(hn::Add(bits, hn::Set(d, 0x7fffu)), odd));
  // Signed comparison: the magnitude has its top bit clear.
  const hn::RebindToSigned<U32> di;
  const auto magnitude = hn::BitCast(di, hn::And(bits, hn::Set(d, 0x7fffffffu)));
  const auto is_nan = hn::RebindMask(d, hn::Gt(magnitude, hn::Set(di, 0x7f800000)));
  return hn::IfThenElse(is_nan, hn::Or(upper, hn::Set(d, 0x0040u)), rounded);
}

HWY_INLINE hn::Vec<U32> RoundFlush(U32 d, hn::Vec<U32> bits) {
  const auto exponent = hn::And(bits, hn::Set(d, 0x7f800000u));
  const auto is_small = hn::Eq(exponent, hn::Zero(d));
  const auto zero = hn::And(hn::ShiftRight<16>(bits), hn::Set(d, 0x8000u));
  return hn::IfThenElse(is_small, zero, Round(d, bits));
}

template <bool kFlush>
HWY_INLINE void RoundSpan(const float* HWY_RESTRICT in, size_t n, uint16_t* HWY_RESTRICT out) {
  const U32 d;
  const U16Half d16;
  const hn::RebindToFloat<U32> df;
  const size_t lanes = hn::Lanes(d);
  size_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    const auto bits = hn::BitCast(d, hn::LoadU(df, in + i));
    hn::StoreU(hn::TruncateTo(d16, kFlush ? RoundFlush(d, bits) : Round(d, bits)), d16, out + i);
  }
  for (; i < n; ++i) out[i] = kFlush ? RoundToBf16Flush(in[i]) : RoundToBf16(in[i]);
}

void RoundToBf16Kernel(const float* in, size_t n, uint16_t* out) { RoundSpan<false>(in, n, out); }
void RoundToBf16FlushKernel(const float* in, size_t n, uint16_t* out) {
  RoundSpan<true>(in, n, out);
}

void Bf16ToFloatKernel(const uint16_t* HWY_RESTRICT in, size_t n, float* HWY_RESTRICT out) {
  const U32 d;
  const U16Half d16;
  const hn::RebindToFloat<U32> df;
  const size_t lanes = hn::Lanes(d);
  size_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    const auto wide = hn::PromoteTo(d, hn::LoadU(d16, in + i));
    hn::StoreU(hn::BitCast(df, hn::ShiftLeft<16>(wide)), df, out + i);
  }
  for (; i < n; ++i) out[i] = Bf16ToFloat(in[i]);
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace systole
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace systole {
HWY_EXPORT(RoundToBf16Kernel);
HWY_EXPORT(RoundToBf16FlushKernel);
HWY_EXPORT(Bf16ToFloatKernel);

void RoundToBf16(absl::Span<const float> in, absl::Span<uint16_t> out) {
  SYSTOLE_CHECK(in.size() == out.size());
  HWY_DYNAMIC_DISPATCH(RoundToBf16Kernel)(in.data(), in.size(), out.data());
}

void RoundToBf16Flush(absl::Span<const float> in, absl::Span<uint16_t> out) {
  SYSTOLE_CHECK(in.size() == out.size());
  HWY_DYNAMIC_DISPATCH(RoundToBf16FlushKernel)(in.data(), in.size(), out.data());
}

void Bf16ToFloat(absl::Span<const uint16_t> in, absl::Span<float> out) {
  SYSTOLE_CHECK(in.size() == out.size());
  HWY_DYNAMIC_DISPATCH(Bf16ToFloatKernel)(in.data(), in.size(), out.data());
}

}  // namespace systole
#endif  // HWY_ONCE
