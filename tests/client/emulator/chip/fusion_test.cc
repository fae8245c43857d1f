#include "client/emulator/chip/fusion.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/client/emulator/chip/toy_chip.h"

namespace systole::emulator {
namespace {

using testing::ElementsAre;

// The rows as text. '|' separates the passes of a row, as in "conv|norm,relu". A row with products
// begins with '*'.
std::vector<std::string> RowsOf(const Model& model, bool training = true) {
  std::vector<std::string> texts;
  for (const FusedRow& row : FuseLayers(model, training)) {
    std::string text = row.products ? "*" : "";
    for (size_t pass = 0; pass < row.passes.size(); ++pass) {
      if (pass > 0) text += "|";
      for (size_t i = 0; i < row.passes[pass].layers.size(); ++i) {
        absl::StrAppend(&text, i > 0 ? "," : "",
                        model.layers[static_cast<size_t>(row.passes[pass].layers[i])].name);
      }
    }
    texts.push_back(text);
  }
  return texts;
}

constexpr char kHead[] = " layers { flatten {} } layers { name: \"classes\" dense { units: 2 } }";

Model Convolution(const std::string& after) {
  return ToyModel("8, 8, 3",
                  absl::StrCat("layers { name: \"conv\" conv2d { filters: 4 } } ", after, kHead));
}

TEST(FusionTest, ReluIsFusedIntoTheConvolutionsEpilogue) {
  EXPECT_THAT(RowsOf(Convolution("layers { name: \"relu\" relu {} }")),
              ElementsAre("*conv,relu", "*classes"));
}

TEST(FusionTest, BatchNormOpensAPassThatReluAndPoolJoin) {
  const Model model = Convolution(
      "layers { name: \"norm\" batch_norm {} } layers { name: \"relu\" relu {} } "
      "layers { name: \"pool\" max_pool {} }");
  EXPECT_THAT(RowsOf(model), ElementsAre("*conv|norm,relu,pool", "*classes"));
}

// Inference uses the norm's running statistics, which are fixed. So the norm is only a scale and a
// shift, and the convolution's epilogue can do both.
TEST(FusionTest, InferenceFoldsBatchNorm) {
  const Model model = Convolution(
      "layers { name: \"norm\" batch_norm {} } layers { name: \"relu\" relu {} } "
      "layers { name: \"pool\" max_pool {} }");
  EXPECT_THAT(RowsOf(model, /*training=*/false), ElementsAre("*conv,norm,relu|pool", "*classes"));
}

TEST(FusionTest, APoolAfterAnEpilogueIsAPassOfItsOwn) {
  EXPECT_THAT(RowsOf(Convolution("layers { name: \"pool\" average_pool {} }")),
              ElementsAre("*conv|pool", "*classes"));
}

// Two layers use the output of "relu", so neither can be fused with "relu". The sum is fused with
// the branch that is computed last.
TEST(FusionTest, AResidualSumIsFusedWithItsConvolutionBranch) {
  const Model model = ToyModel("8, 8, 3", absl::StrCat(R"(
      layers { name: "a" conv2d { filters: 4 } }
      layers { name: "relu" relu {} }
      layers { name: "b" conv2d { filters: 4 } }
      layers { name: "norm" batch_norm {} }
      layers { name: "sum" inputs: ["norm", "relu"] add {} })",
                                                       kHead));
  EXPECT_THAT(RowsOf(model), ElementsAre("*a,relu", "*b|norm,sum", "*classes"));
}

TEST(FusionTest, ASumIsFusedWithTheLaterOfTwoBranches) {
  const Model model = ToyModel("8, 8, 3", absl::StrCat(R"(
      layers { name: "a" conv2d { filters: 4 } }
      layers { name: "b" inputs: "input" conv2d { filters: 4 } }
      layers { name: "sum" inputs: ["b", "a"] add {} })",
                                                       kHead));
  EXPECT_THAT(RowsOf(model), ElementsAre("*a", "*b,sum", "*classes"));
}

TEST(FusionTest, LayersThatCannotBeFusedBeginARow) {
  const Model model = ToyModel("8, 8, 3", absl::StrCat(R"(
      layers { name: "relu" relu {} }
      layers { name: "norm" batch_norm {} }
      layers { name: "a" conv2d { filters: 3 } }
      layers { name: "sum" inputs: ["a", "norm"] add {} }
      layers { name: "twice" inputs: ["sum", "sum"] add {} })",
                                                       kHead));
  EXPECT_THAT(RowsOf(model), ElementsAre("relu|norm", "*a,sum", "twice", "*classes"));
}

TEST(FusionTest, ATransformerBlockHasItsNormsApart) {
  EXPECT_THAT(RowsOf(ShippedModel("transformer-block")),
              ElementsAre("norm1", "*qkv", "*attention", "*projection,add1", "norm2",
                          "*mlp1,gelu_7", "*mlp2,add2|average_pool_10", "*classes"));
}

// The model has 53 convolutions and a dense layer.
TEST(FusionTest, ResNet50HasARowForEveryProduct) {
  const std::vector<std::string> rows = RowsOf(ShippedModel("resnet50"));
  ASSERT_EQ(rows.size(), 54u);
  EXPECT_EQ(rows[0], "*conv1|batch_norm_1,relu_2,pool1");
  for (const std::string& row : rows) EXPECT_EQ(row[0], '*') << row;
}

}  // namespace
}  // namespace systole::emulator
