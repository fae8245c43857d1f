#include "client/emulator/training/weight_update.h"

#include <algorithm>
#include <cmath>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/emulator/model/model.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/status_matchers.h"

namespace systole::emulator {
namespace {

using testing::Each;

// A model whose first dense layer has 33,000 weights, which are five pieces of the update.
Model ModelWith(const std::string& optimizer) {
  const absl::StatusOr<Model> model =
      ParseModel(absl::StrCat("input: [330] layers { dense { units: 100 } }"
                              " layers { batch_norm {} } layers { dense { units: 3 } }"
                              " loss { softmax_cross_entropy {} } optimizer { ",
                              optimizer, " }"),
                 "test");
  EXPECT_THAT(model, IsOk());
  return *model;
}

DeviceArray<float> RandomNumbers(int64_t size, uint32_t seed, float deviation) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal(0, deviation);
  DeviceArray<float> out(size);
  for (int64_t i = 0; i < size; ++i) out[i] = normal(random);
  return out;
}

// For each parameter, whether it is a weight of a dense layer. Other parameters do not decay, and
// LARS does not scale their rate.
std::vector<bool> WeightsOf(const Model& model) {
  std::vector<bool> is_weight(static_cast<size_t>(model.parameters));
  for (const LayerPlan& layer : model.layers) {
    if (layer.kind != LayerKind::kDense) continue;
    std::fill_n(is_weight.begin() + layer.weights_at, layer.weights, true);
  }
  return is_weight;
}

struct Replica {
  DeviceArray<float> weights;
  std::vector<DeviceArray<float>> states;
};

Replica MakeReplica(const Model& model) {
  Replica replica = {.weights = RandomNumbers(model.parameters, 1, 0.1f), .states = {}};
  const int64_t states = WeightUpdate<float>::StatesPerParameter(model.optimizer);
  for (int64_t i = 0; i < states; ++i) replica.states.emplace_back(model.parameters);
  return replica;
}

void Update(WeightUpdate<float>& update, float rate, int64_t step,
            const DeviceArray<float>& gradient, Replica& replica, bool backwards = false) {
  const auto n = static_cast<int64_t>(update.pieces().size());
  const auto piece = [&](int64_t i) { return backwards ? n - 1 - i : i; };
  for (int64_t i = 0; i < n; ++i) {
    update.Measure(piece(i), gradient.data(), replica.weights.data());
  }
  update.FinishMeasures();
  for (int64_t i = 0; i < n; ++i) {
    update.Apply(piece(i), rate, step, gradient.data(), absl::MakeSpan(replica.states),
                 replica.weights.data());
  }
}

TEST(WeightUpdateTest, PiecesCoverEveryParameterOnce) {
  const Model model = ModelWith("learning_rate: 1");
  const WeightUpdate<float> update(model);
  const std::vector<bool> is_weight = WeightsOf(model);
  std::vector<int> covered(static_cast<size_t>(model.parameters));
  for (const auto& piece : update.pieces()) {
    for (int64_t i = piece.begin; i < piece.end; ++i) {
      ++covered[static_cast<size_t>(i)];
      ASSERT_EQ(piece.is_weights, is_weight[static_cast<size_t>(i)]) << i;
    }
  }
  EXPECT_THAT(covered, Each(1));
  ASSERT_GT(update.pieces().size(), 5);
  // The size of the pieces must not change, because LARS sums a norm piece by piece: other pieces
  // would change the bits of the sum.
  for (size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(update.pieces()[i].end - update.pieces()[i].begin, 8192);
  }
  EXPECT_EQ(update.pieces()[4].end, 33000);
}

// Computes model.proto's formula in double, with decoupled decay and the corrections of both
// moments.
TEST(WeightUpdateTest, AdamFollowsItsDefinitionInDouble) {
  const Model model = ModelWith(
      "learning_rate: 1 weight_decay: 0.25 adam { beta1: 0.8 beta2: 0.99 epsilon: 1e-4 }");
  const std::vector<bool> is_weight = WeightsOf(model);
  WeightUpdate<float> update(model);
  Replica replica = MakeReplica(model);
  std::vector<double> w(replica.weights.span().begin(), replica.weights.span().end());
  std::vector<double> m(w.size()), v(w.size());
  const double beta1 = 0.8f, beta2 = 0.99f, rate = 0.01f;
  for (int step = 0; step < 4; ++step) {
    const DeviceArray<float> g = RandomNumbers(model.parameters, 10 + step, 0.01f);
    Update(update, 0.01f, step, g, replica);
    for (size_t i = 0; i < w.size(); ++i) {
      const double gradient = g[static_cast<int64_t>(i)];
      m[i] = beta1 * m[i] + (1 - beta1) * gradient;
      v[i] = beta2 * v[i] + (1 - beta2) * gradient * gradient;
      const double direction =
          m[i] / (1 - std::pow(beta1, step + 1)) /
          (std::sqrt(v[i] / (1 - std::pow(beta2, step + 1))) + static_cast<double>(1e-4f));
      w[i] -= rate * (direction + (is_weight[i] ? 0.25 : 0.0) * w[i]);
    }
  }
  double worst = 0;
  for (size_t i = 0; i < w.size(); ++i) {
    worst = std::max(worst, std::abs(replica.weights[static_cast<int64_t>(i)] - w[i]));
  }
  EXPECT_LT(worst, 1e-6);
  EXPECT_EQ(replica.states.size(), 2u);
}

// The first step moves every weight by about the rate, whatever the gradient's size is. This holds
// only if the corrections are exact, although beta2^t is close to 1 in this step.
TEST(WeightUpdateTest, AdamsFirstStepMovesEachWeightByTheLearningRate) {
  const Model model = ModelWith("learning_rate: 1 adam {}");
  WeightUpdate<float> update(model);
  Replica replica = MakeReplica(model);
  const DeviceArray<float> before = RandomNumbers(model.parameters, 1, 0.1f);
  const DeviceArray<float> g = RandomNumbers(model.parameters, 2, 1.0f);
  Update(update, 0.125f, 0, g, replica);
  for (int64_t i = 0; i < model.parameters; ++i) {
    ASSERT_NEAR(before[i] - replica.weights[i], std::copysign(0.125, g[i]), 1e-4) << g[i];
  }
}

TEST(WeightUpdateTest, LarsFollowsItsDefinitionInDoubleLayerByLayer) {
  const Model model = ModelWith(
      "learning_rate: 1 momentum: 0.75 weight_decay: 0.125"
      " lars { trust_coefficient: 0.5 epsilon: 0.01 }");
  const std::vector<bool> is_weight = WeightsOf(model);
  WeightUpdate<float> update(model);
  Replica replica = MakeReplica(model);
  std::vector<double> w(replica.weights.span().begin(), replica.weights.span().end());
  std::vector<double> v(w.size());
  for (int step = 0; step < 3; ++step) {
    const DeviceArray<float> g = RandomNumbers(model.parameters, 10 + step, 0.01f);
    Update(update, 0.5f, step, g, replica);
    for (const LayerPlan& layer : model.layers) {
      double squares_w = 0, squares_g = 0;
      for (int64_t i = layer.weights_at; i < layer.weights_at + layer.weights; ++i) {
        squares_w += w[static_cast<size_t>(i)] * w[static_cast<size_t>(i)];
        squares_g += static_cast<double>(g[i]) * g[i];
      }
      const double norm = std::sqrt(squares_w);
      const double ratio =
          0.5 * norm / (std::sqrt(squares_g) + 0.125 * norm + static_cast<double>(0.01f));
      for (int64_t i = layer.weights_at; i < layer.biases_at + layer.biases; ++i) {
        const auto at = static_cast<size_t>(i);
        const double push = is_weight[at] ? 0.5 * ratio * (g[i] + 0.125 * w[at]) : 0.5 * g[i];
        v[at] = 0.75 * v[at] + push;
        w[at] -= v[at];
      }
    }
  }
  for (size_t i = 0; i < w.size(); ++i) {
    ASSERT_NEAR(replica.weights[static_cast<int64_t>(i)], w[i], 2e-6) << i;
  }
}

TEST(WeightUpdateTest, LarsHasRatioOneForZeroWeightsAndNoUpdateForZeroGradient) {
  const Model model = ModelWith("learning_rate: 1 lars {}");
  WeightUpdate<float> update(model);
  Replica replica = MakeReplica(model);
  std::fill_n(replica.weights.data(), model.parameters, 0.0f);
  DeviceArray<float> g(model.parameters);
  std::fill_n(g.data(), model.parameters, 0.25f);
  Update(update, 0.5f, 0, g, replica);
  // |w| is 0. By the formula the ratio would be 0, too, and the weights would stay 0.
  EXPECT_THAT(replica.weights.span(), Each(-0.125f));
  replica = MakeReplica(model);
  // The divisor is 0. By the formula the ratio would be infinite, and the weights NaN.
  const DeviceArray<float> before = RandomNumbers(model.parameters, 1, 0.1f);
  Update(update, 0.5f, 1, DeviceArray<float>(model.parameters), replica);
  for (int64_t i = 0; i < model.parameters; ++i) ASSERT_EQ(replica.weights[i], before[i]);
}

TEST(WeightUpdateTest, OrderOfThePiecesChangesNoBit) {
  for (const std::string optimizer :
       {"momentum: 0.9", "adam {}", "momentum: 0.9 lars { trust_coefficient: 0.02 }"}) {
    const Model model = ModelWith(absl::StrCat("learning_rate: 1 weight_decay: 0.01 ", optimizer));
    WeightUpdate<float> update(model);
    Replica forwards = MakeReplica(model), backwards = MakeReplica(model);
    for (int step = 0; step < 3; ++step) {
      const DeviceArray<float> g = RandomNumbers(model.parameters, 10 + step, 0.01f);
      Update(update, 0.1f, step, g, forwards);
      Update(update, 0.1f, step, g, backwards, /*backwards=*/true);
    }
    for (int64_t i = 0; i < model.parameters; ++i) {
      ASSERT_EQ(forwards.weights[i], backwards.weights[i]) << optimizer;
    }
  }
}

}  // namespace
}  // namespace systole::emulator
