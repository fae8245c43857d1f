// Compares the gradients of every kind of layer with central differences of the loss. The networks
// compute in f64 without rounding to bf16. They have several shards, and some invalid examples.
#include <cmath>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/emulator/model/model.h"
#include "client/emulator/training/network.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/client/emulator/training/training_peer.h"
#include "tests/status_matchers.h"

namespace systole::emulator {
namespace {

std::string ModelText(const std::string& input, const std::string& layers,
                      const std::string& loss = "softmax_cross_entropy {}") {
  return absl::StrCat("input: ", input, " ", layers,
                      " layers { flatten {} } layers { name: 'logits' dense { units: 3 } }",
                      " loss { ", loss, " } optimizer { learning_rate: 0.1 }");
}

// A shard has two images. Both are valid in the first shard. In the other shards only the first
// image is valid.
void FillBatch(Network<double>& network, int64_t input_size) {
  std::mt19937 random(11);
  std::normal_distribution<double> normal;
  for (int64_t s = 0; s < network.num_shards(); ++s) {
    auto& batch = network.batch(s);
    for (int64_t i = 0; i < 2 * input_size; ++i) batch.input[i] = normal(random);
    batch.labels = {s % 3, (s + 1) % 3};
    batch.valid = {1, static_cast<uint8_t>(s == 0 ? 1 : 0)};
  }
}

void ExpectGradientsEqualDifferences(const std::string& text) {
  SCOPED_TRACE(text);
  const absl::StatusOr<Model> model = ParseModel(text, "test");
  ASSERT_THAT(model, IsOk());
  Network<double> network(
      *model, {.num_cores = 2, .shards_per_core = 2, .images_per_shard = 2, .seed = 5}, nullptr);
  FillBatch(network, model->input.size());
  network.Forward(/*training=*/true);
  network.Backward();
  const std::vector<double> gradients = TrainingPeer::SumGradients(network);

  const auto set_parameter = [&](int64_t p, double value) {
    for (int64_t core = 0; core < 2; ++core) network.parameters(core)[p] = value;
  };
  // To save time, only every `step`-th parameter is checked. `step` is so small that every kind of
  // parameter is checked in each layer.
  const int64_t step = std::max<int64_t>(1, model->parameters / 150);
  for (int64_t p = 0; p < model->parameters; p += step) {
    const double value = network.parameters(0)[p], h = 1e-6;
    set_parameter(p, value + h);
    const double above = network.Forward(/*training=*/true).loss;
    set_parameter(p, value - h);
    const double below = network.Forward(/*training=*/true).loss;
    set_parameter(p, value);
    EXPECT_NEAR(gradients[p], (above - below) / (2 * h), 1e-7) << "parameter " << p;
  }
}

// Most models below have a dense or conv2d layer before the tested layer. The gradients of this
// earlier layer's parameters are right only if the tested layer's input gradient is right.
TEST(GradientTest, DenseEqualsCentralDifferences) {
  ExpectGradientsEqualDifferences(ModelText(
      "[7]", "layers { dense { units: 6 } } layers { dense { units: 4 no_bias: true } }"));
}

TEST(GradientTest, Conv2dEqualsCentralDifferencesForEveryStrideAndPadding) {
  for (const int kernel : {1, 2, 3, 5}) {
    for (const int stride : {1, 2, 3}) {
      for (const std::string padding : {"SAME", "VALID"}) {
        ExpectGradientsEqualDifferences(ModelText(
            "[6, 7, 2]",
            absl::StrCat("layers { conv2d { filters: 3 } } layers { conv2d { filters: 2 kernel: ",
                         kernel, " stride: ", stride, " padding: ", padding, " bias: true } }")));
      }
    }
  }
}

TEST(GradientTest, FirstConv2dWithStrideEqualsCentralDifferences) {
  ExpectGradientsEqualDifferences(
      ModelText("[7, 6, 2]", "layers { conv2d { filters: 3 stride: 2 bias: true } }"));
}

TEST(GradientTest, BatchNormEqualsCentralDifferencesOverShardsAndMask) {
  ExpectGradientsEqualDifferences(
      ModelText("[4, 5, 2]", "layers { conv2d { filters: 3 } } layers { batch_norm {} }"));
  ExpectGradientsEqualDifferences(ModelText("[5]",
                                            "layers { dense { units: 70 } }"
                                            " layers { batch_norm { epsilon: 0.1 } }"));
}

TEST(GradientTest, ReluEqualsCentralDifferences) {
  ExpectGradientsEqualDifferences(
      ModelText("[4, 5, 2]", "layers { conv2d { filters: 3 bias: true } } layers { relu {} }"));
}

TEST(GradientTest, PoolsEqualCentralDifferences) {
  for (const std::string pool : {"max_pool", "average_pool"}) {
    for (const std::string window :
         {"", "window: 3 stride: 2", "window: 3 stride: 1 padding: VALID",
          "window: 2 stride: 3 padding: VALID", "global: true"}) {
      ExpectGradientsEqualDifferences(ModelText(
          "[5, 7, 2]",
          absl::StrCat("layers { conv2d { filters: 3 } } layers { ", pool, " { ", window, " } }")));
    }
  }
}

TEST(GradientTest, LocalBatchNormEqualsCentralDifferencesOverTheShardsOfACore) {
  ExpectGradientsEqualDifferences(ModelText(
      "[4, 5, 2]", "layers { conv2d { filters: 3 } } layers { batch_norm { local: true } }"));
}

TEST(GradientTest, DenseAtEveryPlaceEqualsCentralDifferences) {
  ExpectGradientsEqualDifferences(ModelText(
      "[5, 3]", "layers { dense { units: 4 } } layers { relu {} } layers { dense { units: 6 } }"));
  ExpectGradientsEqualDifferences(
      ModelText("[3, 4, 2]", "layers { dense { units: 3 } } layers { dense { units: 2 } }"));
}

// All passes must drop the same values: the forward and the backward pass, and the forward passes
// for the central differences.
TEST(GradientTest, DropoutEqualsCentralDifferences) {
  ExpectGradientsEqualDifferences(
      ModelText("[5, 5, 2]", "layers { conv2d { filters: 3 } } layers { dropout { rate: 0.4 } }"));
}

TEST(GradientTest, LabelSmoothingEqualsCentralDifferences) {
  ExpectGradientsEqualDifferences(ModelText("[7]", "layers { dense { units: 4 } }",
                                            "softmax_cross_entropy { label_smoothing: 0.3 }"));
}

TEST(GradientTest, AddEqualsCentralDifferences) {
  // The add takes the model's input, the output of 'a', and the output of 'b' twice.
  ExpectGradientsEqualDifferences(
      ModelText("[6]",
                "layers { name: 'a' dense { units: 6 } } layers { name: 'b' dense { units: 6 } }"
                " layers { inputs: ['b', 'input', 'a', 'b'] add {} }"));
  // The layers 'b', 'c' and 'sum' take the output of 'a'. The last add takes the output of 'sum'
  // through a flatten.
  ExpectGradientsEqualDifferences(
      ModelText("[2, 3, 2]",
                "layers { name: 'a' conv2d { filters: 2 } } layers { name: 'b' relu {} }"
                " layers { name: 'c' inputs: 'a' conv2d { filters: 2 } }"
                " layers { name: 'sum' inputs: ['a', 'b', 'c'] add {} }"
                " layers { name: 'flat' inputs: 'sum' flatten {} }"
                " layers { name: 'd' dense { units: 12 } }"
                " layers { inputs: ['d', 'flat'] add {} }"));
}

// Two blocks as in ResNet v1.5. The first block has a stride, so its skip connection has a 1x1
// convolution. The second block's skip connection adds the block's input unchanged.
TEST(GradientTest, ResidualBlocksEqualCentralDifferences) {
  ExpectGradientsEqualDifferences(ModelText(
      "[6, 6, 2]",
      "layers { conv2d { filters: 3 } } layers { batch_norm {} } layers { name: 'in' relu {} }"
      " layers { conv2d { filters: 2 kernel: 1 } } layers { batch_norm {} } layers { relu {} }"
      " layers { conv2d { filters: 2 stride: 2 } } layers { batch_norm {} } layers { relu {} }"
      " layers { conv2d { filters: 4 kernel: 1 } } layers { name: 'up' batch_norm {} }"
      " layers { inputs: 'in' conv2d { filters: 4 kernel: 1 stride: 2 } }"
      " layers { name: 'skip' batch_norm {} } layers { inputs: ['up', 'skip'] add {} }"
      " layers { name: 'one' relu {} }"
      " layers { conv2d { filters: 2 kernel: 1 } } layers { batch_norm {} } layers { relu {} }"
      " layers { conv2d { filters: 4 } } layers { name: 'up2' batch_norm {} }"
      " layers { inputs: ['up2', 'one'] add {} } layers { relu {} } layers { dropout { rate: 0.2 } "
      "}"
      " layers { average_pool { global: true } }",
      "softmax_cross_entropy { label_smoothing: 0.1 }"));
}

TEST(GradientTest, WholeStackEqualsCentralDifferences) {
  ExpectGradientsEqualDifferences(
      ModelText("[8, 8, 3]",
                "layers { conv2d { filters: 4 } } layers { batch_norm {} } layers { relu {} }"
                " layers { max_pool {} } layers { conv2d { filters: 5 } } layers { batch_norm {} }"
                " layers { relu {} } layers { average_pool { global: true } }"));
}

}  // namespace
}  // namespace systole::emulator
