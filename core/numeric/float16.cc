#include "core/numeric/float16.h"

#include <cstddef>

#include "core/status/check.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "core/numeric/float16.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
// After foreach_target.h:
#include "core/numeric/cast-inl.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace systole {
namespace HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

using U32 = hn::ScalableTag<uint32_t>;
using U16Half = hn::Rebind<uint16_t, U32>;

void RoundToFloat16Kernel(const float* HWY_RESTRICT in, size_t n, uint16_t* HWY_RESTRICT out) {
  const U32 d;
  const U16Half d16;
  const hn::RebindToFloat<U32> df;
  const size_t lanes = hn::Lanes(d);
  size_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    const auto bits = hn::BitCast(d, hn::LoadU(df, in + i));
    hn::StoreU(hn::TruncateTo(d16, RoundToFloat16Bits(d, bits)), d16, out + i);
  }
  for (; i < n; ++i) out[i] = RoundToFloat16(in[i]);
}

void Float16ToFloatKernel(const uint16_t* HWY_RESTRICT in, size_t n, float* HWY_RESTRICT out) {
  const U32 d;
  const U16Half d16;
  const hn::RebindToFloat<U32> df;
  const hn::RebindToSigned<U32> di;
  const auto at_least = [&](hn::Vec<U32> magnitude, uint32_t bound) HWY_ATTR {
    const auto limit = hn::Set(di, static_cast<int32_t>(bound) - 1);
    return hn::RebindMask(d, hn::Gt(hn::BitCast(di, magnitude), limit));
  };
  const size_t lanes = hn::Lanes(d);
  size_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    const auto wide = hn::PromoteTo(d, hn::LoadU(d16, in + i));
    const auto sign = hn::ShiftLeft<16>(hn::And(wide, hn::Set(d, 0x8000u)));
    const auto magnitude = hn::ShiftLeft<13>(hn::And(wide, hn::Set(d, 0x7fffu)));
    const auto normal = hn::Add(magnitude, hn::Set(d, 112u << 23));
    const auto special = hn::Add(magnitude, hn::Set(d, 224u << 23));
    const auto smallest = hn::Set(d, 113u << 23);
    const auto subnormal = hn::BitCast(
        d, hn::Sub(hn::BitCast(df, hn::Add(magnitude, smallest)), hn::BitCast(df, smallest)));
    auto value = hn::IfThenElse(at_least(magnitude, 0x00800000u), normal, subnormal);
    value = hn::IfThenElse(at_least(magnitude, 0x0f800000u), special, value);
    hn::StoreU(hn::BitCast(df, hn::Or(sign, value)), df, out + i);
  }
  for (; i < n; ++i) out[i] = Float16ToFloat(in[i]);
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace systole
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace systole {
HWY_EXPORT(RoundToFloat16Kernel);
HWY_EXPORT(Float16ToFloatKernel);

void RoundToFloat16(absl::Span<const float> in, absl::Span<uint16_t> out) {
  SYSTOLE_CHECK(in.size() == out.size());
  HWY_DYNAMIC_DISPATCH(RoundToFloat16Kernel)(in.data(), in.size(), out.data());
}

void Float16ToFloat(absl::Span<const uint16_t> in, absl::Span<float> out) {
  SYSTOLE_CHECK(in.size() == out.size());
  HWY_DYNAMIC_DISPATCH(Float16ToFloatKernel)(in.data(), in.size(), out.data());
}

}  // namespace systole
#endif  // HWY_ONCE
