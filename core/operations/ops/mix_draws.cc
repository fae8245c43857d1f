#include "core/operations/ops/mix_draws.h"

#include <algorithm>
#include <cmath>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "core/numeric/math.h"
#include "core/status/status_macros.h"

namespace systole {
namespace {

absl::Status CheckAlpha(absl::string_view kind, float alpha) {
  // This form of the condition also refuses NaN.
  if (alpha > 0 && alpha <= kMaxMixAlpha) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("mix.", kind, ".alpha is ", alpha, ", want 0 < alpha <= ", kMaxMixAlpha));
}

absl::Status CheckProbability(absl::string_view kind, float probability) {
  if (probability >= 0 && probability <= 1) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("mix.", kind, ".probability is ", probability, ", want 0 to 1"));
}

// torchvision's rectangle: its sides are sqrt(1 - lambda) of the image's sides. Half of each side
// is rounded down to whole pixels. Parts of the rectangle outside of the image are cut off.
CropRect BoxOf(float lambda, int height, int width, CounterRng& rng) {
  const auto y = static_cast<int>(rng.UniformInt(0, height));
  const auto x = static_cast<int>(rng.UniformInt(0, width));
  const double half = 0.5 * std::sqrt(1.0 - lambda);
  const auto half_height = static_cast<int>(half * height);
  const auto half_width = static_cast<int>(half * width);
  const int top = std::max(y - half_height, 0);
  const int left = std::max(x - half_width, 0);
  return {.y = top,
          .x = left,
          .height = std::min(y + half_height, height) - top,
          .width = std::min(x + half_width, width) - left};
}

}  // namespace

void WriteMixDefaults(v1::Mix& mix) {
  if (mix.has_mixup() && mix.mixup().alpha() == 0) mix.mutable_mixup()->set_alpha(1);
  if (mix.has_cutmix() && mix.cutmix().alpha() == 0) mix.mutable_cutmix()->set_alpha(1);
  const float mixup = mix.mixup().probability();
  const float cutmix = mix.cutmix().probability();
  const bool both = mix.has_mixup() && mix.has_cutmix();
  if (both && mixup == 0 && cutmix == 0) {
    mix.mutable_mixup()->set_probability(0.5f);
    mix.mutable_cutmix()->set_probability(0.5f);
    return;
  }
  if (mix.has_mixup() && mixup == 0) mix.mutable_mixup()->set_probability(1 - cutmix);
  if (mix.has_cutmix() && cutmix == 0) mix.mutable_cutmix()->set_probability(1 - mixup);
}

// Student's t of 2 * alpha degrees of freedom is sqrt(2 alpha * q) with a random sign, where q =
// (U^(-1/alpha) - 1) * cos^2(pi V) (Bailey 1994). With this t, 1/2 + 1/2 * t / sqrt(2 alpha + t^2)
// is Beta(alpha, alpha). The code computes q * w with w = U^(1/alpha), because w may be 0, and q
// would then be infinite.
float SymmetricBeta(float alpha, CounterRng& rng) {
  const float u = 1 - rng.UniformFloat();  // More than 0.
  // The middle of one of 2^23 equal parts of [0, 1]. So the cosine is never 0, and the divisor
  // w + q_times_w is never 0.
  const float v = (static_cast<float>(rng.NextU32() >> 9) + 0.5f) * 0x1p-23f;
  const double w = Pow(u, 1 / alpha);
  const double cosine = CosPi(v);
  const double q_times_w = (1 - w) * cosine * cosine;
  const double half_width = 0.5 * std::sqrt(q_times_w / (w + q_times_w));
  return static_cast<float>(cosine < 0 ? 0.5 - half_width : 0.5 + half_width);
}

absl::StatusOr<MixDraws> MixDraws::Create(const v1::Mix& mix, int height, int width) {
  if (!mix.has_mixup() && !mix.has_cutmix()) {
    return absl::InvalidArgumentError("mix has neither mixup nor cutmix, want one or both");
  }
  SYSTOLE_RETURN_IF_ERROR(CheckProbability("mixup", mix.mixup().probability()));
  SYSTOLE_RETURN_IF_ERROR(CheckProbability("cutmix", mix.cutmix().probability()));
  v1::Mix full = mix;
  WriteMixDefaults(full);
  if (full.has_mixup()) SYSTOLE_RETURN_IF_ERROR(CheckAlpha("mixup", full.mixup().alpha()));
  if (full.has_cutmix()) SYSTOLE_RETURN_IF_ERROR(CheckAlpha("cutmix", full.cutmix().alpha()));
  const float mixup = full.mixup().probability();
  const float cutmix = full.cutmix().probability();
  // Added in float32, because in this type the sum of tenths such as 0.3 and 0.7 is exactly 1.
  const float sum = mixup + cutmix;
  if (sum > 1) {
    return absl::InvalidArgumentError(absl::StrCat("mix.mixup.probability is ", mixup,
                                                   " and mix.cutmix.probability is ", cutmix,
                                                   ", want at most 1 together"));
  }
  if ((full.has_mixup() && mixup == 0) || (full.has_cutmix() && cutmix == 0)) {
    const absl::string_view one = mixup == 0 ? "cutmix" : "mixup";
    const absl::string_view other = mixup == 0 ? "mixup" : "cutmix";
    return absl::InvalidArgumentError(absl::StrCat("mix.", one, ".probability is 1 and leaves ",
                                                   "nothing to mix.", other, "; leave mix.", other,
                                                   " out, or lower the probability"));
  }
  return MixDraws(full, height, width);
}

MixDraws::MixDraws(const v1::Mix& mix, int height, int width)
    : draws_(kMixPurpose, /*before=*/0, /*key=*/""),
      mixup_alpha_(mix.mixup().alpha()),
      cutmix_alpha_(mix.cutmix().alpha()),
      mixup_below_(mix.mixup().probability()),
      cutmix_below_(mix.mixup().probability() + mix.cutmix().probability()),
      height_(height),
      width_(width) {}

MixDraw MixDraws::Of(const ExampleKey& example) const {
  CounterRng rng = draws_.Rng(example);
  const float which = rng.UniformFloat();
  if (which < mixup_below_) {
    return {.kind = MixDraw::Kind::kMixup, .own_share = SymmetricBeta(mixup_alpha_, rng)};
  }
  if (!(which < cutmix_below_)) return {};
  const CropRect box = BoxOf(SymmetricBeta(cutmix_alpha_, rng), height_, width_, rng);
  if (box.height == 0 || box.width == 0) return {};
  const double area = static_cast<double>(box.height) * box.width;
  const double image_area = static_cast<double>(height_) * width_;
  return {.kind = MixDraw::Kind::kCutmix,
          .own_share = static_cast<float>(1 - area / image_area),
          .box = box};
}

}  // namespace systole
