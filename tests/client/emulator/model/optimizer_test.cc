#include "client/emulator/model/optimizer.h"

#include <string>

#include "core/textproto/message_text.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/status_matchers.h"

namespace systole::emulator {
namespace {

using testing::HasSubstr;

v1::Optimizer OptimizerOf(const std::string& text) {
  v1::Optimizer optimizer;
  EXPECT_THAT(ParseTextproto(text, "test", optimizer), IsOk());
  return optimizer;
}

TEST(CompileOptimizerTest, AbsentNumbersGetDefaults) {
  const absl::StatusOr<v1::Optimizer> adam =
      CompileOptimizer(OptimizerOf("learning_rate: 1 adam { beta2: 0.5 }"));
  ASSERT_THAT(adam, IsOk());
  EXPECT_EQ(adam->adam().beta1(), 0.9f);
  EXPECT_EQ(adam->adam().beta2(), 0.5f);
  EXPECT_EQ(adam->adam().epsilon(), 1e-8f);
  const absl::StatusOr<v1::Optimizer> lars =
      CompileOptimizer(OptimizerOf("learning_rate: 1 momentum: 0.9 lars {}"));
  ASSERT_THAT(lars, IsOk());
  EXPECT_EQ(lars->lars().trust_coefficient(), 0.001f);
  EXPECT_EQ(lars->momentum(), 0.9f);
  const absl::StatusOr<v1::Optimizer> sgd = CompileOptimizer(OptimizerOf("learning_rate: 1"));
  ASSERT_THAT(sgd, IsOk());
  EXPECT_EQ(sgd->algorithm_case(), v1::Optimizer::ALGORITHM_NOT_SET);
}

TEST(CompileOptimizerTest, ValuesOutOfRangeAreRefused) {
  const struct {
    std::string optimizer, message;
  } cases[] = {
      {"", "learning_rate is 0"},
      {"learning_rate: -1", "learning_rate is -1"},
      {"learning_rate: nan", "learning_rate is nan"},
      {"learning_rate: inf", "learning_rate is inf"},
      {"learning_rate: 1 momentum: 1", "momentum is 1"},
      {"learning_rate: 1 weight_decay: -0.1", "weight_decay is -0.1"},
      {"learning_rate: 1 warmup_steps: -1", "warmup_steps is -1"},
      {"learning_rate: 1 warmup_steps: 5 decay_steps: 5", "decay_steps is 5"},
      {"learning_rate: 1 final_learning_rate: 0.5", "needs decay_steps"},
      {"learning_rate: 1 decay_steps: 5 final_learning_rate: 2", "final_learning_rate is 2"},
      {"learning_rate: 1 schedule: COSINE", "COSINE needs decay_steps"},
      {"learning_rate: 1 decay_steps: 5 schedule: 7", "schedule is 7"},
      {"learning_rate: 1 momentum: 0.9 adam {}", "momentum does not go with adam"},
      {"learning_rate: 1 adam { beta1: 1 }", "adam.beta1 is 1"},
      {"learning_rate: 1 adam { beta2: -0.5 }", "adam.beta2 is -0.5"},
      {"learning_rate: 1 adam { epsilon: nan }", "adam.epsilon is nan"},
      {"learning_rate: 1 lars { trust_coefficient: -1 }", "lars.trust_coefficient is -1"},
      {"learning_rate: 1 lars { epsilon: 1 }", "lars.epsilon is 1"},
  };
  for (const auto& c : cases) {
    EXPECT_THAT(CompileOptimizer(OptimizerOf(c.optimizer)),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(c.message)))
        << c.optimizer;
  }
}

TEST(LearningRateTest, WarmsUpThenFallsToTheFinalRate) {
  v1::Optimizer optimizer;
  optimizer.set_learning_rate(1.0f);
  EXPECT_EQ(LearningRate(optimizer, 0), 1.0f);
  EXPECT_EQ(LearningRate(optimizer, 1000000), 1.0f);
  optimizer.set_warmup_steps(4);
  EXPECT_EQ(LearningRate(optimizer, 0), 0.25f);
  EXPECT_EQ(LearningRate(optimizer, 3), 1.0f);
  optimizer.set_decay_steps(12);
  optimizer.set_final_learning_rate(0.5f);
  EXPECT_EQ(LearningRate(optimizer, 4), 1.0f);
  EXPECT_EQ(LearningRate(optimizer, 8), 0.75f);
  EXPECT_EQ(LearningRate(optimizer, 12), 0.5f);
  EXPECT_EQ(LearningRate(optimizer, 1000), 0.5f);
}

TEST(LearningRateTest, CosineFallsSlowlyAtBothEnds) {
  const v1::Optimizer optimizer = OptimizerOf(
      "learning_rate: 2 warmup_steps: 2 decay_steps: 14 final_learning_rate: 1 schedule: COSINE");
  EXPECT_EQ(LearningRate(optimizer, 0), 1.0f);
  EXPECT_EQ(LearningRate(optimizer, 2), 2.0f);
  EXPECT_FLOAT_EQ(LearningRate(optimizer, 4), 1.9330127f);  // 1 + (1 + sqrt(3) / 2) / 2.
  EXPECT_FLOAT_EQ(LearningRate(optimizer, 6), 1.75f);       // 1 + (1 + 1 / 2) / 2.
  EXPECT_EQ(LearningRate(optimizer, 8), 1.5f);
  EXPECT_FLOAT_EQ(LearningRate(optimizer, 12), 1.0669873f);
  EXPECT_EQ(LearningRate(optimizer, 14), 1.0f);
}

}  // namespace
}  // namespace systole::emulator
