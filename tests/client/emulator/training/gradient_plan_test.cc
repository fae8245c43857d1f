#include "client/emulator/training/gradient_plan.h"

#include <map>
#include <random>
#include <string>

#include "absl/strings/str_cat.h"
#include "client/emulator/model/load_model.h"
#include "client/emulator/model/model.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/status_matchers.h"

namespace systole::emulator {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

Model ModelOf(const std::string& input, const std::string& layers) {
  const absl::StatusOr<Model> model =
      ParseModel(absl::StrCat("input: ", input, " ", layers,
                              " loss { softmax_cross_entropy {} } optimizer { learning_rate: 1 }"),
                 "test");
  EXPECT_THAT(model, IsOk());
  return *model;
}

// Carries out the plan without numbers. A slot's Content says whose gradient the slot holds, and
// how many contributions the gradient has so far. When a step reads a gradient, the gradient must
// have all its contributions.
void ExpectPlanIsSound(const Model& model) {
  const GradientPlan plan = PlanGradients(model);
  ASSERT_EQ(plan.steps.size(), model.layers.size());
  const auto layers = static_cast<int64_t>(model.layers.size());
  std::map<int64_t, int> wanted;  // How often layers take each layer's output.
  for (const LayerPlan& layer : model.layers) {
    for (const int64_t input : layer.inputs) ++wanted[input];
  }
  wanted[layers - 1] = 1;  // The loss takes the last layer's output.
  struct Content {
    int64_t layer = 0;
    int contributions = 0;
  };
  std::map<int64_t, Content> slots = {{plan.steps.back().output, {layers - 1, 1}}};
  for (int64_t layer = layers - 1; layer >= 0; --layer) {
    const LayerPlan& of = model.layers[layer];
    const GradientPlan::Step& step = plan.steps[layer];
    EXPECT_EQ(slots[step.output].layer, layer);
    EXPECT_EQ(slots[step.output].contributions, wanted[layer]);
    EXPECT_GE(plan.slot_sizes[step.output], of.output.size());
    EXPECT_EQ(step.written >= 0, of.needs_input_gradient());
    if (step.written < 0) continue;
    // A slot may be overwritten only if it is empty or has the gradient of a later layer, which is
    // no longer needed.
    const auto overwrite = [&](int64_t slot, Content content) {
      EXPECT_TRUE(!slots.contains(slot) || slots[slot].layer > layer);
      EXPECT_GE(plan.slot_sizes[slot], of.input.size());
      slots[slot] = content;
    };
    std::vector<int64_t> inputs;
    for (const int64_t input : of.inputs) {
      if (input >= 0) inputs.push_back(input);
    }
    const bool straight = step.deliveries.size() < inputs.size();
    overwrite(step.written, straight ? Content{inputs[0], 1} : Content{layers, 0});
    ASSERT_EQ(inputs.size(), step.deliveries.size() + (straight ? 1 : 0));
    for (size_t i = 0; i < step.deliveries.size(); ++i) {
      const auto [to, adds] = step.deliveries[i];
      const int64_t input = inputs[i + (straight ? 1 : 0)];
      EXPECT_NE(to, step.written);
      if (adds) {
        EXPECT_EQ(slots[to].layer, input);
        ++slots[to].contributions;
      } else {
        overwrite(to, {input, 1});
      }
    }
  }
}

TEST(GradientPlanTest, ChainTakesTwoSlotsInTurns) {
  const Model model = ModelOf("[8]",
                              "layers { dense { units: 9 } } layers { relu {} }"
                              " layers { dense { units: 7 } } layers { dense { units: 2 } }");
  const GradientPlan plan = PlanGradients(model);
  EXPECT_THAT(plan.slot_sizes, ElementsAre(9, 9));
  EXPECT_EQ(plan.steps[0].written, -1);  // The gradient of the model's input is not needed.
  for (size_t layer = 0; layer < 4; ++layer) {
    EXPECT_THAT(plan.steps[layer].deliveries, IsEmpty());
  }
  for (size_t layer = 1; layer < 4; ++layer) {
    EXPECT_EQ(plan.steps[layer].written, plan.steps[layer - 1].output);
  }
  ExpectPlanIsSound(model);
}

TEST(GradientPlanTest, SecondContributionIsAddedToTheFirst) {
  const Model model =
      ModelOf("[4]",
              "layers { name: 'a' dense { units: 4 } } layers { dense { units: 4 } }"
              " layers { name: 'sum' inputs: ['dense_1', 'a'] add {} }");
  const GradientPlan plan = PlanGradients(model);
  // The add writes its input gradient to the slot of dense_1's output, and copies this gradient to
  // the slot of a's output. Later dense_1 writes its input gradient to another slot, and adds this
  // gradient to the slot of a's output.
  EXPECT_EQ(plan.steps[2].written, plan.steps[1].output);
  ASSERT_THAT(plan.steps[2].deliveries, SizeIs(1));
  EXPECT_FALSE(plan.steps[2].deliveries[0].adds);
  EXPECT_EQ(plan.steps[2].deliveries[0].to, plan.steps[0].output);
  ASSERT_THAT(plan.steps[1].deliveries, SizeIs(1));
  EXPECT_TRUE(plan.steps[1].deliveries[0].adds);
  EXPECT_EQ(plan.steps[1].deliveries[0].to, plan.steps[0].output);
  ExpectPlanIsSound(model);
}

TEST(GradientPlanTest, LayerThatIsTakenTwiceByOneAddGetsTwoContributions) {
  const Model model =
      ModelOf("[4]",
              "layers { name: 'a' dense { units: 4 } }"
              " layers { inputs: ['a', 'input', 'a'] add {} } layers { dense { units: 2 } }");
  const GradientPlan plan = PlanGradients(model);
  ASSERT_THAT(plan.steps[1].deliveries, SizeIs(2));
  EXPECT_FALSE(plan.steps[1].deliveries[0].adds);
  EXPECT_TRUE(plan.steps[1].deliveries[1].adds);
  ExpectPlanIsSound(model);
}

TEST(GradientPlanTest, GradientsInRandomGraphsAreCompleteWhenRead) {
  for (uint32_t seed = 0; seed < 200; ++seed) {
    std::mt19937 random(seed);
    const int n = 3 + static_cast<int>(random() % 12);
    // A layer's inputs are drawn from the earlier layers and the model's input. The last layer
    // takes all outputs that no other layer takes.
    std::string layers = "layers { name: 'l0' dense { units: 4 } } ";
    std::vector<bool> taken(static_cast<size_t>(n));
    for (int i = 1; i < n; ++i) {
      const auto pick = [&] {
        const auto from = random() % static_cast<uint32_t>(i + 1);
        if (from == static_cast<uint32_t>(i)) return std::string("'input'");
        taken[from] = true;
        return absl::StrCat("'l", from, "'");
      };
      if (random() % 2 == 0) {
        absl::StrAppend(&layers, "layers { name: 'l", i, "' inputs: ", pick(), " relu {} } ");
      } else {
        const std::string first = pick(), second = pick(), third = pick();
        absl::StrAppend(&layers, "layers { name: 'l", i, "' inputs: [", first, ", ", second, ", ",
                        third, "] add {} } ");
      }
    }
    absl::StrAppend(&layers, "layers { inputs: ['input'");
    for (int i = 0; i < n; ++i) {
      if (!taken[static_cast<size_t>(i)]) absl::StrAppend(&layers, ", 'l", i, "'");
    }
    absl::StrAppend(&layers, "] add {} }");
    SCOPED_TRACE(layers);
    ExpectPlanIsSound(ModelOf("[4]", layers));
  }
}

// The main path takes two slots in turns. A gradient that waits at a skip connection takes another.
TEST(GradientPlanTest, Resnet50NeedsAFewLargeSlots) {
  const absl::StatusOr<Model> model = LoadModel("resnet50");
  ASSERT_THAT(model, IsOk());
  ExpectPlanIsSound(*model);
  EXPECT_THAT(PlanGradients(*model).slot_sizes, SizeIs(testing::Le(4u)));
}

}  // namespace
}  // namespace systole::emulator
