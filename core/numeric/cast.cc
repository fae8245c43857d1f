#include "core/numeric/cast.h"

#include <cstddef>
#include <cstring>

#include "core/status/check.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "core/numeric/cast.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
// After foreach_target.h:
#include "core/numeric/cast-inl.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace systole {
namespace HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

using Floats = hn::ScalableTag<float>;
using Bits = hn::RebindToUnsigned<Floats>;

template <class Store>
HWY_INLINE void CastAs(const float* HWY_RESTRICT in, size_t n, uint8_t* HWY_RESTRICT out,
                       const Store& store) {
  using Value = typename Store::Value;
  const Floats d;
  const Bits du;
  const size_t lanes = hn::Lanes(d);
  const auto nan = hn::BitCast(d, hn::Set(du, 0x7fc00000u));
  const auto one = [&](const float* from, Value* to) HWY_ATTR {
    const auto x = hn::LoadU(d, from);
    store(d, hn::IfThenElse(hn::Eq(x, x), x, nan), to);
  };
  // `to` may be unaligned. Only stores that need no alignment write to it.
  Value* to = reinterpret_cast<Value*>(out);
  size_t i = 0;
  for (; i + lanes <= n; i += lanes) one(in + i, to + i);
  if (i < n) {
    float rest_in[hn::MaxLanes(Floats())] = {};
    Value rest_out[hn::MaxLanes(Floats())];
    std::memcpy(rest_in, in + i, (n - i) * sizeof(float));
    one(rest_in, rest_out);
    std::memcpy(out + i * sizeof(Value), rest_out, (n - i) * sizeof(Value));
  }
}

void CastKernel(const float* in, size_t n, PixelType type, uint8_t* out) {
  switch (type) {
    case PixelType::kUint8:
      return CastAs(in, n, out, StoreUint8());
    case PixelType::kFloat32:
      return CastAs(in, n, out, StoreFloat32());
    case PixelType::kBfloat16:
      // Every NaN has the same bits here. Rounding adds to these bits, but does not change their
      // upper half.
      return CastAs(in, n, out, StoreNumberBf16());
    case PixelType::kFloat16:
      return CastAs(in, n, out, StoreFloat16());
  }
}

struct StoreCut {
  using Value = uint8_t;
  float factor;

  template <class D>
  HWY_INLINE void operator()(D d, hn::Vec<D> value, Value* out) const {
    const hn::RebindToUnsigned<D> du;
    const hn::RebindToSigned<D> di;
    const hn::Rebind<uint8_t, D> d8;
    const auto scaled = hn::Mul(value, hn::Set(d, factor));
    const auto positive = hn::IfThenElseZero(hn::Gt(scaled, hn::Zero(d)), scaled);  // NaN gives 0.
    const auto whole = hn::ConvertTo(di, hn::Min(positive, hn::Set(d, 255.0f)));
    StoreAnywhere(hn::TruncateTo(d8, hn::BitCast(du, whole)), d8, out);
  }
};

void CutKernel(const float* in, size_t n, float factor, uint8_t* out) {
  CastAs(in, n, out, StoreCut{factor});
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace systole
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace systole {
namespace {

HWY_EXPORT(CastKernel);
HWY_EXPORT(CutKernel);

}  // namespace

void CastFloats(absl::Span<const float> in, PixelType type, absl::Span<uint8_t> out) {
  SYSTOLE_CHECK(out.size() == in.size() * PixelTypeBytes(type));
  HWY_DYNAMIC_DISPATCH(CastKernel)(in.data(), in.size(), type, out.data());
}

void CutToUint8(absl::Span<const float> in, float factor, absl::Span<uint8_t> out) {
  SYSTOLE_CHECK(out.size() == in.size());
  HWY_DYNAMIC_DISPATCH(CutKernel)(in.data(), in.size(), factor, out.data());
}

}  // namespace systole
#endif  // HWY_ONCE
