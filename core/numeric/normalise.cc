#include "core/numeric/normalise.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <string>
#include <utility>

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

// The number of floats in the widest vector of x86.
constexpr int kMaxLanes = 16;

// The factors of value i are at index i mod period. The arrays have period + kMaxLanes entries, so
// that a vector can be loaded at any index below `period`. REQUIRES: period >= kMaxLanes.
struct Factors {
  size_t period;
  const float* scale;
  const float* bias;
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
                            size_t phase, uint8_t* HWY_RESTRICT out, Store store) {
  using Value = typename Store::Value;
  const hn::CappedTag<float, kMaxLanes> d;
  const size_t lanes = hn::Lanes(d);
  const auto one = [&](const In* from, size_t phase, Value* to) HWY_ATTR {
    const auto scaled = hn::Mul(LoadAsFloat(d, from), hn::LoadU(d, factors.scale + phase));
    store(d, hn::Add(scaled, hn::LoadU(d, factors.bias + phase)), to);
  };
  Value* to = reinterpret_cast<Value*>(out);  // Only unaligned vector stores write through it.
  size_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    one(in + i, phase, to + i);
    phase += lanes;
    phase = phase >= factors.period ? phase - factors.period : phase;
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
HWY_INLINE void Normalise(const In* in, size_t n, const Factors& factors, size_t phase,
                          PixelType type, uint8_t* out) {
  switch (type) {
    case PixelType::kUint8:
      return NormaliseAs(in, n, factors, phase, out, StoreUint8());
    case PixelType::kFloat32:
      return NormaliseAs(in, n, factors, phase, out, StoreFloat32());
    case PixelType::kBfloat16:
      return NormaliseAs(in, n, factors, phase, out, StoreBf16());
    case PixelType::kFloat16:
      return NormaliseAs(in, n, factors, phase, out, StoreFloat16());
  }
}

// The factors of in[0] are at `phase`, which is below period.
void NormaliseUint8Kernel(const uint8_t* in, size_t n, const Factors& factors, size_t phase,
                          PixelType type, uint8_t* out) {
  Normalise(in, n, factors, phase, type, out);
}
void NormaliseFloatKernel(const float* in, size_t n, const Factors& factors, size_t phase,
                          PixelType type, uint8_t* out) {
  Normalise(in, n, factors, phase, type, out);
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
                                                 " entries, want 1, or ", channels,
                                                 ", one per channel"));
}

absl::Status CheckFactors(int channels, const Normalisation& normalisation) {
  if (channels < 1 || channels > kMaxNormaliseChannels) {
    return absl::InvalidArgumentError(
        absl::StrCat("channels is ", channels, ", want 1 to ", kMaxNormaliseChannels));
  }
  SYSTOLE_RETURN_IF_ERROR(CheckFactor(normalisation.scale, channels, "scale"));
  return CheckFactor(normalisation.bias, channels, "bias");
}

// The period, in values, of interleaved channels. It is at least kMaxLanes.
size_t PeriodOf(int channels) { return kMaxLanes * static_cast<size_t>(channels); }

// Writes the period + kMaxLanes entries of Factors. The channel changes every `inner` values.
void LayOut(absl::Span<const float> factor, int channels, int64_t inner, size_t period, float* to) {
  for (size_t i = 0; i < period + kMaxLanes; ++i) {
    to[i] = factor[factor.size() == 1 ? 0 : static_cast<int64_t>(i) / inner % channels];
  }
}

// The longest pattern of a tensor with several channels, in values. Two such patterns (scale and
// bias) fit in the first-level cache. If a pattern would be longer, each channel gets a pattern of
// its own instead, and each run of values of one channel gets a call of its own.
constexpr int64_t kMaxPatternValues = 2048;

// Memory for the factors of interleaved channels. It is on the stack, because for small examples an
// allocation would take long in comparison.
struct InterleavedFactors {
  float scale[kMaxLanes * (kMaxNormaliseChannels + 1)];
  float bias[kMaxLanes * (kMaxNormaliseChannels + 1)];
};

