#include "core/numeric/bf16.h"

#include <cstddef>

#include "core/status/check.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "core/numeric/bf16.cc"
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

template <bool kFlush>
HWY_INLINE void RoundSpan(const float* HWY_RESTRICT in, size_t n, uint16_t* HWY_RESTRICT out) {
  const U32 d;
  const U16Half d16;
  const hn::RebindToFloat<U32> df;
  const size_t lanes = hn::Lanes(d);
  size_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    const auto bits = hn::BitCast(d, hn::LoadU(df, in + i));
    hn::StoreU(
        hn::TruncateTo(d16, kFlush ? RoundToBf16FlushBits(d, bits) : RoundToBf16Bits(d, bits)), d16,
        out + i);
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
