#include "client/emulator/training/network.h"

#include <algorithm>
#include <cmath>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/emulator/array/flush_scope.h"
#include "client/emulator/model/model.h"
#include "core/concurrency/worker_pool.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/client/emulator/training/training_peer.h"
#include "tests/status_matchers.h"

namespace systole::emulator {
namespace {

using testing::Each;
using testing::ElementsAreArray;

constexpr char kStack[] = R"(
  input: [6, 6, 2]
  layers { conv2d { filters: 32 bias: true } } layers { batch_norm {} } layers { relu {} }
  layers { max_pool {} } layers { flatten {} }
  layers { dense { units: 3 initializer: GLOROT_UNIFORM } }
  loss { softmax_cross_entropy {} }
  optimizer { learning_rate: 0.5 momentum: 0.75 weight_decay: 0.125 })";

Model StackModel() {
  const absl::StatusOr<Model> model = ParseModel(kStack, "test");
  EXPECT_THAT(model, IsOk());
  return *model;
}

// Fills the batch with examples that depend only on `seed`. They are the same for float and double,
// because bf16 holds their numbers exactly.
template <typename T>
void FillBatch(Network<T>& network, const Model& model, int64_t images, uint32_t seed = 1) {
  std::mt19937 random(seed);
  for (int64_t s = 0; s < network.num_shards(); ++s) {
    auto& batch = network.batch(s);
    for (int64_t i = 0; i < images * model.input.size(); ++i) {
      batch.input[i] = static_cast<T>(static_cast<int>(random() % 65) - 32) / 16;
    }
    for (int64_t i = 0; i < images; ++i) {
      batch.labels[i] = static_cast<int64_t>(random() % 3);
      batch.valid[i] = 1;
    }
  }
}

template <typename T>
absl::Span<T> WeightsOf(Network<T>& network, const LayerPlan& layer, int64_t core = 0) {
  return network.parameters(core).subspan(static_cast<size_t>(layer.weights_at),
                                          static_cast<size_t>(layer.weights));
}

// ---- Initial weights ----

TEST(NetworkTest, InitialWeightsAreUniformWithinTheLimitOfTheirInitializer) {
  const Model model = StackModel();
  Network<float> network(model, {.num_cores = 1, .seed = 1}, nullptr);
  const auto check = [&](const LayerPlan& layer, float limit) {
    const absl::Span<float> weights = WeightsOf(network, layer);
    double sum = 0, squares = 0;
    for (const float w : weights) {
      EXPECT_LE(std::abs(w), limit);
      sum += w;
      squares += static_cast<double>(w) * w;
    }
    const auto n = static_cast<double>(weights.size());
    const double deviation = limit / std::sqrt(3.0);
    EXPECT_NEAR(sum / n, 0, 4 * deviation / std::sqrt(n));
    EXPECT_NEAR(squares / n / (deviation * deviation), 1, 4 / std::sqrt(n));
  };
  check(model.layers[0], std::sqrt(6.0f / 18));         // He: 3 x 3 x 2 inputs.
  check(model.layers[4], std::sqrt(6.0f / (288 + 3)));  // Glorot: 3 x 3 x 32 inputs, 3 outputs.
}

TEST(NetworkTest, BiasesStartAsZeroAndBatchNormAsIdentity) {
  const Model model = StackModel();
  Network<float> network(model, {.num_cores = 2, .seed = 1}, nullptr);
  const LayerPlan &conv = model.layers[0], &norm = model.layers[1];
  const absl::Span<float> all = network.parameters(1);
  EXPECT_THAT(all.subspan(conv.biases_at, conv.biases), Each(0.0f));
  EXPECT_THAT(all.subspan(norm.weights_at, norm.weights), Each(1.0f));
  EXPECT_THAT(all.subspan(norm.biases_at, norm.biases), Each(0.0f));
  EXPECT_THAT(network.statistics(1).first(32), Each(0.0f));    // Running means.
  EXPECT_THAT(network.statistics(1).subspan(32), Each(1.0f));  // Running variances.
}

TEST(NetworkTest, InitialWeightsDependOnTheSeedAndOnNothingElse) {
  const Model model = StackModel();
  Network<float> one(model, {.num_cores = 1, .seed = 7}, nullptr);
  WorkerPool pool(3);
  Network<float> many(model, {.num_cores = 5, .shards_per_core = 2, .seed = 7}, &pool);
  Network<float> other(model, {.num_cores = 1, .seed = 8}, nullptr);
  for (int64_t core = 0; core < 5; ++core) {
    EXPECT_THAT(many.parameters(core), ElementsAreArray(one.parameters(0)));
  }
  EXPECT_NE(WeightsOf(one, model.layers[0])[0], WeightsOf(other, model.layers[0])[0]);
  EXPECT_NE(WeightsOf(one, model.layers[0])[0] * std::sqrt(18.0f),
            WeightsOf(one, model.layers[4])[0] * std::sqrt(291.0f));
}

// ---- The two numerics ----

// `exact` rounds its operands to bf16, which keeps 8 bits. `real` does not round. So the losses and
// gradients of the two are close, but not equal.
TEST(NetworkTest, ExactNumericsStayWithinBf16RoundingOfF64) {
  const Model model = StackModel();
  const NetworkOptions options = {.num_cores = 2, .images_per_shard = 8, .seed = 3};
  Network<float> exact(model, options, nullptr);
  Network<double> real(model, options, nullptr);
  FillBatch(exact, model, 8);
  FillBatch(real, model, 8);
  const auto exact_result = exact.Forward(true);
  const auto real_result = real.Forward(true);
  EXPECT_NEAR(exact_result.loss, real_result.loss, 0.02);
  EXPECT_NE(static_cast<double>(exact_result.loss), real_result.loss);
  EXPECT_EQ(exact_result.valid, 16);
  exact.Backward();
  real.Backward();
  const std::vector<float> g = TrainingPeer::SumGradients(exact);
  const std::vector<double> want = TrainingPeer::SumGradients(real);
  double difference = 0, size = 0;
  for (size_t i = 0; i < g.size(); ++i) {
    difference += (g[i] - want[i]) * (g[i] - want[i]);
    size += want[i] * want[i];
  }
  EXPECT_LT(std::sqrt(difference / size), 0.03);
}

// ---- The update ----

// For a weight w with gradient g: v = momentum * v + (g + decay * w), then w = w - rate * v. Only
// weights of conv2d and dense layers decay.
TEST(NetworkTest, UpdateIsMomentumWithDecayOfWeightsOnly) {
  const Model model = StackModel();
  Network<float> network(model, {.num_cores = 2, .images_per_shard = 4, .seed = 3}, nullptr);
  Network<float> shadow(model, {.num_cores = 2, .images_per_shard = 4, .seed = 3}, nullptr);
  std::vector<float> w(network.parameters(0).begin(), network.parameters(0).end());
  std::vector<float> v(w.size());
  std::vector<float> decay(w.size());
  for (const LayerPlan& layer : model.layers) {
    if (layer.kind != LayerKind::kConv2d && layer.kind != LayerKind::kDense) continue;
    std::fill_n(decay.begin() + layer.weights_at, layer.weights, 0.125f);
  }
  for (int step = 0; step < 3; ++step) {
    FillBatch(network, model, 4, step);
    FillBatch(shadow, model, 4, step);
    std::copy(network.parameters(0).begin(), network.parameters(0).end(),
              shadow.parameters(0).begin());
    std::copy(network.parameters(1).begin(), network.parameters(1).end(),
              shadow.parameters(1).begin());
    shadow.Forward(true);
    shadow.Backward();
    const std::vector<float> g = TrainingPeer::SumGradients(shadow);
    network.Forward(true);
    network.Backward();
    network.Update(0.5f);
    for (size_t i = 0; i < w.size(); ++i) {
      v[i] = 0.75f * v[i] + (g[i] + decay[i] * w[i]);
      w[i] = w[i] - 0.5f * v[i];
    }
    ASSERT_THAT(network.parameters(0), ElementsAreArray(w)) << "step " << step;
    ASSERT_THAT(network.parameters(1), ElementsAreArray(w)) << "step " << step;
  }
}

// The gradients of five shards, of one example each, are summed as ((g0 + g1) + (g2 + g3)) + g4.
TEST(NetworkTest, AnUnpairedGradientMovesUpTheSummationTreeUnchanged) {
  const absl::StatusOr<Model> model = ParseModel(
      "input: [4] layers { dense { units: 3 } } loss { softmax_cross_entropy {} }"
      " optimizer { learning_rate: 1 }",
      "test");
  ASSERT_THAT(model, IsOk());
  Network<float> five(*model, {.num_cores = 5}, nullptr);
  FillBatch(five, *model, 1);
  five.Forward(true);
  five.Backward();
  const std::vector<float> sum = TrainingPeer::SumGradients(five);
  // g[s] is the gradient of shard s alone. The softmax divides by the number of all examples, so
  // g[s] is from a network of five shards, too. The other four shards have an all-zero image, whose
  // weight gradient is 0.
  std::vector<std::vector<float>> g;
  for (int64_t s = 0; s < 5; ++s) {
    Network<float> lone(*model, {.num_cores = 5}, nullptr);
    FillBatch(lone, *model, 1);
    for (int64_t other = 0; other < 5; ++other) {
      if (other != s) std::fill_n(lone.batch(other).input.data(), 4, 0.0f);
    }
    lone.Forward(true);
    lone.Backward();
    g.push_back(TrainingPeer::SumGradients(lone));
  }
  for (int64_t i = 0; i < model->layers[0].weights; ++i) {
    EXPECT_EQ(sum[i], ((g[0][i] + g[1][i]) + (g[2][i] + g[3][i])) + g[4][i]);
  }
}

TEST(NetworkTest, ReplicasHashAlikeUntilOneDiffers) {
  const Model model = StackModel();
  Network<float> network(model, {.num_cores = 3, .seed = 3}, nullptr);
  const std::vector<uint64_t> before = network.HashReplicas();
  EXPECT_THAT(before, Each(before[0]));
  network.statistics(1)[3] += 1;
  network.parameters(2)[0] += 1;
  const std::vector<uint64_t> after = network.HashReplicas();
  EXPECT_EQ(after[0], before[0]);
  EXPECT_NE(after[1], before[0]);
  EXPECT_NE(after[2], before[0]);
}

// In training, batch norm uses the statistics of the batch, which depend on all of its examples. In
// evaluation it uses the running statistics.
TEST(NetworkTest, EvaluationOfAnExampleDoesNotDependOnTheRestOfTheBatch) {
  const Model model = StackModel();
  const auto loss_of_first = [&model](uint32_t company, bool training) {
    Network<float> network(model, {.num_cores = 1, .images_per_shard = 4, .seed = 3}, nullptr);
    FillBatch(network, model, 4, company);
    FillBatch(network, model, 1, 99);  // The first example.
    if (!training) network.batch(0).valid = {1, 0, 0, 0};
    const auto result = network.Forward(training);
    return result.loss;
  };
  EXPECT_EQ(loss_of_first(1, false), loss_of_first(2, false));
  EXPECT_NE(loss_of_first(1, true), loss_of_first(2, true));
}

// Training and evaluation smooth the labels in the same way, so their losses can be compared.
TEST(NetworkTest, EvaluationLossUsesLabelSmoothingAsInTraining) {
  const auto losses = [](const std::string& smoothing) {
    const absl::StatusOr<Model> model =
        ParseModel(absl::StrCat("input: [4] layers { dense { units: 3 } } loss {"
                                " softmax_cross_entropy { ",
                                smoothing, " } } optimizer { learning_rate: 1 }"),
                   "test");
    EXPECT_THAT(model, IsOk());
    Network<float> network(*model, {.num_cores = 2, .images_per_shard = 4, .seed = 3}, nullptr);
    FillBatch(network, *model, 4);
    return std::pair(network.Forward(true).loss, network.Forward(false).loss);
  };
  const auto [training, evaluation] = losses("label_smoothing: 0.2");
  EXPECT_EQ(evaluation, training);
  EXPECT_NE(evaluation, losses("").second);
}

// A subnormal product or sum becomes zero, whether or not the calling thread itself flushes
// subnormal numbers. The first case multiplies a velocity of 2^-126 by the momentum 3 / 4. In the
// second case LARS squares weights of 2^-66 for their norm. Both results are subnormal.
TEST(NetworkTest, SubnormalsAreFlushedWhateverTheCallersState) {
  for (const std::string optimizer : {"momentum: 0.75", "weight_decay: 0.5 lars {}"}) {
    const absl::StatusOr<Model> model = ParseModel(
        absl::StrCat("input: [4] layers { dense { units: 3 } } loss { softmax_cross_entropy {} }"
                     " optimizer { learning_rate: 1 ",
                     optimizer, " }"),
        "test");
    ASSERT_THAT(model, IsOk());
    const auto run = [&model] {
      Network<float> network(*model, {.num_cores = 1}, nullptr);
      network.batch(0).valid = {1};
      network.batch(0).input[0] = 0x1p-60f;
      std::fill_n(network.parameters(0).data(), model->layers[0].weights, 0x1p-66f);
      std::fill_n(network.optimizer_state(0)[0].data(), model->parameters, 0x1p-126f);
      network.Forward(true);
      network.Backward();
      network.Update(1.0f);
      const absl::Span<const float> velocity = network.optimizer_state(0)[0].span();
      std::vector<float> all(velocity.begin(), velocity.end());
      all.insert(all.end(), network.parameters(0).begin(), network.parameters(0).end());
      return all;
    };
    const std::vector<float> plain = run();
    const auto run_flushed = [&run] {
      const FlushScope flush;
      return run();
    };
    // The comparison is outside of the FlushScope, because inside a subnormal number equals zero.
    EXPECT_EQ(run_flushed(), plain) << optimizer;
  }
}

TEST(NetworkTest, BytesGrowWithCoresShardsAndImages) {
  const Model model = StackModel();
  const int64_t one = Network<float>::Bytes(model, {.num_cores = 1, .images_per_shard = 1});
  EXPECT_GT(one, 3 * model.parameters * 4);
  EXPECT_EQ(Network<float>::Bytes(model, {.num_cores = 8, .images_per_shard = 1}), 8 * one);
  const int64_t images = Network<float>::Bytes(model, {.num_cores = 1, .images_per_shard = 100});
  const int64_t shards =
      Network<float>::Bytes(model, {.num_cores = 1, .shards_per_core = 100, .images_per_shard = 1});
  EXPECT_GT(images, one + 99 * 3 * (6 * 6 * 32) * 4);  // Outputs of conv2d, batch_norm, relu.
  EXPECT_GT(shards, images);                           // Each shard has its own gradients.
}

}  // namespace
}  // namespace systole::emulator
