#include "bench/taps_loop.h"

#include <algorithm>
#include <cstddef>

#include "core/status/check.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "bench/taps_loop.cc"
#include "hwy/foreach_target.h"  // IWYU pragma: keep
// Must come after foreach_target.h:
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace systole::bench {
namespace HWY_NAMESPACE {
namespace {

namespace hn = hwy::HWY_NAMESPACE;

// Computes four vectors at a time, so that additions do not wait for each other. Reads and writes
// up to 64 values beyond `values`.
void TapsRowKernel(const float* HWY_RESTRICT in, const float* HWY_RESTRICT weights, size_t taps,
                   size_t values, float* HWY_RESTRICT out) {
  const hn::CappedTag<float, 16> d;
  const size_t lanes = hn::Lanes(d);
  for (size_t i = 0; i < values; i += 4 * lanes) {
    const auto first = hn::Set(d, weights[0]);
    auto sum0 = hn::Mul(first, hn::LoadU(d, in + i));
    auto sum1 = hn::Mul(first, hn::LoadU(d, in + i + lanes));
    auto sum2 = hn::Mul(first, hn::LoadU(d, in + i + 2 * lanes));
    auto sum3 = hn::Mul(first, hn::LoadU(d, in + i + 3 * lanes));
    for (size_t k = 1; k < taps; ++k) {
      const auto weight = hn::Set(d, weights[k]);
      const float* HWY_RESTRICT from = in + i + k;
      sum0 = hn::Add(sum0, hn::Mul(weight, hn::LoadU(d, from)));
      sum1 = hn::Add(sum1, hn::Mul(weight, hn::LoadU(d, from + lanes)));
      sum2 = hn::Add(sum2, hn::Mul(weight, hn::LoadU(d, from + 2 * lanes)));
      sum3 = hn::Add(sum3, hn::Mul(weight, hn::LoadU(d, from + 3 * lanes)));
    }
    hn::StoreU(sum0, d, out + i);
    hn::StoreU(sum1, d, out + i + lanes);
    hn::StoreU(sum2, d, out + i + 2 * lanes);
    hn::StoreU(sum3, d, out + i + 3 * lanes);
  }
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace systole::bench
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace systole::bench {
namespace {

HWY_EXPORT(TapsRowKernel);

constexpr size_t kMargin = 64;  // How far TapsRowKernel() goes beyond its values.
constexpr int kChannels = 3;

// How many pixels a kernel spans if the image does not shrink.
int SpanOf(ResampleMethod method) {
  switch (method) {
    case ResampleMethod::kBilinear:
      return 2;
    case ResampleMethod::kBicubic:
    case ResampleMethod::kMitchellCubic:
    case ResampleMethod::kGaussian:
      return 4;
    case ResampleMethod::kLanczos3:
      return 6;
    case ResampleMethod::kLanczos5:
      return 10;
    default:
      SYSTOLE_CHECK(false);
      return 0;
  }
}

double TapsOf(const ResampleOptions& options, int in, int out) {
  const double shrinks = options.antialias ? std::max(1.0, static_cast<double>(in) / out) : 1.0;
  return std::min<double>(in, SpanOf(options.method) * shrinks);
}

}  // namespace

std::vector<TapsPass> PassesOf(const ResampleOptions& options, ImageSize in, ImageSize out) {
  const double down = TapsOf(options, in.height, out.height);
  const double across = TapsOf(options, in.width, out.width);
  const int64_t out_values = int64_t{out.width} * kChannels;
  if (options.method == ResampleMethod::kBilinear && !options.antialias) {
    return {{.rows = std::min(in.height, 2 * out.height), .row_values = out_values, .taps = across},
            {.rows = out.height, .row_values = out_values, .taps = down}};
  }
  const int64_t columns =
      options.antialias ? in.width : std::min(in.width, SpanOf(options.method) * out.width);
  return {{.rows = out.height, .row_values = columns * kChannels, .taps = down},
          {.rows = out.height, .row_values = out_values, .taps = across}};
}

void TapsLoop::Run(const TapsPass& pass) {
  const auto values = static_cast<size_t>(pass.row_values);
  const size_t most_taps = static_cast<size_t>(pass.taps) + 1;
  if (row_.size() < values + kMargin) row_.resize(values + kMargin);
  while (in_.size() < values + most_taps + kMargin) {
    in_.push_back(static_cast<float>(in_.size() % 256));
  }
  weights_.resize(most_taps);
  for (size_t k = 0; k < most_taps; ++k) weights_[k] = 1 / static_cast<float>(k + 2);
  int64_t taps_before = 0;
  for (int64_t row = 1; row <= pass.rows; ++row) {
    const auto taps_after = static_cast<int64_t>(pass.taps * static_cast<double>(row));
    HWY_DYNAMIC_DISPATCH(TapsRowKernel)
    (in_.data(), weights_.data(), static_cast<size_t>(taps_after - taps_before), values,
     row_.data());
    taps_before = taps_after;
  }
}

}  // namespace systole::bench
#endif  // HWY_ONCE
