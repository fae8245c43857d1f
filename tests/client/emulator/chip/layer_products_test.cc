#include "client/emulator/chip/layer_products.h"

#include <string>
#include <tuple>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/client/emulator/chip/toy_chip.h"

namespace systole::emulator {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

// M, K, N and the number of repeats of a product.
using Numbers = std::tuple<int64_t, int64_t, int64_t, int64_t>;
std::vector<Numbers> NumbersOf(const std::vector<Product>& products) {
  std::vector<Numbers> numbers;
  for (const Product& p : products) numbers.emplace_back(p.gemm.m, p.gemm.k, p.gemm.n, p.repeats);
  return numbers;
}

double MacsOf(const std::vector<Product>& products) {
  double macs = 0;
  for (const Product& p : products) {
    macs += static_cast<double>(p.gemm.m) * static_cast<double>(p.gemm.k) *
            static_cast<double>(p.gemm.n) * static_cast<double>(p.repeats);
  }
  return macs;
}

// The plan of the first layer of `layers`. A dense layer is added at the model's end.
LayerPlan FirstLayer(const std::string& input, const std::string& layers) {
  return ToyModel(input, layers + " layers { flatten {} } layers { dense { units: 2 } }").layers[0];
}

TEST(LayerProductsTest, AConvolutionOfStrideOneHasThreeProducts) {
  const LayerProducts products =
      ProductsOf(FirstLayer("10, 12, 5", "layers { conv2d { filters: 7 } }"), 3);
  EXPECT_THAT(NumbersOf(products.forward), ElementsAre(Numbers(360, 45, 7, 1)));
  EXPECT_THAT(NumbersOf(products.weight_gradient), ElementsAre(Numbers(45, 360, 7, 1)));
  EXPECT_THAT(NumbersOf(products.input_gradient), ElementsAre(Numbers(360, 63, 5, 1)));
}

// With a 3x3 kernel and stride 2, the input's rows alternately meet 2 and 1 of the 3 rows of
// weights. The same is true of columns. So the four phases have 4, 2, 2 and 1 of the 9 weights.
TEST(LayerProductsTest, InputGradientOfAStridedConvolutionSplitsIntoPhases) {
  const LayerProducts products =
      ProductsOf(FirstLayer("8, 8, 5", "layers { conv2d { filters: 7 kernel: 3 stride: 2 } }"), 3);
  EXPECT_THAT(NumbersOf(products.forward), ElementsAre(Numbers(48, 45, 7, 1)));
  EXPECT_THAT(NumbersOf(products.input_gradient),
              ElementsAre(Numbers(48, 28, 5, 1), Numbers(48, 14, 5, 1), Numbers(48, 14, 5, 1),
                          Numbers(48, 7, 5, 1)));
  EXPECT_EQ(MacsOf(products.input_gradient), MacsOf(products.forward));
}

// SAME pads 2 rows before the input and 3 rows after it. So the input's rows 0, 2, .. meet the rows
// 0, 2, 4, 6 of weights, and the rows 1, 3, .. meet the rows 1, 3, 5. The same is true of columns.
// So the four phases have 16, 12, 12 and 9 of the 49 weights.
TEST(LayerProductsTest, A7x7ConvolutionOfStrideTwoHasUnequalPhases) {
  const LayerProducts products = ProductsOf(
      FirstLayer("224, 224, 3", "layers { conv2d { filters: 64 kernel: 7 stride: 2 } }"), 1);
  EXPECT_THAT(NumbersOf(products.forward), ElementsAre(Numbers(12544, 147, 64, 1)));
  EXPECT_THAT(NumbersOf(products.input_gradient),
              ElementsAre(Numbers(12544, 16 * 64, 3, 1), Numbers(12544, 12 * 64, 3, 1),
                          Numbers(12544, 12 * 64, 3, 1), Numbers(12544, 9 * 64, 3, 1)));
}

TEST(LayerProductsTest, AStrided1x1ConvolutionHasOneInputGradientPhase) {
  const LayerProducts products =
      ProductsOf(FirstLayer("7, 6, 5", "layers { conv2d { filters: 4 kernel: 1 stride: 2 } }"), 10);
  EXPECT_THAT(NumbersOf(products.forward), ElementsAre(Numbers(120, 5, 4, 1)));
  EXPECT_THAT(NumbersOf(products.input_gradient), ElementsAre(Numbers(120, 4, 5, 1)));
}

// The output has one place. SAME pads nothing before the input, so in each direction weights 0 and
// 1 meet a place of the input, and weight 2 meets padding. So there are four phases, each of one
// place and one weight.
TEST(LayerProductsTest, EqualPhasesBecomeRepeatsOfOneProduct) {
  const LayerProducts products =
      ProductsOf(FirstLayer("2, 2, 1", "layers { conv2d { filters: 1 kernel: 3 stride: 3 } }"), 1);
  EXPECT_THAT(NumbersOf(products.input_gradient), ElementsAre(Numbers(1, 1, 1, 4)));
}

// There are 2^26 phases of one place each. They are repeats of one product.
TEST(LayerProductsTest, AHugeStrideGivesOneRepeatedProduct) {
  const LayerProducts products = ProductsOf(
      FirstLayer("8192, 8192, 1", "layers { conv2d { filters: 1 kernel: 8192 stride: 8192 } }"), 1);
  EXPECT_THAT(NumbersOf(products.input_gradient), ElementsAre(Numbers(1, 1, 1, int64_t{1} << 26)));
}

TEST(LayerProductsTest, ADenseLayerActsOnEveryPosition) {
  const LayerProducts products =
      ProductsOf(FirstLayer("9, 20", "layers { dense { units: 30 } }"), 4);
  EXPECT_THAT(NumbersOf(products.forward), ElementsAre(Numbers(36, 20, 30, 1)));
  EXPECT_THAT(NumbersOf(products.weight_gradient), ElementsAre(Numbers(20, 36, 30, 1)));
  EXPECT_THAT(NumbersOf(products.input_gradient), ElementsAre(Numbers(36, 30, 20, 1)));
}

TEST(LayerProductsTest, AnAttentionRepeatsItsProductsForEveryHead) {
  const LayerProducts products =
      ProductsOf(FirstLayer("9, 36", "layers { attention { heads: 3 } }"), 5);
  EXPECT_THAT(NumbersOf(products.forward), ElementsAre(Numbers(9, 4, 9, 15), Numbers(9, 9, 4, 15)));
  EXPECT_EQ(MacsOf(products.input_gradient), 2 * MacsOf(products.forward));
  EXPECT_THAT(products.weight_gradient, IsEmpty());
}

TEST(LayerProductsTest, AReluLayerHasNoProducts) {
  const LayerProducts products = ProductsOf(FirstLayer("4, 4, 2", "layers { relu {} }"), 1);
  EXPECT_THAT(products.forward, IsEmpty());
  EXPECT_THAT(products.input_gradient, IsEmpty());
}

}  // namespace
}  // namespace systole::emulator