// Checks everything that the kernels rely on.
absl::Status CheckCall(size_t values, int channels, const Normalisation& normalisation,
                       PixelType type, size_t out_bytes) {
  SYSTOLE_RETURN_IF_ERROR(CheckFactors(channels, normalisation));
  if (values % channels != 0) {
    return absl::InvalidArgumentError(
        absl::StrCat(values, " values are not a multiple of ", channels, " channels"));
  }
  if (out_bytes != values * PixelTypeBytes(type)) {
    return absl::InvalidArgumentError(absl::StrCat("output has ", out_bytes, " bytes, want ",
                                                   values * PixelTypeBytes(type), " for ", values,
                                                   " values"));
  }
  return absl::OkStatus();
}

// Lays the factors out in the order of the values.
Factors LayOutFactors(int channels, const Normalisation& normalisation,
                      InterleavedFactors& memory) {
  const bool uniform = normalisation.scale.size() == 1 && normalisation.bias.size() == 1;
  const int repeated = uniform ? 1 : channels;
  const Factors factors = {PeriodOf(repeated), memory.scale, memory.bias};
  LayOut(normalisation.scale, repeated, 1, factors.period, memory.scale);
  LayOut(normalisation.bias, repeated, 1, factors.period, memory.bias);
  return factors;
}

// Whether the normalisation leaves whole numbers as they are.
bool IsIdentity(const Normalisation& normalisation) {
  const auto all = [](absl::Span<const float> factor, float value) {
    return std::all_of(factor.begin(), factor.end(), [value](float f) { return f == value; });
  };
  return all(normalisation.scale, 1.0f) && all(normalisation.bias, 0.0f);
}

}  // namespace

size_t PixelTypeBytes(PixelType type) {
  switch (type) {
    case PixelType::kUint8:
      return 1;
    case PixelType::kFloat32:
      return 4;
    case PixelType::kBfloat16:
    case PixelType::kFloat16:
      return 2;
  }
  return 0;
}

uint8_t RoundToUint8(float value) {
  if (!(value > 0.0f)) return 0;  // NaN too.
  if (value >= 255.0f) return 255;
  const float shifted = value + 8388608.0f;  // Adding 2^23 rounds half to even.
  return static_cast<uint8_t>(shifted - 8388608.0f);
}

absl::StatusOr<NormaliseFactors> FactorsOf(double scale, absl::Span<const double> mean,
                                           absl::Span<const double> stddev) {
  const auto at = [](absl::Span<const double> values, size_t c, double otherwise) {
    return values.empty() ? otherwise : values[values.size() == 1 ? 0 : c];
  };
  NormaliseFactors factors;
  const size_t count = std::max({mean.size(), stddev.size(), size_t{1}});
  for (size_t c = 0; c < count; ++c) {
    const double divisor = at(stddev, c, 1);
    const auto factor = static_cast<float>(scale / divisor);
    const auto bias = static_cast<float>(-at(mean, c, 0) / divisor);
    if (!std::isfinite(factor) || !std::isfinite(bias) || factor == 0) {
      return absl::InvalidArgumentError(absl::StrCat("gives y = x * ", factor, " + ", bias,
                                                     "; want finite numbers and no stddev of 0"));
    }
    factors.scale.push_back(factor);
    factors.bias.push_back(bias);
  }
  return factors;
}

absl::Status NormaliseUint8(absl::Span<const uint8_t> in, int channels,
                            const Normalisation& normalisation, PixelType type,
                            absl::Span<uint8_t> out) {
  SYSTOLE_RETURN_IF_ERROR(CheckCall(in.size(), channels, normalisation, type, out.size()));
  if (type == PixelType::kUint8 && IsIdentity(normalisation)) {
    if (!in.empty()) std::memcpy(out.data(), in.data(), in.size());
    return absl::OkStatus();
  }
  InterleavedFactors memory;
  const Factors factors = LayOutFactors(channels, normalisation, memory);
  HWY_DYNAMIC_DISPATCH(NormaliseUint8Kernel)(in.data(), in.size(), factors, 0, type, out.data());
  return absl::OkStatus();
}

