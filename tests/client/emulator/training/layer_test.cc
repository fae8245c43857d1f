// Tests the layers, the loss and the vector unit. Most tests compare the results with a definition
// in plain loops, or with numbers worked out by hand.
#include "client/emulator/training/layer.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/emulator/array/flush_scope.h"
#include "client/emulator/array/vector_unit.h"
#include "client/emulator/model/model.h"
#include "client/emulator/training/make_layer.h"
#include "client/emulator/training/network.h"
#include "client/emulator/training/softmax_cross_entropy.h"
#include "core/numeric/bf16.h"
#include "core/numeric/simd_target.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/client/emulator/training/training_peer.h"
#include "tests/status_matchers.h"

namespace systole::emulator {
namespace {

using testing::ElementsAre;
using testing::Pointwise;

LayerPlan PlanOf(const std::string& input, const std::string& layer) {
  const absl::StatusOr<Model> model =
      ParseModel(absl::StrCat("input: ", input, " layers { ", layer,
                              " } layers { flatten {} } layers { dense { units: 2 } } loss {"
                              " softmax_cross_entropy {} } optimizer { learning_rate: 1 }"),
                 "m");
  EXPECT_THAT(model, IsOk());
  return model->layers[0];
}

DeviceArray<float> RandomNumbers(int64_t size, uint32_t seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  DeviceArray<float> out(size);
  for (int64_t i = 0; i < size; ++i) out[i] = normal(random);
  return out;
}

float Operand(float value) { return Bf16ToFloat(RoundToBf16Flush(value)); }

// The convolution by its definition. Operands are rounded to bf16, and the sum is taken in double.
std::vector<float> Convolve(const LayerPlan& plan, const DeviceArray<float>& in,
                            const DeviceArray<float>& weights, int64_t images) {
  const Window& w = plan.window;
  std::vector<float> out;
  for (int64_t image = 0; image < images; ++image) {
    for (int64_t oy = 0; oy < plan.output.height; ++oy) {
      for (int64_t ox = 0; ox < plan.output.width; ++ox) {
        for (int64_t f = 0; f < plan.output.channels; ++f) {
          double sum = 0;
          for (int64_t ky = 0; ky < w.size_y; ++ky) {
            for (int64_t kx = 0; kx < w.size_x; ++kx) {
              const int64_t y = oy * w.stride + ky - w.pad_top, x = ox * w.stride + kx - w.pad_left;
              if (y < 0 || y >= plan.input.height || x < 0 || x >= plan.input.width) continue;
              for (int64_t c = 0; c < plan.input.channels; ++c) {
                sum += Operand(in[((image * plan.input.height + y) * plan.input.width + x) *
                                      plan.input.channels +
                                  c]) *
                       static_cast<double>(
                           Operand(weights[((ky * w.size_x + kx) * plan.input.channels + c) *
                                               plan.output.channels +
                                           f]));
              }
            }
          }
          out.push_back(static_cast<float>(sum));
        }
      }
    }
  }
  return out;
}

TEST(LayerTest, Conv2dEqualsItsDefinition) {
  const int64_t images = 2;
  for (const std::string shape : {"[6, 5, 3]", "[9, 12, 16]"}) {
    for (const std::string conv :
         {"filters: 4", "filters: 20 kernel: 5", "filters: 3 kernel: 3 stride: 2",
          "filters: 3 kernel: 4 padding: VALID", "filters: 7 kernel: 2 stride: 3 padding: VALID",
          "filters: 33 kernel: 1", "filters: 2 kernel: 1 stride: 2"}) {
      const LayerPlan plan = PlanOf(shape, absl::StrCat("conv2d { ", conv, " }"));
      const auto in = RandomNumbers(images * plan.input.size(), 1);
      const auto weights = RandomNumbers(plan.weights, 2);
      const auto layer = MakeLayer<float>(plan, images, false,
                                          {.weights = weights.span(),
                                           .biases = {},
                                           .weight_gradients = {},
                                           .bias_gradients = {},
                                           .statistics = {}});
      MatrixUnit<float> unit;
      DeviceArray<float> out(images * plan.output.size());
      layer->Forward(0, {.images = images, .matrix_unit = &unit}, {in.data()}, out.data());
      EXPECT_THAT(out.span(),
                  Pointwise(testing::FloatNear(2e-4f), Convolve(plan, in, weights, images)))
          << shape << " " << conv;
    }
  }
}

// The results of one layer's forward and backward passes, in one list.
template <typename T>
std::vector<double> ForwardAndBackward(const LayerPlan& plan, int64_t images) {
  // The values are multiples of 1/16 from -2 to 2. bf16 holds them exactly, and f32 holds the sums
  // of their products. So no sum is rounded, and the order of the sums does not matter.
  std::mt19937 random(5);
  const auto numbers = [&random](int64_t size) {
    DeviceArray<T> out(size);
    for (int64_t i = 0; i < size; ++i) {
      out[i] = static_cast<T>(static_cast<int>(random() % 65) - 32) / 16;
    }
    return out;
  };
  const DeviceArray<T> in = numbers(images * plan.input.size());
  const DeviceArray<T> d_out = numbers(images * plan.output.size());
  const DeviceArray<T> weights = numbers(plan.weights), biases = numbers(plan.biases);
  DeviceArray<T> out(images * plan.output.size()), d_in(images * plan.input.size());
  DeviceArray<T> d_weights(plan.weights), d_biases(plan.biases);
  const auto layer = MakeLayer<T>(plan, images, true,
                                  {.weights = weights.span(),
                                   .biases = biases.span(),
                                   .weight_gradients = d_weights.span(),
                                   .bias_gradients = d_biases.span(),
                                   .statistics = {}});
  MatrixUnit<T> unit;
  std::vector<double> all;
  // The passes run twice, to show that a second run does not depend on what the first run left.
  for (int pass = 0; pass < 2; ++pass) {
    const StepContext<T> step = {.images = images, .training = true, .matrix_unit = &unit};
    layer->Forward(0, step, {in.data()}, out.data());
    layer->Backward(0, step, {in.data()}, d_out.data(), d_in.data());
    for (const auto* array : {&out, &d_in, &d_weights, &d_biases}) {
      all.insert(all.end(), array->span().begin(), array->span().end());
    }
  }
  return all;
}

// gradient_test.cc compares the gradients of the f64 layers with numerical differences of the loss.
// This test shows that the f32 layers equal the f64 layers. So the f32 gradients are right, too.
TEST(LayerTest, F32LayersEqualF64LayersWhereNothingIsRounded) {
  for (const std::string shape : {"[7, 6, 3]", "[5, 9, 17]"}) {
    for (const std::string layer :
         {"conv2d { filters: 4 bias: true }", "conv2d { filters: 18 kernel: 5 bias: true }",
          "conv2d { filters: 3 stride: 2 }", "conv2d { filters: 5 stride: 3 padding: VALID }",
          "conv2d { filters: 5 kernel: 2 padding: VALID }", "conv2d { filters: 40 kernel: 1 }",
          "conv2d { filters: 7 kernel: 1 stride: 2 }", "max_pool {}",
          "max_pool { window: 3 stride: 1 }", "relu {}"}) {
      const LayerPlan plan = PlanOf(shape, layer);
      EXPECT_EQ(ForwardAndBackward<float>(plan, 3), ForwardAndBackward<double>(plan, 3))
          << shape << " " << layer;
    }
  }
  const LayerPlan dense = PlanOf("[70]", "dense { units: 33 }");
  EXPECT_EQ(ForwardAndBackward<float>(dense, 5), ForwardAndBackward<double>(dense, 5));
}

TEST(LayerTest, AveragePoolGradientIsSplitOverUnpaddedPositions) {
  const LayerPlan plan = PlanOf("[3, 3, 1]", "average_pool {}");
  const auto layer = MakeLayer<float>(plan, 1, true, {});
  const float in[9] = {}, d_out[] = {4, 4, 4, 4};
  float d_in[9];
  layer->Backward(0, {.images = 1}, {in}, d_out, d_in);
  EXPECT_THAT(d_in, ElementsAre(1, 1, 2, 1, 1, 2, 2, 2, 4));
}

std::vector<float> Pooled(const std::string& input, const std::string& pool,
                          const std::vector<float>& values) {
  const LayerPlan plan = PlanOf(input, pool);
  const auto layer = MakeLayer<float>(plan, 1, false, {});
  std::vector<float> out(static_cast<size_t>(plan.output.size()));
  layer->Forward(0, {.images = 1}, {values.data()}, out.data());
  return out;
}

TEST(LayerTest, PoolsTakeTheirWindowsAndIgnorePadding) {
  const std::vector<float> values = {-1, -2, -3, -4, -5, -6, -7, -8, -9};  // 3 x 3.
  EXPECT_THAT(Pooled("[3, 3, 1]", "max_pool {}", values), ElementsAre(-1, -3, -7, -9));
  EXPECT_THAT(Pooled("[3, 3, 1]", "average_pool {}", values), ElementsAre(-3, -4.5f, -7.5f, -9));
  EXPECT_THAT(Pooled("[3, 3, 1]", "max_pool { padding: VALID }", values), ElementsAre(-1));
  EXPECT_THAT(Pooled("[3, 3, 1]", "max_pool { stride: 1 padding: VALID }", values),
              ElementsAre(-1, -2, -4, -5));
  EXPECT_THAT(Pooled("[3, 3, 1]", "average_pool { global: true }", values), ElementsAre(-5));
  EXPECT_THAT(Pooled("[3, 3, 1]", "max_pool { global: true }", values), ElementsAre(-1));
  EXPECT_THAT(Pooled("[2, 2, 2]", "max_pool {}", {1, 8, 2, 7, 3, 6, 4, 5}), ElementsAre(4, 8));
}

TEST(LayerTest, MaxPoolGradientGoesToTheFirstOfEquals) {
  const LayerPlan plan = PlanOf("[2, 2, 1]", "max_pool {}");
  const auto layer = MakeLayer<float>(plan, 1, true, {});
  const float in[] = {3, 7, 7, 7}, d_out[] = {5};
  float out[1], d_in[4];
  layer->Forward(0, {.images = 1}, {in}, out);
  layer->Backward(0, {.images = 1}, {in}, d_out, d_in);
  EXPECT_THAT(d_in, ElementsAre(0, 5, 0, 0));
}

// A mean or variance is over the valid examples of all shards. Invalid examples change nothing, and
// come out as zeros.
TEST(LayerTest, BatchNormNormalisesOverTheValidExamplesOfAllShards) {
  const absl::StatusOr<Model> model = ParseModel(
      "input: [2] layers { batch_norm { momentum: 0.75 epsilon: 1e-6 } } loss {"
      " softmax_cross_entropy {} } optimizer { learning_rate: 1e-9 }",
      "m");
  ASSERT_THAT(model, IsOk());
  Network<float> network(*model, {.num_cores = 2, .images_per_shard = 2}, nullptr);
  const float values[2][4] = {{1, 10, 3, 20}, {5, 60, 777, -777}};
  for (int64_t s = 0; s < 2; ++s) {
    std::copy_n(values[s], 4, network.batch(s).input.data());
    network.batch(s).valid = {1, static_cast<uint8_t>(s == 0 ? 1 : 0)};
  }
  const auto result = network.Forward(true);
  EXPECT_EQ(result.valid, 3);
  // The valid values are 1, 3, 5 in channel 0, and 10, 20, 60 in channel 1. The means are 3 and 30,
  // the variances 8 / 3 and 1400 / 3.
  const auto normal = [](float from_mean, float variance) {
    return testing::FloatNear(from_mean / std::sqrt(variance + 1e-6f), 1e-5f);
  };
  EXPECT_THAT(TrainingPeer::Output(network, 0, 0),
              ElementsAre(normal(-2, 8.f / 3), normal(-20, 1400.f / 3), normal(0, 8.f / 3),
                          normal(-10, 1400.f / 3)));
  EXPECT_THAT(TrainingPeer::Output(network, 1, 0),
              ElementsAre(normal(2, 8.f / 3), normal(30, 1400.f / 3), 0, 0));
  network.Backward();
  network.Update(1e-9f);
  // A running statistic is 0.75 * its start value (mean 0, variance 1) + 0.25 * the batch's
  // statistic.
  EXPECT_THAT(network.statistics(1),
              ElementsAre(testing::FloatEq(0.75f), testing::FloatEq(7.5f),
                          testing::FloatEq(0.75f + 0.25f * 8 / 3),
                          testing::FloatNear(0.75f + 0.25f * 1400 / 3, 1e-3f)));
}

TEST(SoftmaxCrossEntropyTest, EqualsItsDefinition) {
  const float logits[] = {1, 2, 3, 50, 0, -50, 0, 0, 0};
  const std::vector<int64_t> labels = {2, 1, 99};
  const std::vector<uint8_t> valid = {1, 1, 0};
  float d_logits[9];
  const LossSums<float> sums =
      SoftmaxCrossEntropy<float>(logits, 3, labels, valid, 0.0f, 2.0f, d_logits);
  const double z = std::exp(1.0) + std::exp(2.0) + std::exp(3.0);
  EXPECT_NEAR(sums.loss, std::log(z) - 3 + 50, 1e-5);
  EXPECT_EQ(sums.correct, 1);
  EXPECT_NEAR(d_logits[0], std::exp(1.0) / z / 2, 1e-7);
  EXPECT_NEAR(d_logits[2], (std::exp(3.0) / z - 1) / 2, 1e-7);
  EXPECT_NEAR(d_logits[3], 0.5, 1e-7);
  EXPECT_NEAR(d_logits[4], -0.5, 1e-7);
  for (int i = 6; i < 9; ++i) EXPECT_EQ(d_logits[i], 0.0f);  // Example 2 is invalid.
}

TEST(SoftmaxCrossEntropyTest, LabelSmoothingSpreadsTheTargetOverAllClasses) {
  const float logits[] = {1, 2, 3};
  const std::vector<int64_t> labels = {1};
  const std::vector<uint8_t> valid = {1};
  float d_logits[3];
  const LossSums<float> sums =
      SoftmaxCrossEntropy<float>(logits, 3, labels, valid, 0.3f, 2.0f, d_logits);
  const double z = std::exp(1.0) + std::exp(2.0) + std::exp(3.0), targets[] = {0.1, 0.8, 0.1};
  double loss = 0;
  for (int c = 0; c < 3; ++c) {
    loss -= targets[c] * std::log(std::exp(logits[c]) / z);
    EXPECT_NEAR(d_logits[c], (std::exp(logits[c]) / z - targets[c]) / 2, 1e-7);
  }
  EXPECT_NEAR(sums.loss, loss, 1e-6);
  EXPECT_EQ(sums.correct, 0);
}

// If the largest logit were not subtracted first, exp would overflow, and log would get 0.
TEST(SoftmaxCrossEntropyTest, HugeLogitsStayFinite) {
  const float logits[] = {1e4f, -1e4f, 0, 3e38f, 0, -3e38f};
  const std::vector<int64_t> labels = {1, 0};
  const std::vector<uint8_t> valid = {1, 1};
  float d_logits[6];
  const LossSums<float> sums =
      SoftmaxCrossEntropy<float>(logits, 3, labels, valid, 0.0f, 1.0f, d_logits);
  EXPECT_FLOAT_EQ(sums.loss, 2e4f);
  EXPECT_EQ(sums.correct, 1);
  EXPECT_THAT(d_logits, ElementsAre(1, -1, 0, 0, 0, 0));
}

TEST(SoftmaxCrossEntropyTest, TheFirstOfEqualLogitsIsThePrediction) {
  const float logits[] = {2, 2, 2, 2};
  const std::vector<uint8_t> valid = {1, 1};
  EXPECT_EQ(SoftmaxCrossEntropy<float>(logits, 2, {0, 1}, valid, 0.0f, 1.0f, nullptr).correct, 1);
  EXPECT_NEAR(SoftmaxCrossEntropy<double>(std::vector<double>(4, 2.0).data(), 2, {0, 1}, valid, 0.0,
                                          1.0, nullptr)
                  .loss,
              2 * std::log(2.0), 1e-12);
}

// Runs every function of the vector unit.
TEST(VectorUnitTest, EveryInstructionSetGivesTheSameBits) {
  const auto run = [](int64_t channels) {
    const FlushScope flush;
    const int64_t rows = 203, n = rows * channels;
    const VectorUnit<float>& unit = GetVectorUnit<float>();
    const auto x = RandomNumbers(n, 1), dy = RandomNumbers(n, 2);
    const PerChannel<float> mean(RandomNumbers(channels, 3).span());
    const PerChannel<float> scale(RandomNumbers(channels, 4).span());
    std::vector<float> bits;
    const auto keep = [&bits](const DeviceArray<float>& a) {
      bits.insert(bits.end(), a.span().begin(), a.span().end());
    };
    DeviceArray<float> sums(channels), y(n), best = RandomNumbers(n, 5);
    unit.sum_rows(rows, channels, x.data(), sums.data());
    unit.sum_squares(rows, channels, x.data(), mean, sums.data());
    unit.sum_products(rows, channels, dy.data(), x.data(), mean, scale, sums.data());
    keep(sums);
    unit.normalise(rows, channels, x.data(), mean, scale, mean, y.data());
    unit.add_bias(rows, channels, mean, y.data());
    unit.add(n, x.data(), y.data());
    unit.add_divided(n, dy.data(), 3.0f, y.data());
    keep(y);
    unit.normalise_backward(rows, channels, x.data(), dy.data(), mean, scale, scale, mean, mean,
                            y.data());
    keep(y);
    unit.relu(n, x.data(), y.data());
    keep(y);
    unit.relu_backward(n, x.data(), dy.data(), y.data());
    std::vector<int32_t> place(static_cast<size_t>(n));
    unit.keep_larger(n, x.data(), 1, best.data(), place.data());
    unit.add_where(n, place.data(), 1, dy.data(), y.data());
    keep(y);
    DeviceArray<float> v = RandomNumbers(n, 6);
    unit.update(n, 0.1f, 0.9f, 0.01f, dy.data(), v.data(), y.data());
    keep(y);
    unit.update_lars(n, 0.1f, 0.9f, 0.01f, dy.data(), v.data(), y.data());
    keep(y);
    keep(v);
    unit.relu(n, RandomNumbers(n, 7).data(), v.data());  // As second moments, v is not negative.
    unit.update_adam(n, {0.1f, 0.9f, 0.999f, 0.1f, 0.001f, 1e-8f, 0.01f}, dy.data(), best.data(),
                     v.data(), y.data());
    keep(best);
    keep(v);
    keep(y);
    std::vector<uint32_t> out;
    for (const float value : bits) out.push_back(std::bit_cast<uint32_t>(value));
    return out;
  };
  for (const int64_t channels : {1, 3, 16, 37, 64, 130}) {
    const std::vector<uint32_t> want = run(channels);
    for (const std::string& target : SupportedSimdTargets()) {
      ASSERT_THAT(ForceSimdTarget(target), IsOk());
      EXPECT_EQ(run(channels), want) << target << ", channels " << channels;
    }
    ASSERT_THAT(ForceSimdTarget(""), IsOk());
  }
}

TEST(VectorUnitTest, ReluOfNanAndOfNegativeZeroIsPositiveZero) {
  const float x[] = {NAN, -0.0f, -1.0f, 2.0f};
  float y[4];
  GetVectorUnit<float>().relu(4, x, y);
  EXPECT_EQ(std::bit_cast<uint32_t>(y[0]), 0u);
  EXPECT_EQ(std::bit_cast<uint32_t>(y[1]), 0u);
  EXPECT_EQ(std::bit_cast<uint32_t>(y[2]), 0u);
  EXPECT_EQ(y[3], 2.0f);
}

}  // namespace
}  // namespace systole::emulator
