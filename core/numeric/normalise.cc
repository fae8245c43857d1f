#include "core/numeric/normalise.h"

#include <cstring>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "core/numeric/bf16.h"
#include "core/status/status_macros.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "core/numeric/normalise.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
// After foreach_target.h:
#include "core/numeric/cast-inl.h"
#include "hwy/highway.h"

#ifndef SYSTOLE_CORE_NUMERIC_NORMALISE_CC_ONCE_
#define SYSTOLE_CORE_NUMERIC_NORMALISE_CC_ONCE_
namespace systole {
namespace {

// Enough lanes for the widest vector x86 has; per-channel factors repeat every kMaxLanes *
// channels.
constexpr int kMaxLanes = 16;

struct Factors {
  int channels;  // 1 if every channel has the same factors.
  float scale[kMaxLanes * kMaxNormaliseChannels];
  float bias[kMaxLanes * kMaxNormaliseChannels];
};

}  // namespace
}  // namespace systole
#endif  // SYSTOLE_CORE_NUMERIC_NORMALISE_CC_ONCE_

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

template <class In, class Store>
HWY_INLINE void NormaliseAs(const In* HWY_RESTRICT in, size_t n, const Factors& factors,
                            uint8_t* HWY_RESTRICT out, Store store) {
  using Value = typename Store::Value;
  const hn::CappedTag<float, kMaxLanes> d;
  const size_t lanes = hn::Lanes(d);
  const size_t period = lanes * factors.channels;
  const auto one = [&](const In* from, size_t phase, Value* to) HWY_ATTR {
    const auto scaled = hn::Mul(LoadAsFloat(d, from), hn::LoadU(d, factors.scale + phase));
    store(d, hn::Add(scaled, hn::LoadU(d, factors.bias + phase)), to);
  };
  Value* to =
      reinterpret_cast<Value*>(out);  // Only ever stored to through unaligned vector stores.
  size_t i = 0;
  size_t phase = 0;
  for (; i + lanes <= n; i += lanes) {
    one(in + i, phase, to + i);
    phase += lanes;
    if (phase == period) phase = 0;
  }
  if (i < n) {
    In rest_in[kMaxLanes] = {};
    Value rest_out[kMaxLanes];
    std::memcpy(rest_in, in + i, (n - i) * sizeof(In));
    one(rest_in, phase, rest_out);
    std::memcpy(out + i * sizeof(Value), rest_out, (n - i) * sizeof(Value));
  }
}

template <class In>
HWY_INLINE void Normalise(const In* in, size_t n, const Factors& factors, PixelType type,
                          uint8_t* out) {
  switch (type) {
    case PixelType::kUint8:
      return NormaliseAs(in, n, factors, out, StoreUint8());
    case PixelType::kFloat32:
      return NormaliseAs(in, n, factors, out, StoreFloat32());
    case PixelType::kBfloat16:
      return NormaliseAs(in, n, factors, out, StoreBf16());
  }
}

void NormaliseUint8Kernel(const uint8_t* in, size_t n, const Factors& factors, PixelType type,
                          uint8_t* out) {
  Normalise(in, n, factors, type, out);
}
void NormaliseFloatKernel(const float* in, size_t n, const Factors& factors, PixelType type,
                          uint8_t* out) {
  Normalise(in, n, factors, type, out);
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace systole
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace systole {
namespace {

HWY_EXPORT(NormaliseUint8Kernel);
HWY_EXPORT(NormaliseFloatKernel);

absl::Status CheckFactor(absl::Span<const float> factor, int channels, const char* name) {
  if (factor.size() == 1 || factor.size() == static_cast<size_t>(channels)) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat("Normalisation.", name, " has ", factor.size(),
                                                 " entries, want 1 or one per channel (", channels,
                                                 ")"));
}

// Checks everything the kernels rely on and lays the factors out in the order of the values.
absl::Status Prepare(size_t values, int channels, const Normalisation& normalisation,
                     PixelType type, size_t out_bytes, Factors* factors) {
  if (channels < 1 || channels > kMaxNormaliseChannels) {
    return absl::InvalidArgumentError(
        absl::StrCat("channels is ", channels, ", want 1 to ", kMaxNormaliseChannels));
  }
  SYSTOLE_RETURN_IF_ERROR(CheckFactor(normalisation.scale, channels, "scale"));
  SYSTOLE_RETURN_IF_ERROR(CheckFactor(normalisation.bias, channels, "bias"));
  if (values % channels != 0) {
    return absl::InvalidArgumentError(
        absl::StrCat(values, " values are no whole number of pixels of ", channels, " channels"));
  }
  if (out_bytes != values * PixelTypeBytes(type)) {
    return absl::InvalidArgumentError(absl::StrCat("output has ", out_bytes, " bytes, want ",
                                                   values * PixelTypeBytes(type), " for ", values,
                                                   " values"));
  }
  const size_t scales = normalisation.scale.size();
  const size_t biases = normalisation.bias.size();
  factors->channels = scales == 1 && biases == 1 ? 1 : channels;
  for (int i = 0; i < kMaxLanes * factors->channels; ++i) {
    factors->scale[i] = normalisation.scale[scales == 1 ? 0 : i % channels];
    factors->bias[i] = normalisation.bias[biases == 1 ? 0 : i % channels];
  }
  return absl::OkStatus();
}

}  // namespace

size_t PixelTypeBytes(PixelType type) {
  switch (type) {
    case PixelType::kUint8:
      return 1;
    case PixelType::kFloat32:
      return 4;
    case PixelType::kBfloat16:
      return 2;
  }
  return 0;
}

uint8_t RoundToUint8(float value) {
  if (!(value > 0.0f)) return 0;  // NaN too.
  if (value >= 255.0f) return 255;
  const float shifted = value + 8388608.0f;  // 2^23 leaves no fraction bits: rounds half to even.
  return static_cast<uint8_t>(shifted - 8388608.0f);
}

absl::Status NormaliseUint8(absl::Span<const uint8_t> in, int channels,
                            const Normalisation& normalisation, PixelType type,
                            absl::Span<uint8_t> out) {
  Factors factors;
  SYSTOLE_RETURN_IF_ERROR(Prepare(in.size(), channels, normalisation, type, out.size(), &factors));
  HWY_DYNAMIC_DISPATCH(NormaliseUint8Kernel)(in.data(), in.size(), factors, type, out.data());
  return absl::OkStatus();
}

absl::Status NormaliseFloat(absl::Span<const float> in, int channels,
                            const Normalisation& normalisation, PixelType type,
                            absl::Span<uint8_t> out) {
  Factors factors;
  SYSTOLE_RETURN_IF_ERROR(Prepare(in.size(), channels, normalisation, type, out.size(), &factors));
  HWY_DYNAMIC_DISPATCH(NormaliseFloatKernel)(in.data(), in.size(), factors, type, out.data());
  return absl::OkStatus();
}

}  // namespace systole
#endif  // HWY_ONCE
