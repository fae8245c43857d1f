// Tests the draws of mixup and cutmix: distributions, pinned values and refusals.
#include "core/operations/ops/mix_draws.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "absl/strings/str_format.h"
#include "core/operations/canonical_spec.h"
#include "gmock/gmock.h"
#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"
#include "tests/status_matchers.h"

namespace systole {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::Ge;
using testing::HasSubstr;
using testing::Le;
using Kind = MixDraw::Kind;

constexpr double kPi = 3.14159265358979323846;

v1::Mix MixFromText(const std::string& text) {
  v1::Mix mix;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &mix)) << text;
  return mix;
}

MixDraws MakeDraws(const std::string& mix, int height = 224, int width = 200) {
  absl::StatusOr<MixDraws> draws = MixDraws::Create(MixFromText(mix), height, width);
  EXPECT_THAT(draws, IsOk());
  return *draws;
}

// Returns sorted draws.
std::vector<float> BetaDraws(float alpha, int count) {
  std::vector<float> draws;
  for (int record = 0; record < count; ++record) {
    CounterRng rng(/*seed=*/3, /*epoch=*/0, record, /*purpose=*/1);
    draws.push_back(SymmetricBeta(alpha, rng));
  }
  std::sort(draws.begin(), draws.end());
  return draws;
}

// The mean of (x - 1/2)^power.
double CentralMoment(const std::vector<float>& draws, int power) {
  double sum = 0;
  for (const float draw : draws) sum += std::pow(draw - 0.5, power);
  return sum / static_cast<double>(draws.size());
}

TEST(SymmetricBetaTest, TheDistributionIsBeta) {
  // For these alphas the distribution function has a closed form.
  const struct {
    float alpha;
    std::function<double(double)> below;
  } cases[] = {{0.5f, [](double x) { return 2 / kPi * std::asin(std::sqrt(x)); }},
               {1.0f, [](double x) { return x; }},
               {1.5f,
                [](double x) {
                  const double t = 2 * x - 1;
                  return 0.5 + (t * std::sqrt(1 - t * t) + std::asin(t)) / kPi;
                }},
               {2.0f, [](double x) { return x * x * (3 - 2 * x); }},
               {3.0f, [](double x) { return x * x * x * (10 + x * (6 * x - 15)); }}};
  constexpr int kCount = 100'000;
  for (const auto& [alpha, below] : cases) {
    SCOPED_TRACE(alpha);
    const std::vector<float> draws = BetaDraws(alpha, kCount);
    // The Kolmogorov-Smirnov distance of n draws exceeds 1.95 / sqrt(n) with probability 0.001.
    double distance = 0;
    for (int i = 0; i < kCount; ++i) {
      const double expected = below(draws[static_cast<size_t>(i)]);
      distance = std::max({distance, std::abs(expected - static_cast<double>(i) / kCount),
                           std::abs(expected - static_cast<double>(i + 1) / kCount)});
    }
    EXPECT_LT(distance, 1.95 / std::sqrt(kCount));
  }
}

