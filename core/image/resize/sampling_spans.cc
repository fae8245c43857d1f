#include "core/image/resize/sampling_spans.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>

#include "core/numeric/math.h"
#include "core/status/check.h"

namespace systole {
namespace {

float RadiusOf(SamplingKernel kernel) {
  switch (kernel) {
    case SamplingKernel::kTriangle:
      return 1;
    case SamplingKernel::kKeysCubic:
    case SamplingKernel::kMitchellCubic:
      return 2;
    case SamplingKernel::kLanczos3:
      return 3;
    case SamplingKernel::kLanczos5:
      return 5;
    case SamplingKernel::kGaussian:
      return 1.5f;
  }
  return 0;
}

// The kernels, for x >= 0. The order of operations is TensorFlow's, because another order gives
// other last bits.
float Triangle(float x) { return x < 1.0f ? 1.0f - x : 0.0f; }

float KeysCubic(float x) {
  if (x >= 2.0f) return 0.0f;
  if (x >= 1.0f) return ((-0.5f * x + 2.5f) * x - 4.0f) * x + 2.0f;
  return ((1.5f * x - 2.5f) * x) * x + 1.0f;
}

float MitchellCubic(float x) {
  if (x >= 2.0f) return 0.0f;
  if (x >= 1.0f) {
    return (((-7.0f / 18.0f) * x + 2.0f) * x - 10.0f / 3.0f) * x + 16.0f / 9.0f;
  }
  return (((7.0f / 6.0f) * x - 2.0f) * x) * x + 8.0f / 9.0f;
}

float Lanczos(float radius, float x) {
  constexpr float kPi = 3.14159265359f;
  if (x > radius) return 0.0f;
  if (x <= 1e-3f) return 1.0f;
  return radius * Sin(kPi * x) * Sin(kPi * x / radius) / (kPi * kPi * x * x);
}

float Gaussian(float radius, float x) {
  if (x >= radius) return 0.0f;
  const float sigma = radius / 3.0f;
  return Exp(static_cast<float>(-x * x / (2.0 * sigma * sigma)));
}

float WeightAt(SamplingKernel kernel, float x) {
  switch (kernel) {
    case SamplingKernel::kTriangle:
      return Triangle(x);
    case SamplingKernel::kKeysCubic:
      return KeysCubic(x);
    case SamplingKernel::kMitchellCubic:
      return MitchellCubic(x);
    case SamplingKernel::kLanczos3:
    case SamplingKernel::kLanczos5:
      return Lanczos(RadiusOf(kernel), x);
    case SamplingKernel::kGaussian:
      return Gaussian(RadiusOf(kernel), x);
  }
  return 0;
}

}  // namespace

SamplingSpans MakeSamplingSpans(SamplingKernel kernel, int in, int out, bool antialias) {
  SYSTOLE_CHECK(in >= 1 && out >= 1 && in <= 65535 && out <= 65535);
  // TensorFlow divides 1 by out / in. The last bits of the result can differ from in / out.
  const float scale = static_cast<float>(out) / static_cast<float>(in);
  const float inverse_scale = 1.0f / scale;
  const float kernel_scale = antialias ? std::max(inverse_scale, 1.0f) : 1.0f;
  const float one_over_kernel_scale = 1.0f / kernel_scale;
  const float reach = RadiusOf(kernel) * kernel_scale;
  SamplingSpans spans;
  spans.span = std::min(2 * static_cast<int>(std::ceil(reach)) + 1, in);
  spans.starts.resize(static_cast<size_t>(out));
  spans.weights.resize(static_cast<size_t>(out) * static_cast<size_t>(spans.span));
  for (int i = 0; i < out; ++i) {
    const float sample = (static_cast<float>(i) + 0.5f) * inverse_scale;
    // Because of rounding, the last sample may lie beyond the image. Its output pixel stays black.
    if (sample > static_cast<float>(in)) continue;
    const int start = std::clamp(static_cast<int>(std::ceil(sample - reach - 0.5f)), 0, in - 1);
    const int end = std::clamp(static_cast<int>(std::floor(sample + reach - 0.5f)), 0, in - 1) + 1;
    spans.starts[static_cast<size_t>(i)] = start;
    float* const weights = &spans.weights[static_cast<size_t>(i) * static_cast<size_t>(spans.span)];
    const int count = std::min(end - start, spans.span);
    float sum = 0.0f;
    for (int k = 0; k < count; ++k) {
      const float place = static_cast<float>(start + k) + 0.5f - sample;
      weights[k] = WeightAt(kernel, std::fabs(place * one_over_kernel_scale));
      sum += weights[k];
    }
    const bool adds_up = std::fabs(sum) >= 1000.0f * std::numeric_limits<float>::min();
    const float one_over_sum = adds_up ? 1.0f / sum : 0.0f;
    for (int k = 0; k < count; ++k) weights[k] *= one_over_sum;
  }
  return spans;
}

}  // namespace systole