absl::Status NormaliseFloat(absl::Span<const float> in, int channels,
                            const Normalisation& normalisation, PixelType type,
                            absl::Span<uint8_t> out) {
  SYSTOLE_RETURN_IF_ERROR(CheckCall(in.size(), channels, normalisation, type, out.size()));
  InterleavedFactors memory;
  const Factors factors = LayOutFactors(channels, normalisation, memory);
  HWY_DYNAMIC_DISPATCH(NormaliseFloatKernel)(in.data(), in.size(), factors, 0, type, out.data());
  return absl::OkStatus();
}

absl::StatusOr<TensorNormaliser> TensorNormaliser::Create(int channels, int64_t inner,
                                                          const Normalisation& normalisation,
                                                          PixelType type) {
  SYSTOLE_RETURN_IF_ERROR(CheckFactors(channels, normalisation));
  if (inner < 1) {
    return absl::InvalidArgumentError(absl::StrCat("inner is ", inner, ", want at least 1"));
  }
  TensorNormaliser normaliser(type);
  const bool uniform = normalisation.scale.size() == 1 && normalisation.bias.size() == 1;
  if (uniform) channels = 1;
  if (uniform || inner <= kMaxPatternValues / channels) {
    const int64_t pattern = uniform ? 1 : inner * channels;
    normaliser.period_ = static_cast<size_t>((kMaxLanes + pattern - 1) / pattern * pattern);
    normaliser.AddPattern(normalisation, channels, inner);
    return normaliser;
  }
  // See kMaxPatternValues.
  normaliser.period_ = kMaxLanes;
  normaliser.inner_ = inner;
  for (size_t c = 0; c < static_cast<size_t>(channels); ++c) {
    const auto one = [c](absl::Span<const float> factor) {
      return factor.size() == 1 ? factor : factor.subspan(c, 1);
    };
    normaliser.AddPattern({one(normalisation.scale), one(normalisation.bias)}, 1, 1);
  }
  return normaliser;
}

void TensorNormaliser::AddPattern(const Normalisation& normalisation, int channels, int64_t inner) {
  std::vector<float> scale(period_ + kMaxLanes);
  std::vector<float> bias(period_ + kMaxLanes);
  LayOut(normalisation.scale, channels, inner, period_, scale.data());
  LayOut(normalisation.bias, channels, inner, period_, bias.data());
  patterns_.push_back({std::move(scale), std::move(bias)});
}

void TensorNormaliser::Apply(int64_t first, absl::Span<const uint8_t> in, uint8_t* out) const {
  const auto run = [this](const NormaliseFactors& pattern, int64_t phase, const uint8_t* from,
                          size_t values, uint8_t* to) {
    HWY_DYNAMIC_DISPATCH(NormaliseUint8Kernel)
    (from, values, Factors{period_, pattern.scale.data(), pattern.bias.data()},
     static_cast<size_t>(phase), type_, to);
  };
  if (inner_ == 0) {
    run(patterns_[0], first % static_cast<int64_t>(period_), in.data(), in.size(), out);
    return;
  }
  const size_t value_bytes = PixelTypeBytes(type_);
  size_t done = 0;
  while (done < in.size()) {
    const int64_t at = first + static_cast<int64_t>(done);
    const size_t values = std::min(in.size() - done, static_cast<size_t>(inner_ - at % inner_));
    const size_t channel = static_cast<size_t>(at / inner_) % patterns_.size();
    run(patterns_[channel], 0, in.data() + done, values, out + done * value_bytes);
    done += values;
  }
}

}  // namespace systole
#endif  // HWY_ONCE
