#include "client/emulator/model/model.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/status_matchers.h"

namespace systole::emulator {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr char kTail[] = " loss { softmax_cross_entropy {} } optimizer { learning_rate: 0.1 }";

std::string Text(const std::string& input, const std::string& layers) {
  return absl::StrCat("input: ", input, " ", layers, kTail);
}

MATCHER_P(IsInvalid, message, "") {
  return testing::ExplainMatchResult(StatusIs(absl::StatusCode::kInvalidArgument, message), arg,
                                     result_listener);
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
  ASSERT_EQ(model->layers.size(), 5u);  // Flatten moves no data, so it gets no layer.
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

// TensorFlow's rule for SAME: half of the padding, rounded down, stands before the input. The rest
// follows the input.
TEST(ModelTest, SamePaddingPutsTheOddRowAfterTheInput) {
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

// ---- The graph ----

constexpr char kResidual[] =
    "layers { name: 'a' conv2d { filters: 4 } }"
    " layers { name: 'b' inputs: 'input' conv2d { filters: 4 bias: true } }"
    " layers { name: 'sum' inputs: ['b', 'a', 'b'] add {} }"
    " layers { name: 'flat' flatten {} } layers { inputs: 'flat' dense { units: 2 } }";

TEST(ModelTest, InputsNameEarlierLayersOrTheModelsInput) {
  const absl::StatusOr<Model> model = ParseModel(Text("[3, 3, 2]", kResidual), "m");
  ASSERT_THAT(model, IsOk());
  ASSERT_EQ(model->layers.size(), 4u);
  EXPECT_THAT(model->layers[0].inputs, ElementsAre(-1));
  EXPECT_THAT(model->layers[1].inputs, ElementsAre(-1));
  EXPECT_THAT(model->layers[2].inputs, ElementsAre(1, 0, 1));
  EXPECT_THAT(model->layers[3].inputs, ElementsAre(2));  // The layer before the flatten.
  EXPECT_EQ(model->layers[2].kind, LayerKind::kAdd);
  EXPECT_EQ(model->layers[2].output.DebugString(), "[3,3,4]");
  EXPECT_EQ(model->layers[3].input.DebugString(), "[1,1,36]");
  EXPECT_EQ(model->layers[3].name, "dense_4");
  EXPECT_FALSE(model->layers[1].needs_input_gradient());
  EXPECT_TRUE(model->layers[2].needs_input_gradient());
  const int64_t conv = 9 * 18 * 4;
  EXPECT_EQ(model->training_macs(), 2 * conv + 2 * conv + 3 * 36 * 2);
}

TEST(ModelTest, FlattenOfTheInputAndAtTheEndDisappear) {
  const absl::StatusOr<Model> model =
      ParseModel(Text("[2, 2, 1]",
                      "layers { name: 'flat' flatten {} } layers { dense { units: 4 } }"
                      " layers { inputs: ['dense_1', 'flat'] add {} }"
                      " layers { flatten {} }"),
                 "m");
  ASSERT_THAT(model, IsOk());
  ASSERT_EQ(model->layers.size(), 2u);
  EXPECT_THAT(model->layers[1].inputs, ElementsAre(0, -1));
  EXPECT_EQ(model->classes, 4);
}

TEST(ModelTest, InvalidLayerGraphsAreRefused) {
  const std::string dense = "layers { name: 'd' dense { units: 4 } }";
  const struct {
    std::string layers, message;
  } cases[] = {
      {absl::StrCat(dense, "layers { inputs: 'e' relu {} }"), "layer 1 (relu): inputs has 'e'"},
      {"layers { name: 'd' inputs: 'd' relu {} }", "layer 0 (relu 'd'): inputs has 'd'"},
      {absl::StrCat("layers { inputs: 'd' relu {} }", dense), "layer 0 (relu): inputs has 'd'"},
      {absl::StrCat(dense, dense), "layer 1 (dense 'd'): the name 'd' is taken"},
      {"layers { name: 'input' dense { units: 4 } }", "the name 'input' is taken"},
      {"layers { name: 'relu_1' dense { units: 4 } } layers { relu {} }",
       "layer 1 (relu): the name 'relu_1' is taken"},
      {absl::StrCat(dense, "layers { inputs: 'input' dense { units: 4 } }"),
       "no layer takes the output of layer 0 ('d')"},
      {absl::StrCat(dense, "layers { flatten {} } layers { inputs: 'd' relu {} }"),
       "no layer takes the output of layer 1 ('flatten_1')"},
      {absl::StrCat(dense, "layers { add {} }"), "add has 1 input, want 2 or more"},
      {absl::StrCat(dense, "layers { inputs: ['d', 'd'] relu {} }"),
       "layer 1 (relu), whose input is [1,1,4] and [1,1,4]: it has 2 inputs, want 1"},
      {absl::StrCat(dense, "layers { inputs: ['d', 'd'] flatten {} }"), "flatten takes one input"},
      {absl::StrCat(dense, "layers { inputs: ['d', 'input'] add {} }"),
       "layer 1 (add), whose input is [1,1,4] and [1,1,5]: add needs inputs of the same shape"},
  };
  for (const auto& c : cases) {
    EXPECT_THAT(ParseModel(Text("[5]", c.layers), "m"), IsInvalid(HasSubstr(c.message)));
  }
}

// ---- Sequences ----

TEST(ModelTest, SequencePositionsBecomeTheHeightAndDenseActsOnEach) {
  const absl::StatusOr<Model> model = ParseModel(
      Text("[7, 6]",
           "layers { layer_norm { epsilon: 0.5 } } layers { dense { units: 12 } }"
           " layers { attention { heads: 2 } } layers { gelu {} } layers { dropout { rate: 0.25 } }"
           " layers { average_pool { global: true } } layers { dense { units: 3 } }"),
      "m");
  ASSERT_THAT(model, IsOk());
  const std::vector<LayerPlan>& layers = model->layers;
  EXPECT_EQ(model->input.DebugString(), "[7,1,6]");
  EXPECT_EQ(layers[0].weights, 6);
  EXPECT_EQ(layers[0].biases, 6);
  EXPECT_EQ(layers[0].epsilon, 0.5f);
  EXPECT_EQ(layers[1].output.DebugString(), "[7,1,12]");
  EXPECT_EQ(layers[1].weights, 6 * 12);
  EXPECT_EQ(layers[1].forward_macs, 7 * 6 * 12);
  EXPECT_EQ(layers[2].kind, LayerKind::kAttention);
  EXPECT_EQ(layers[2].output.DebugString(), "[7,1,4]");
  EXPECT_EQ(layers[2].heads, 2);
  EXPECT_EQ(layers[2].forward_macs, 2 * 7 * 7 * 4);
  EXPECT_EQ(layers[2].weights + layers[2].biases, 0);
  EXPECT_EQ(layers[3].kind, LayerKind::kGelu);
  EXPECT_EQ(layers[4].drop_rate, 0.25f);
  EXPECT_EQ(layers[5].output.DebugString(), "[1,1,4]");
  ASSERT_NE(model->first_untrainable(), nullptr);
  EXPECT_EQ(model->first_untrainable()->name, "layer_norm_0");
}

TEST(ModelTest, BatchNormIsLocalAndLossIsSmoothedWhereTheTextSaysSo) {
  const absl::StatusOr<Model> model = ParseModel(
      "input: [4] layers { batch_norm { local: true } } layers { batch_norm {} }"
      " loss { softmax_cross_entropy { label_smoothing: 0.1 } } optimizer { learning_rate: 1 }",
      "m");
  ASSERT_THAT(model, IsOk());
  EXPECT_TRUE(model->layers[0].local_statistics);
  EXPECT_FALSE(model->layers[1].local_statistics);
  EXPECT_EQ(model->label_smoothing, 0.1f);
  EXPECT_EQ(model->first_untrainable(), nullptr);
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
  for (const std::string layer : {"dense { units: 2 }", "conv2d { filters: 2 }"}) {
    EXPECT_THAT(ParseModel(Text("[4, 4, 3]", absl::StrCat("layers { ", layer, " }")), "m"),
                IsInvalid(AllOf(HasSubstr("last layer"), HasSubstr("[4,4,2]"),
                                HasSubstr("global: true"), HasSubstr("flatten"))));
  }
}

TEST(ModelTest, ValuesOutOfRangeAreRefused) {
  const std::string dense = "layers { dense { units: 2 } }";
  const struct {
    std::string text, message;
  } cases[] = {
      {absl::StrCat(dense, kTail), "input has 0 dimensions"},
      {Text("[2, 2, 2, 2]", dense), "input has 4 dimensions"},
      {Text("[0]", dense), "a dimension of input is 0"},
      {Text("[-5]", dense), "a dimension of input is -5"},
      {Text("[16384, 16384, 16384]", dense), "number of input values"},
      {Text("[4]", ""), "number of layers is 0"},
      {Text("[4]", "layers { relu {} }"), "no layer that could learn"},
      {Text("[4]", "layers {}"), "has no kind"},
      {Text("[4]", "layers { dense {} }"), "units is 0"},
      {Text("[4]", "layers { dense { units: 1 } }"), "2 classes or more"},
      {Text("[4]", "layers { dense { units: 99999999999 } }"), "units is 99999999999"},
      {Text("[200000]", "layers { dense { units: 200000 } }"), "number of weights"},
      // A model may have 2^28 parameters. The weights take them all, and leave none for the biases.
      {Text("[16384]", "layers { dense { units: 16384 } }"), "number of parameters so far"},
      {Text("[4]", "layers { dense { units: 2 initializer: 7 } }"), "initializer is 7"},
      {Text("[8, 8, 1]", "layers { conv2d { filters: 0 } }"), "filters is 0"},
      {Text("[8, 8, 1]", "layers { conv2d { filters: 1 kernel: -3 } }"), "window is -3"},
      {Text("[8, 8, 1]", "layers { conv2d { filters: 1 stride: -1 } }"), "stride is -1"},
      {Text("[8, 8, 1]", "layers { conv2d { filters: 1 padding: 9 } }"), "padding is 9"},
      {Text("[16000, 16000, 1]", "layers { conv2d { filters: 16000 } }"), "output values"},
      {Text("[8, 8, 1]", "layers { max_pool { window: 9 padding: VALID } }"), "9x9 window"},
      {Text("[8, 8, 1]", "layers { max_pool { global: true window: 2 } }"),
       "global cannot be combined"},
      {Text("[4]", "layers { batch_norm { momentum: 1 } }"), "momentum is 1"},
      {Text("[4]", "layers { batch_norm { epsilon: -1 } }"), "epsilon is -1"},
      {Text("[4]", "layers { layer_norm { epsilon: 2 } }"), "epsilon is 2"},
      {Text("[4]", "layers { dropout { rate: 1 } }"), "rate is 1"},
      {Text("[4]", "layers { dropout { rate: -0.5 } }"), "rate is -0.5"},
      {Text("[4]", "layers { dropout { rate: nan } }"), "rate is nan"},
      {Text("[4, 7]", "layers { attention { heads: 1 } }"), "[positions, 1, 3 * d]"},
      {Text("[4, 4, 3]", "layers { attention { heads: 1 } }"), "[positions, 1, 3 * d]"},
      {Text("[4, 6]", "layers { attention {} }"), "heads is 0"},
      {Text("[4, 6]", "layers { attention { heads: 3 } }"), "heads is 3, want 1 to 2"},
      {Text("[4, 12]", "layers { attention { heads: 3 } }"), "want a divisor of d, which is 4"},
      // Each filter has 2^14 * 2^14 * 2^28 weights. The number of weights of all 2^14 filters would
      // overflow an int64_t.
      {Text("[268435456]", "layers { conv2d { filters: 16384 kernel: 16384 } }"),
       "the number of weights of one unit"},
      {absl::StrCat("input: [4] ", dense, " optimizer { learning_rate: 1 }"), "loss is absent"},
      {absl::StrCat("input: [4] ", dense, " loss { softmax_cross_entropy { label_smoothing: 1 } }"),
       "label_smoothing is 1"},
  };
  for (const auto& c : cases) EXPECT_THAT(ParseModel(c.text, "m"), IsInvalid(HasSubstr(c.message)));
}

TEST(ModelTest, NumberOfLayersIsBounded) {
  const auto text = [](int layers) {
    std::string all;
    for (int i = 1; i < layers; ++i) absl::StrAppend(&all, "layers { relu {} } ");
    return Text("[4]", absl::StrCat(all, "layers { dense { units: 2 } }"));
  };
  EXPECT_THAT(ParseModel(text(1 << 14), "m"), IsOk());
  EXPECT_THAT(ParseModel(text((1 << 14) + 1), "m"),
              IsInvalid(HasSubstr("the number of layers is 16385, want 1 to 16384")));
}

TEST(ModelTest, NamesWithSpecialCharactersOrOver100LettersAreRefused) {
  const std::string dense = "layers { dense { units: 2 } }", longest(100, 'n');
  const auto named = [&](const std::string& name) {
    return absl::StrCat("name: '", name, "' ", Text("[4]", dense));
  };
  const auto with_layer = [](const std::string& name) {
    return Text("[4]", absl::StrCat("layers { name: '", name, "' dense { units: 2 } }"));
  };
  EXPECT_THAT(ParseModel(named("ResNet-50_v1.5"), "m"), IsOk());
  EXPECT_THAT(ParseModel(with_layer(longest), "m"), IsOk());
  for (const std::string name : {"a b", "<b>", "\\033[2J", "caf\\xc3\\xa9"}) {
    EXPECT_THAT(ParseModel(named(name), "m"), IsInvalid(HasSubstr("name is '")));
    EXPECT_THAT(ParseModel(with_layer(name), "m"), IsInvalid(HasSubstr("name is '")));
  }
  EXPECT_THAT(ParseModel(with_layer(longest + "n"), "m"),
              IsInvalid(HasSubstr(absl::StrCat("name is '", longest, "'"))));
}

// A forward pass may do at most 2^50 multiply-accumulates for an example. Each attention of this
// test does 2^41.4. It has no parameters, so the model stays below the bound on parameters.
TEST(ModelTest, SumOfMultiplyAccumulatesIsBounded) {
  const auto heads = [](int count) {
    std::string layers, names;
    for (int i = 0; i < count; ++i) {
      absl::StrAppend(&layers, "layers { inputs: 'input' attention { heads: 1 } } ");
      absl::StrAppend(&names, "inputs: 'attention_", i, "' ");
    }
    return Text("[16384, 16383]", absl::StrCat(layers, "layers { ", names, " add {} }",
                                               " layers { average_pool { global: true } }"
                                               " layers { dense { units: 2 } }"));
  };
  EXPECT_THAT(ParseModel(heads(300), "m"), IsOk());
  EXPECT_THAT(ParseModel(heads(500), "m"),
              IsInvalid(HasSubstr("the number of multiply-accumulates so far")));
}

}  // namespace
}  // namespace systole::emulator
