// Compares the models in deploy/models with the numbers that the models' sources give.
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "client/emulator/model/load_model.h"
#include "client/emulator/model/model.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/status_matchers.h"

namespace systole::emulator {
namespace {

using testing::ElementsAre;
using testing::UnorderedElementsAre;

Model Shipped(const std::string& name) {
  const absl::StatusOr<Model> model = LoadModel(name);
  EXPECT_THAT(model, IsOk());
  return model.ok() ? *model : Model{};
}

// M, K, N of a product [M, K] * [K, N] per example.
using Product = std::tuple<int64_t, int64_t, int64_t>;
std::map<Product, int> ProductsOf(const Model& model, LayerKind kind) {
  std::map<Product, int> products;
  for (const LayerPlan& layer : model.layers) {
    if (layer.kind != kind) continue;
    const int64_t n = layer.output.channels;
    ++products[{layer.output.height * layer.output.width, layer.weights / n, n}];
  }
  return products;
}

TEST(ShippedModelsTest, AllCompileUnderTheirOwnName) {
  for (const std::string name : {"flowers-cnn", "mlp-784", "resnet50", "transformer-block"}) {
    EXPECT_EQ(Shipped(name).name, name);
  }
}

TEST(ShippedModelsTest, MlpIs784To128To10) {
  const Model model = Shipped("mlp-784");
  EXPECT_EQ(model.parameters, 784 * 128 + 128 + 128 * 10 + 10);
  EXPECT_EQ(model.input_scale, 1.0f / 255.0f);
}

// torchvision's resnet50 has the same number of parameters.
TEST(ShippedModelsTest, Resnet50HasThePublishedNumberOfParametersAndMacs) {
  const Model model = Shipped("resnet50");
  EXPECT_EQ(model.parameters, 25557032);
  EXPECT_EQ(model.classes, 1000);
  EXPECT_EQ(model.statistics, 53120);
  EXPECT_EQ(model.first_untrainable(), nullptr);
  EXPECT_EQ((model.forward_macs() + 500000) / 1000000, 4089);
}

TEST(ShippedModelsTest, Resnet50HasTheMatrixProductsOfResnetV1Dot5) {
  const Model model = Shipped("resnet50");
  const auto entry = [](int64_t m, int64_t k, int64_t n, int count) {
    return std::pair<const Product, int>({m, k, n}, count);
  };
  EXPECT_THAT(
      ProductsOf(model, LayerKind::kConv2d),
      UnorderedElementsAre(entry(12544, 147, 64, 1),                              // conv1, 7x7 / 2.
                           entry(3136, 64, 64, 1), entry(3136, 576, 64, 3),       // conv2.
                           entry(3136, 64, 256, 3 + 1), entry(3136, 256, 64, 2),  //
                           entry(3136, 256, 128, 1), entry(784, 1152, 128, 1 + 3),  // conv3.
                           entry(784, 128, 512, 4), entry(784, 256, 512, 1),        //
                           entry(784, 512, 128, 3),                                 //
                           entry(784, 512, 256, 1), entry(196, 2304, 256, 1 + 5),   // conv4.
                           entry(196, 256, 1024, 6), entry(196, 512, 1024, 1),      //
                           entry(196, 1024, 256, 5),                                //
                           entry(196, 1024, 512, 1), entry(49, 4608, 512, 1 + 2),   // conv5.
                           entry(49, 512, 2048, 3), entry(49, 1024, 2048, 1),       //
                           entry(49, 2048, 512, 2)));
  EXPECT_THAT(ProductsOf(model, LayerKind::kDense), ElementsAre(entry(1, 2048, 1000, 1)));
}

TEST(ShippedModelsTest, TransformerBlockHasParametersAndMacsOfAVitBaseBlock) {
  const Model model = Shipped("transformer-block");
  const int64_t d = 768, norms = 2 * 2 * d;
  // ViT-Base has 7,087,872 parameters in each block. The layer of the classes has 769,000.
  EXPECT_EQ(model.parameters, norms + d * 3 * d + 3 * d + d * d + d + d * 4 * d + 4 * d +
                                  4 * d * d + d + d * 1000 + 1000);
  EXPECT_EQ(model.parameters, 7087872 + 769000);
  EXPECT_EQ(model.forward_macs(), 196 * 12 * d * d + 2 * 196 * 196 * d + d * 1000);
  ASSERT_NE(model.first_untrainable(), nullptr);
  EXPECT_EQ(model.first_untrainable()->name, "norm1");
}

}  // namespace
}  // namespace systole::emulator