TEST(SymmetricBetaTest, MomentsMatchTheBetaDistributionForSmallAndLargeAlpha) {
  for (const float alpha : {0.05f, 0.2f, 0.4f, 0.8f, 1.0f, 4.0f, 30.0f, 1000.0f}) {
    SCOPED_TRACE(alpha);
    const std::vector<float> draws = BetaDraws(alpha, 100'000);
    EXPECT_GE(draws.front(), 0);
    EXPECT_LE(draws.back(), 1);
    const double a = alpha;
    const double variance = 1 / (4 * (2 * a + 1));
    const double fourth = 3 / (16 * (2 * a + 1) * (2 * a + 3));
    EXPECT_NEAR(CentralMoment(draws, 1), 0, 4 * std::sqrt(variance / 1e5));
    EXPECT_NEAR(CentralMoment(draws, 2), variance, 0.02 * variance);
    EXPECT_NEAR(CentralMoment(draws, 3) / std::pow(variance, 1.5), 0, 0.05);
    EXPECT_NEAR(CentralMoment(draws, 4), fourth, 0.05 * fourth);
  }
}

TEST(SymmetricBetaTest, AnyPositiveAlphaGivesANumberFrom0To1) {
  for (const float alpha : {1e-45f, 1e-38f, 1e-6f, 1e-3f, 1000.0f}) {
    for (const float draw : BetaDraws(alpha, 1000)) EXPECT_THAT(draw, AllOf(Ge(0.0f), Le(1.0f)));
  }
}

// The values are pinned, because they decide bytes of feeds.
TEST(SymmetricBetaTest, DrawsArePinnedAndTakeTwoWordsEach) {
  std::vector<std::string> draws;
  for (const float alpha : {0.1f, 0.2f, 0.5f, 1.0f, 2.0f, 50.0f}) {
    CounterRng rng(/*seed=*/1, /*epoch=*/2, /*record=*/3, /*purpose=*/4);
    draws.push_back(absl::StrFormat("%a", SymmetricBeta(alpha, rng)));
    EXPECT_EQ(rng.NextU32(), 3942351853u);  // The third word: a draw takes two words.
  }
  EXPECT_THAT(draws, ElementsAre("0x0p+0", "0x1.4a9fp-37", "0x1.6c7bb4p-16", "0x1.78227p-9",
                                 "0x1.0ba896p-5", "0x1.7f377p-2"));
}

TEST(MixDrawsTest, MixupAndCutmixAreChosenWithTheirProbabilities) {
  constexpr int kCount = 20'000;
  const struct {
    std::string mix;
    double mixup;
    double cutmix;
  } cases[] = {
      {"mixup {}", 1, 0},
      {"cutmix {}", 0, 1},
      {"mixup {} cutmix {}", 0.5, 0.5},
      {"mixup { probability: 0.3 }", 0.3, 0},
      {"mixup { probability: 0.3 } cutmix {}", 0.3, 0.7},
      {"mixup {} cutmix { probability: 0.2 }", 0.8, 0.2},
      {"mixup { probability: 0.1 } cutmix { probability: 0.2 }", 0.1, 0.2},
      {"mixup { probability: 0.8 } cutmix { probability: 0.2 }", 0.8, 0.2},
  };
  for (const auto& [mix, mixup, cutmix] : cases) {
    SCOPED_TRACE(mix);
    const MixDraws draws = MakeDraws(mix);
    int mixed = 0, cut = 0, empty = 0;
    for (int record = 0; record < kCount; ++record) {
      const MixDraw draw = draws.Of({.seed = 9, .epoch = 1, .record = record});
      if (draw.kind == Kind::kMixup) ++mixed;
      if (draw.kind == Kind::kCutmix) ++cut;
      // cutmix gives kNone if its rectangle has no pixel. This happens if lambda is above
      // 1 - (2 / 200)^2: half of the rectangle's width is then less than one pixel, and is rounded
      // down to 0.
      if (draw.kind == Kind::kNone) ++empty;
    }
    EXPECT_NEAR(mixed, mixup * kCount, 300);
    EXPECT_NEAR(cut, cutmix * kCount, 300);
    EXPECT_NEAR(empty, (1 - mixup - cutmix) * kCount, 300);
  }
}

TEST(MixDrawsTest, DrawsDependOnSeedEpochAndRecordAlone) {
  const MixDraws draws = MakeDraws("mixup {}");
  const auto share = [&](const ExampleKey& key) { return draws.Of(key).own_share; };
  const ExampleKey key = {.seed = 1, .epoch = 2, .record = 3};
  EXPECT_EQ(share(key), MakeDraws("mixup { alpha: 1 probability: 1 }", 9, 9).Of(key).own_share);
  EXPECT_NE(share(key), share({.seed = 2, .epoch = 2, .record = 3}));
  EXPECT_NE(share(key), share({.seed = 1, .epoch = 3, .record = 3}));
  EXPECT_NE(share(key), share({.seed = 1, .epoch = 2, .record = 4}));
}

TEST(MixDrawsTest, ARectangleLiesInTheImageAndItsAreaIsThePartnersShare) {
  for (const auto& [height, width] : {std::pair(224, 200), {1, 7}, {2, 2}, {1, 1}, {3, 65536}}) {
    const MixDraws draws = MakeDraws("cutmix { alpha: 0.5 }", height, width);
    for (int record = 0; record < 2000; ++record) {
      const MixDraw draw = draws.Of({.seed = 5, .epoch = 0, .record = record});
      if (draw.kind == Kind::kNone) continue;
      ASSERT_EQ(draw.kind, Kind::kCutmix);
      ASSERT_THAT(CheckCropInside(draw.box, height, width), IsOk());
      const double area = static_cast<double>(draw.box.height) * draw.box.width;
      EXPECT_FLOAT_EQ(draw.own_share, static_cast<float>(1 - area / height / width));
    }
  }
}

// 0.6823 is the mean share of an image of 224 x 200 pixels that cutmix does not overwrite. The
// number was computed from torchvision's rule, with 1e6 draws of lambda ~ U(0, 1) and of a centre.
TEST(MixDrawsTest, MeanCutmixAreaMatchesTorchvisionsRule) {
  const MixDraws draws = MakeDraws("cutmix {}");
  double sum = 0;
  for (int record = 0; record < 50'000; ++record) {
    sum += draws.Of({.seed = 5, .epoch = 0, .record = record}).own_share;
  }
  EXPECT_NEAR(sum / 50'000, 0.6823, 0.005);
}

TEST(MixDrawsTest, InvalidParametersAreRefusedByName) {
  const std::pair<std::string, std::string> cases[] = {
      {"", "mix has neither mixup nor cutmix"},
      {"mixup { alpha: -1 }", "mix.mixup.alpha is -1, want 0 < alpha <= 1000"},
      {"cutmix { alpha: 1001 }", "mix.cutmix.alpha is 1001"},
      {"mixup { alpha: nan }", "mix.mixup.alpha is nan"},
      {"cutmix { alpha: inf }", "mix.cutmix.alpha is inf"},
      {"mixup { probability: -0.5 }", "mix.mixup.probability is -0.5, want 0 to 1"},
      {"cutmix { probability: 1.5 }", "mix.cutmix.probability is 1.5"},
      {"mixup {} cutmix { probability: nan }", "mix.cutmix.probability is nan"},
      {"mixup { probability: 0.6 } cutmix { probability: 0.5 }", "want at most 1 together"},
      {"mixup { probability: 1 } cutmix {}",
       "mix.mixup.probability is 1 and leaves nothing to mix.cutmix"},
      {"mixup {} cutmix { probability: 1 }", "leave mix.mixup out"}};
  for (const auto& [mix, message] : cases) {
    EXPECT_THAT(MixDraws::Create(MixFromText(mix), 8, 8),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(message)))
        << mix;
  }
}

uint64_t FingerprintOf(const std::string& mix) {
  v1::FeedSpec spec;
  *spec.mutable_mix() = MixFromText(mix);
  return SpecFingerprint(spec);
}

TEST(MixDrawsTest, WrittenAndOmittedDefaultsHaveTheSameFingerprint) {
  const std::pair<std::string, std::string> same[] = {
      {"mixup {}", "mixup { alpha: 1 probability: 1 }"},
      {"cutmix {}", "cutmix { alpha: 1 probability: 1 }"},
      {"mixup {} cutmix {}", "mixup { probability: 0.5 } cutmix { probability: 0.5 }"},
      {"mixup { probability: 0.25 } cutmix {}",
       "mixup { probability: 0.25 } cutmix { probability: 0.75 }"},
      {"images: ['a', 'b'] labels: ['c', 'd'] mixup {}",
       "images: ['b', 'a'] labels: ['d', 'c'] mixup {}"}};
  for (const auto& [one, other] : same) EXPECT_EQ(FingerprintOf(one), FingerprintOf(other)) << one;
  const std::string others[] = {"mixup {}",
                                "cutmix {}",
                                "mixup {} cutmix {}",
                                "group: 2 mixup {}",
                                "mixup { alpha: 0.2 }",
                                "images: 'a' mixup {}",
                                "labels: 'a' mixup {}"};
  for (const std::string& one : others) {
    for (const std::string& other : others) {
      EXPECT_EQ(FingerprintOf(one) == FingerprintOf(other), one == other) << one << other;
    }
  }
  v1::FeedSpec once;
  *once.mutable_mix() = MixFromText("images: ['b', 'a'] mixup {} cutmix { probability: 0.25 }");
  once = CanonicalSpec(once);
  EXPECT_EQ(CanonicalSpec(once).SerializeAsString(), once.SerializeAsString());
}

}  // namespace
}  // namespace systole
