#include "client/emulator/training/dropout_layer.h"

#include <cmath>
#include <limits>
#include <vector>

#include "client/emulator/model/model.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace systole::emulator {
namespace {

using testing::Each;
using testing::ElementsAreArray;

LayerPlan PlanOf(int64_t size, float rate, int64_t number = 3) {
  return {.kind = LayerKind::kDropout,
          .number = number,
          .inputs = {0},
          .input = {.channels = size},
          .output = {.channels = size},
          .drop_rate = rate};
}

// The layer's output if all inputs are one.
std::vector<float> Dropped(const LayerPlan& plan, const StepContext<float>& step) {
  const std::vector<float> ones(static_cast<size_t>(step.images * plan.input.size()), 1.0f);
  std::vector<float> out(ones.size());
  DropoutLayer<float>(plan).Forward(0, step, {ones.data()}, out.data());
  return out;
}

TEST(DropoutLayerTest, ValuesAreDroppedAtTheRateAndKeptValuesAreScaled) {
  for (const float rate : {0.1f, 0.5f, 0.9f}) {
    const std::vector<float> out =
        Dropped(PlanOf(997, rate), {.images = 40, .training = true, .seed = 5});
    double fallen = 0;
    for (const float value : out) {
      if (value == 0) {
        ++fallen;
      } else {
        ASSERT_EQ(value, 1.0f / (1.0f - rate));
      }
    }
    const auto n = static_cast<double>(out.size());
    EXPECT_NEAR(fallen / n, rate, 4 * std::sqrt(rate * (1 - rate) / n)) << rate;
  }
  EXPECT_THAT(Dropped(PlanOf(997, 0), {.images = 2, .training = true}), Each(1.0f));
}

TEST(DropoutLayerTest, EvaluationLeavesAllAsItIs) {
  EXPECT_THAT(Dropped(PlanOf(50, 0.9f), {.images = 3, .seed = 5}), Each(1.0f));
}

TEST(DropoutLayerTest, GradientsAreDroppedWhereValuesAreDropped) {
  const LayerPlan plan = PlanOf(41, 0.5f);
  const StepContext<float> step = {.images = 3, .training = true, .seed = 5, .step = 7};
  const std::vector<float> out = Dropped(plan, step);
  const std::vector<float> d_out(out.size(), 1.0f);
  std::vector<float> d_in(out.size());
  DropoutLayer<float> layer(plan);
  layer.Backward(0, step, {d_out.data()}, d_out.data(), d_in.data());
  EXPECT_THAT(d_in, ElementsAreArray(out));
  // No input gradient is asked for.
  layer.Backward(0, step, {d_out.data()}, d_out.data(), nullptr);
}

TEST(DropoutLayerTest, DrawsDependOnThePlaceInTheGlobalBatchAndNotOnTheShard) {
  const LayerPlan plan = PlanOf(10, 0.5f);
  const std::vector<float> whole = Dropped(plan, {.images = 6, .training = true, .seed = 5});
  for (int64_t first = 0; first < 6; first += 2) {
    const std::vector<float> part =
        Dropped(plan, {.images = 2, .training = true, .seed = 5, .first_example = first});
    EXPECT_THAT(part, ElementsAreArray(whole.data() + first * 10, 20));
  }
}

TEST(DropoutLayerTest, SeedStepLayerAndPlaceEachChangeTheDraws) {
  const StepContext<float> step = {.images = 1, .training = true, .seed = 5, .step = 7};
  StepContext<float> other_seed = step, high_seed = step, other_step = step, high_step = step,
                     other_place = step;
  other_seed.seed = 6;
  high_seed.seed += uint64_t{1} << 32;
  other_step.step = 8;
  high_step.step += int64_t{1} << 32;
  other_place.first_example = 1;
  const LayerPlan plan = PlanOf(64, 0.5f);
  const std::vector<float> want = Dropped(plan, step);
  EXPECT_EQ(Dropped(plan, step), want);
  for (const auto& context : {other_seed, high_seed, other_step, high_step, other_place}) {
    EXPECT_NE(Dropped(plan, context), want);
  }
  EXPECT_NE(Dropped(PlanOf(64, 0.5f, /*number=*/4), step), want);
}

// Neighbouring elements share a block of random numbers. Still, the draws of elements, examples and
// steps must not be correlated.
TEST(DropoutLayerTest, DrawsOfNeighboursAreUncorrelated) {
  const LayerPlan plan = PlanOf(100, 0.5f);
  const auto draws = [&](int64_t step) {
    return Dropped(plan, {.images = 100, .training = true, .seed = 1, .step = step});
  };
  const std::vector<float> now = draws(0), next = draws(1);
  int same_element = 0, same_example = 0, same_step = 0;
  const size_t n = now.size() - 100;
  for (size_t i = 0; i < n; ++i) {
    same_element += now[i] == now[i + 1];
    same_example += now[i] == now[i + 100];
    same_step += now[i] == next[i];
  }
  const double limit = 4 * std::sqrt(0.25 / static_cast<double>(n));
  for (const int same : {same_element, same_example, same_step}) {
    EXPECT_NEAR(same / static_cast<double>(n), 0.5, limit);
  }
}

TEST(DropoutLayerTest, ADroppedNanBecomesZero) {
  const LayerPlan plan = PlanOf(64, 0.5f);
  const StepContext<float> step = {.images = 1, .training = true};
  const std::vector<float> ones = Dropped(plan, step);
  const std::vector<float> in(64, std::numeric_limits<float>::quiet_NaN());
  std::vector<float> out(64);
  DropoutLayer<float>(plan).Forward(0, step, {in.data()}, out.data());
  for (size_t i = 0; i < 64; ++i) {
    if (ones[i] == 0) {
      EXPECT_EQ(out[i], 0.0f);
    } else {
      EXPECT_TRUE(std::isnan(out[i]));
    }
  }
}

}  // namespace
}  // namespace systole::emulator
