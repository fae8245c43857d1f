#include "client/emulator/model/model.h"

#include <fstream>
#include <sstream>
#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/status_matchers.h"

namespace systole::emulator {
namespace {

using testing::AllOf;
using testing::HasSubstr;

constexpr char kTail[] = " loss { softmax_cross_entropy {} } optimizer { learning_rate: 0.1 }";

std::string Text(const std::string& input, const std::string& layers) {
  return absl::StrCat("input: ", input, " ", layers, kTail);
}

MATCHER_P(IsInvalid, message, "") {
  return testing::ExplainMatchResult(StatusIs(absl::StatusCode::kInvalidArgument, message), arg,
                                     result_listener);
}

std::string ReadFile(const std::string& path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

TEST(ModelTest, ShapesAndCostsAreInferredLayerByLayer) {
  const absl::StatusOr<Model> model = ParseModel(
      Text("[7, 9, 3]",
           "layers { conv2d { filters: 4 stride: 2 bias: true } } layers { batch_norm {} }"
           " layers { max_pool { window: 3 stride: 2 } }"
           " layers { average_pool { window: 2 padding: VALID } } layers { flatten {} }"
           " layers { dense { units: 6 } }"),
      "m");
  ASSERT_THAT(model, IsOk());
  ASSERT_EQ(model->layers.size(), 5u);  // Flatten moves nothing.
  EXPECT_EQ(model->layers[0].output.DebugString(), "[4,5,4]");
  EXPECT_EQ(model->layers[0].window.pad_top, 1);
  EXPECT_EQ(model->layers[2].output.DebugString(), "[2,3,4]");
  EXPECT_EQ(model->layers[3].output.DebugString(), "[1,1,4]");
  EXPECT_EQ(model->layers[4].output.DebugString(), "[1,1,6]");
  EXPECT_EQ(model->classes, 6);
  EXPECT_EQ(model->parameters, 27 * 4 + 4 + 2 * 4 + 4 * 6 + 6);
  EXPECT_EQ(model->statistics, 2 * 4);
  EXPECT_EQ(model->layers[0].forward_macs, 4 * 5 * 27 * 4);
  EXPECT_EQ(model->forward_macs(), 4 * 5 * 27 * 4 + 4 * 6);
  EXPECT_EQ(model->training_macs(), 2 * 4 * 5 * 27 * 4 + 3 * 4 * 6);
}

// TensorFlow's rule: an even surplus is shared, the odd one goes behind.
TEST(ModelTest, SamePaddingPutsTheOddSurplusBehind) {
  const auto pad_of = [](int input, int kernel, int stride) {
    return ParseModel(Text(absl::StrCat("[", input, ", ", input, ", 1]"),
                           absl::StrCat(
                               "layers { conv2d { filters: 1 kernel: ", kernel, " stride: ", stride,
                               " } } layers { flatten {} } layers { dense { units: 2 } }")),
                      "m")
        ->layers[0]
        .window.pad_top;
  };
  EXPECT_EQ(pad_of(8, 3, 1), 1);
  EXPECT_EQ(pad_of(8, 3, 2), 0);
  EXPECT_EQ(pad_of(7, 3, 2), 1);
  EXPECT_EQ(pad_of(8, 2, 1), 0);
  EXPECT_EQ(pad_of(8, 1, 2), 0);
}

TEST(ModelTest, ShippedModelsCompile) {
  for (const std::string name : {"flowers-cnn", "mlp-784"}) {
    const std::string path = absl::StrCat("deploy/models/", name, ".textproto");
    const absl::StatusOr<Model> model = ParseModel(ReadFile(path), path);
    ASSERT_THAT(model, IsOk());
    EXPECT_EQ(model->name, name);
  }
}

TEST(ModelTest, MlpIs784To128To10) {
  const absl::StatusOr<Model> model =
      ParseModel(ReadFile("deploy/models/mlp-784.textproto"), "mlp");
  ASSERT_THAT(model, IsOk());
  EXPECT_EQ(model->parameters, 784 * 128 + 128 + 128 * 10 + 10);
  EXPECT_EQ(model->input_scale, 1.0f / 255.0f);
}

TEST(ModelTest, SyntaxErrorNamesFileLineAndColumn) {
  EXPECT_THAT(ParseModel("input: [4]\nlayers { dense { units: x } }", "my.textproto"),
              IsInvalid(HasSubstr("my.textproto:2:25: ")));
}

TEST(ModelTest, UnknownFieldIsRefusedByNameAndPlace) {
  EXPECT_THAT(ParseModel("input: [4]\n  dropout: 0.5\n", "my.textproto"),
              IsInvalid(AllOf(HasSubstr("my.textproto:2:"), HasSubstr("dropout"))));
}

TEST(ModelTest, LayerThatDoesNotFitIsNamedWithItsShape) {
  EXPECT_THAT(
      ParseModel(Text("[4, 4, 3]",
                      "layers { conv2d { filters: 8 } }"
                      " layers { name: 'big' conv2d { filters: 8 kernel: 5 padding: VALID } }"),
                 "m"),
      IsInvalid(AllOf(HasSubstr("layer 1 (conv2d 'big')"), HasSubstr("[4,4,8]"),
                      HasSubstr("5x5 window"))));
  EXPECT_THAT(
      ParseModel(Text("[4, 4, 3]", "layers { dense { units: 2 } }"), "m"),
      IsInvalid(AllOf(HasSubstr("layer 0 (dense)"), HasSubstr("[4,4,3]"), HasSubstr("flatten"))));
  EXPECT_THAT(ParseModel(Text("[4, 4, 3]", "layers { conv2d { filters: 2 } }"), "m"),
              IsInvalid(AllOf(HasSubstr("last layer"), HasSubstr("[4,4,2]"))));
}

TEST(ModelTest, ValuesOutOfRangeAreRefused) {
  const std::string dense = "layers { dense { units: 2 } }";
  const struct {
    std::string text, message;
  } cases[] = {
      {absl::StrCat(dense, kTail), "input has 0 dimensions"},
      {Text("[2, 2]", dense), "input has 2 dimensions"},
      {Text("[0]", dense), "a dimension of input is 0"},
      {Text("[-5]", dense), "a dimension of input is -5"},
      {Text("[16384, 16384, 16384]", dense), "number of input values"},
      {Text("[4]", ""), "no layer that could learn"},
      {Text("[4]", "layers {}"), "has no kind"},
      {Text("[4]", "layers { dense {} }"), "units is 0"},
      {Text("[4]", "layers { dense { units: 1 } }"), "2 classes or more"},
      {Text("[4]", "layers { dense { units: 99999999999 } }"), "units is 99999999999"},
      {Text("[200000]", "layers { dense { units: 200000 } }"), "number of weights"},
      {Text("[4]", "layers { dense { units: 2 initializer: 7 } }"), "initializer is 7"},
      {Text("[8, 8, 1]", "layers { conv2d { filters: 0 } }"), "filters is 0"},
      {Text("[8, 8, 1]", "layers { conv2d { filters: 1 kernel: -3 } }"), "window is -3"},
      {Text("[8, 8, 1]", "layers { conv2d { filters: 1 stride: -1 } }"), "stride is -1"},
      {Text("[8, 8, 1]", "layers { conv2d { filters: 1 padding: 9 } }"), "padding is 9"},
      {Text("[16000, 16000, 1]", "layers { conv2d { filters: 16000 } }"), "output values"},
      {Text("[8, 8, 1]", "layers { max_pool { window: 9 padding: VALID } }"), "9x9 window"},
      {Text("[8, 8, 1]", "layers { max_pool { global: true window: 2 } }"), "global takes no"},
      {Text("[4]", "layers { batch_norm { momentum: 1 } }"), "momentum is 1"},
      {Text("[4]", "layers { batch_norm { epsilon: -1 } }"), "epsilon is -1"},
      {absl::StrCat("input: [4] ", dense, " optimizer { learning_rate: 1 }"), "loss is absent"},
  };
  for (const auto& c : cases) EXPECT_THAT(ParseModel(c.text, "m"), IsInvalid(HasSubstr(c.message)));
}

TEST(ModelTest, OptimizerOutOfRangeIsRefused) {
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
      {"learning_rate: 1 final_learning_rate: 0.5", "wants decay_steps"},
      {"learning_rate: 1 decay_steps: 5 final_learning_rate: 2", "final_learning_rate is 2"},
  };
  for (const auto& c : cases) {
    EXPECT_THAT(ParseModel(absl::StrCat("input: [4] layers { dense { units: 2 } } loss {"
                                        " softmax_cross_entropy {} } optimizer { ",
                                        c.optimizer, " }"),
                           "m"),
                IsInvalid(HasSubstr(c.message)));
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

}  // namespace
}  // namespace systole::emulator
