// Runs a small residual network with every optimizer. The number of threads, the instruction set,
// and the number of cores that share the same shards must not change a bit of a run. Another
// division of the batch into shards may change the run a little.
#include <cmath>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/emulator/model/model.h"
#include "client/emulator/training/network.h"
#include "client/emulator/training/trainer.h"
#include "core/numeric/simd_target.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/client/emulator/training/toy_batch.h"
#include "tests/client/emulator/training/training_peer.h"
#include "tests/status_matchers.h"

namespace systole::emulator {
namespace {

using testing::Each;
using testing::Not;
using testing::Pointwise;

// A stem and two small bottleneck blocks as in ResNet-50 v1.5. ModelWith() replaces `%` by options
// of batch norm.
constexpr char kResidual[] = R"(
  name: "toy-resnet" input: [8, 8, 3]
  layers { conv2d { filters: 8 } } layers { batch_norm { % } } layers { name: "stem" relu {} }
  layers { conv2d { filters: 4 kernel: 1 } } layers { batch_norm { % } } layers { relu {} }
  layers { conv2d { filters: 4 stride: 2 } } layers { batch_norm { % } } layers { relu {} }
  layers { conv2d { filters: 16 kernel: 1 } } layers { name: "up1" batch_norm { % } }
  layers { inputs: "stem" conv2d { filters: 16 kernel: 1 stride: 2 } }
  layers { name: "skip1" batch_norm { % } }
  layers { inputs: ["up1", "skip1"] add {} } layers { name: "block1" relu {} }
  layers { conv2d { filters: 4 kernel: 1 } } layers { batch_norm { % } } layers { relu {} }
  layers { conv2d { filters: 4 } } layers { batch_norm { % } } layers { relu {} }
  layers { conv2d { filters: 16 kernel: 1 } } layers { name: "up2" batch_norm { % } }
  layers { inputs: ["up2", "block1"] add {} } layers { relu {} }
  layers { average_pool { global: true } } layers { flatten {} } layers { dropout { rate: 0.25 } }
  layers { dense { units: 4 initializer: GLOROT_UNIFORM } }
  loss { softmax_cross_entropy { label_smoothing: 0.1 } })";
const std::vector<int64_t> kShape = {8, 8, 3};

constexpr char kMomentum[] =
    "optimizer { learning_rate: 0.1 momentum: 0.9 weight_decay: 0.0005 warmup_steps: 2"
    " decay_steps: 60 schedule: COSINE }";
constexpr char kAdam[] =
    "optimizer { learning_rate: 0.02 weight_decay: 0.01 adam {} decay_steps: 60 schedule: COSINE }";
constexpr char kLars[] =
    "optimizer { learning_rate: 2 momentum: 0.9 weight_decay: 0.0005 warmup_steps: 2"
    " decay_steps: 60 lars { trust_coefficient: 0.02 } }";
const std::vector<std::string> kOptimizers = {kMomentum, kAdam, kLars};

Model ModelWith(const std::string& optimizer, const std::string& norm = "") {
  std::string text = kResidual;
  for (size_t at = text.find('%'); at != std::string::npos; at = text.find('%')) {
    text.replace(at, 1, norm);
  }
  const absl::StatusOr<Model> model = ParseModel(absl::StrCat(text, optimizer), "test");
  EXPECT_THAT(model, IsOk());
  return *model;
}

Trainer MakeTrainer(const Model& model, const TrainerOptions& options) {
  absl::StatusOr<Trainer> trainer = Trainer::Create(model, options);
  EXPECT_THAT(trainer, IsOk());
  return *std::move(trainer);
}

std::vector<double> TrainFor(Trainer& trainer, uint32_t steps) {
  std::vector<double> losses;
  const TrainerOptions& options = trainer.options();
  for (uint32_t step = 0; step < steps; ++step) {
    const auto batch = ToyBatch(options.num_cores, options.per_core_batch, kShape, 4, step);
    const absl::StatusOr<StepResult> result = trainer.Step(InputsOf(batch));
    EXPECT_THAT(result, IsOk());
    losses.push_back(result.ok() ? result->loss : -1);
  }
  return losses;
}

// The losses of three steps, then the hash of the weights. Only runs that are equal to the last bit
// have the same numbers.
std::vector<double> RunOf(const Model& model, const TrainerOptions& options) {
  Trainer trainer = MakeTrainer(model, options);
  std::vector<double> run = TrainFor(trainer, 3);
  run.push_back(static_cast<double>(trainer.WeightsHash() >> 12));
  return run;
}

TEST(ResidualTrainingTest, EightCoresEqualOneCoreWithTheSameEightShards) {
  for (const std::string& optimizer : kOptimizers) {
    const Model model = ModelWith(optimizer);
    const std::vector<double> eight = RunOf(model, {.num_cores = 8, .per_core_batch = 2});
    EXPECT_EQ(RunOf(model, {.num_cores = 1, .per_core_batch = 16, .shards_per_core = 8}), eight)
        << optimizer;
    EXPECT_EQ(RunOf(model, {.num_cores = 2, .per_core_batch = 8, .shards_per_core = 4}), eight)
        << optimizer;
  }
}

TEST(ResidualTrainingTest, ThreadsChangeNoBit) {
  for (const std::string& optimizer : kOptimizers) {
    const Model model = ModelWith(optimizer);
    const std::vector<double> want = RunOf(model, {.num_cores = 8, .per_core_batch = 2});
    for (const int threads : {2, 7}) {
      EXPECT_EQ(RunOf(model, {.num_cores = 8, .per_core_batch = 2, .threads = threads}), want)
          << optimizer << " " << threads;
    }
  }
}

TEST(ResidualTrainingTest, InstructionSetChangesNoBit) {
  for (const std::string& optimizer : kOptimizers) {
    const Model model = ModelWith(optimizer);
    const std::vector<double> want = RunOf(model, {.num_cores = 2, .per_core_batch = 3});
    for (const std::string& target : SupportedSimdTargets()) {
      ASSERT_THAT(ForceSimdTarget(target), IsOk());
      EXPECT_EQ(RunOf(model, {.num_cores = 2, .per_core_batch = 3}), want) << target;
    }
    ASSERT_THAT(ForceSimdTarget(""), IsOk());
  }
}

// In one shard, the gradients and statistics of 16 examples are summed in one go. In eight shards
// of 2 examples they are summed in a tree. Because the order differs, two f32 sums differ by about
// 2^-24 of their value. Now and then such a difference makes bf16 round an activation to the
// neighbouring value, which changes the activation by 2^-8 of its value. The tolerance is 2^-9 of
// the gradient's norm, which allows for half of all activations to be rounded differently. The
// measured difference is 2e-5 of the norm. The f64 network does not round to bf16, so its sums
// differ only by f64's own rounding.
TEST(ResidualTrainingTest, GradientsOfOneShardMatchEightShardsWithinRounding) {
  const Model model = ModelWith(kMomentum);
  const auto gradients = [&model](auto zero, int64_t cores, int64_t images) {
    using T = decltype(zero);
    Network<T> network(model, {.num_cores = cores, .images_per_shard = images, .seed = 3}, nullptr);
    const auto batch = ToyBatch(cores, images, kShape, 4, 1);
    for (int64_t core = 0; core < cores; ++core) {
      std::copy(batch[core].image.begin(), batch[core].image.end(),
                network.batch(core).input.data());
      network.batch(core).labels = batch[core].label;
      network.batch(core).valid = batch[core].valid;
    }
    network.Forward(true);
    network.Backward();
    return TrainingPeer::SumGradients(network);
  };
  const auto distance = [](const auto& a, const auto& b) {
    double difference = 0, size = 0;
    for (size_t i = 0; i < a.size(); ++i) {
      difference += (a[i] - b[i]) * (a[i] - b[i]);
      size += b[i] * b[i];
    }
    return std::sqrt(difference / size);
  };
  const double exact = distance(gradients(0.0f, 1, 16), gradients(0.0f, 8, 2));
  EXPECT_LT(exact, 0x1p-9);
  EXPECT_GT(exact, 0);  // The order really differs.
  EXPECT_LT(distance(gradients(0.0, 1, 16), gradients(0.0, 8, 2)), 1e-12);
}

// The differences in rounding grow with every step, but the losses fall alike. In 12 steps the
// measured losses (about 2 at the start) differed by 0.014 at most.
TEST(ResidualTrainingTest, LossesOfOneShardStayNearThoseOfEightShards) {
  for (const std::string& optimizer : kOptimizers) {
    const Model model = ModelWith(optimizer);
    Trainer eight = MakeTrainer(model, {.num_cores = 8, .per_core_batch = 4});
    Trainer one = MakeTrainer(model, {.num_cores = 1, .per_core_batch = 32});
    const std::vector<double> many = TrainFor(eight, 12), single = TrainFor(one, 12);
    EXPECT_THAT(single, Pointwise(testing::DoubleNear(0.05), many)) << optimizer;
  }
}

TEST(ResidualTrainingTest, EveryOptimizerLearnsAToyProblemInBothNumerics) {
  for (const std::string& optimizer : kOptimizers) {
    for (const Numerics numerics : {Numerics::kExact, Numerics::kFast}) {
      Trainer trainer = MakeTrainer(ModelWith(optimizer),
                                    {.num_cores = 4, .per_core_batch = 8, .numerics = numerics});
      TrainFor(trainer, 60);
      const absl::StatusOr<StepResult> result =
          trainer.Evaluate(InputsOf(ToyBatch(4, 8, kShape, 4, 1000)));
      ASSERT_THAT(result, IsOk());
      EXPECT_GE(result->correct, 30) << optimizer << NumericsName(numerics);  // Of 32 examples.
    }
  }
}

TEST(ResidualTrainingTest, InvalidExamplesContributeNothing) {
  const auto run = [](float garbage) {
    Trainer trainer = MakeTrainer(ModelWith(kAdam), {.num_cores = 2, .per_core_batch = 3});
    auto batch = ToyBatch(2, 3, kShape, 4, 1);
    batch[0].valid[1] = 0;
    std::fill_n(batch[0].image.begin() + 192, 192, garbage);
    EXPECT_THAT(trainer.Step(InputsOf(batch)), IsOk());
    return trainer.WeightsHash();
  };
  EXPECT_EQ(run(0), run(NAN));
}

// The expected numbers are constants, so the test fails if a compiler or a machine changes a bit.
TEST(ResidualTrainingTest, RunOfASeedGivesTheStoredLossesAndWeights) {
  const std::vector<double> run =
      RunOf(ModelWith(kMomentum), {.num_cores = 8, .per_core_batch = 2, .seed = 3});
  EXPECT_THAT(run, testing::ElementsAre(2.36594057f, 2.71952605f, 1.76117051f, 1197493618730279));
  const std::vector<double> adam =
      RunOf(ModelWith(kAdam), {.num_cores = 8, .per_core_batch = 2, .seed = 3});
  EXPECT_THAT(adam, testing::ElementsAre(2.36594057f, 2.4676981f, 1.70963156f, 24169159916800));
  const std::vector<double> lars =
      RunOf(ModelWith(kLars), {.num_cores = 8, .per_core_batch = 2, .seed = 3});
  EXPECT_THAT(lars, testing::ElementsAre(2.36594057f, 2.12043405f, 2.37267303f, 4459214103579886));
}

// ---- Local batch norm ----

TEST(ResidualTrainingTest, LocalBatchNormEqualsGlobalOnlyOnASingleCore) {
  const Model local = ModelWith(kMomentum, "local: true"), global = ModelWith(kMomentum);
  const std::vector<double> cores = RunOf(local, {.num_cores = 4, .per_core_batch = 4});
  EXPECT_NE(cores, RunOf(global, {.num_cores = 4, .per_core_batch = 4}));
  // A single core's shards are the whole batch, so its local statistics are the global statistics.
  const TrainerOptions one = {.num_cores = 1, .per_core_batch = 16, .shards_per_core = 4};
  EXPECT_EQ(RunOf(local, one), RunOf(global, one));
}

// In channel 0, core 0 has the values 1 and 3. Core 1 has the value 5, and a value that does not
// count. Core 2 has no value that counts.
TEST(ResidualTrainingTest, RunningStatisticsAreMeansOverTheCoresThatHadExamples) {
  const absl::StatusOr<Model> model = ParseModel(
      "input: [2] layers { batch_norm { momentum: 0.5 local: true } }"
      " loss { softmax_cross_entropy {} } optimizer { learning_rate: 1e-9 }",
      "test");
  ASSERT_THAT(model, IsOk());
  Network<float> network(*model, {.num_cores = 3, .images_per_shard = 2}, nullptr);
  const float values[3][4] = {{1, 10, 3, 20}, {5, 60, 777, -777}, {0, 0, 0, 0}};
  for (int64_t s = 0; s < 3; ++s) {
    std::copy_n(values[s], 4, network.batch(s).input.data());
    network.batch(s).valid = {static_cast<uint8_t>(s < 2), static_cast<uint8_t>(s == 0)};
  }
  const auto result = network.Forward(true);
  EXPECT_TRUE(std::isfinite(result.loss));
  network.Backward();
  network.Update(1e-9f);
  // In channel 0, the batch means of cores 0 and 1 are 2 and 5, and their variances 1 and 0.
  // In channel 1, the means are 15 and 60, and the variances 25 and 0. The running means start at
  // 0, and the running variances at 1.
  for (int64_t core = 0; core < 3; ++core) {
    EXPECT_THAT(network.statistics(core),
                testing::ElementsAre(1.75f, 18.75f, 0.5f + 0.25f, 0.5f + 6.25f));
  }
  EXPECT_THAT(network.parameters(2), Not(testing::Contains(testing::IsNan())));
  EXPECT_THAT(network.HashReplicas(), Each(network.HashReplicas()[0]));
}

// On a core without valid examples, local variances would be 0. Then each batch norm would multiply
// its input by 1 / sqrt(epsilon), which is about 300. After about 15 batch norms the values would
// be infinite, and a gradient of 0 times infinity is NaN.
TEST(ResidualTrainingTest, ACoreWithoutExamplesCausesNoNanInADeepLocalBatchNorm) {
  std::string layers = "input: [4] ";
  for (int i = 0; i < 20; ++i) {
    absl::StrAppend(&layers,
                    "layers { dense { units: 4 } } layers { batch_norm { epsilon: 1e-5 local: true"
                    " } } layers { relu {} } ");
  }
  const absl::StatusOr<Model> model =
      ParseModel(absl::StrCat(layers,
                              "layers { dense { units: 4 } } loss { softmax_cross_entropy {} }"
                              " optimizer { learning_rate: 0.1 }"),
                 "test");
  ASSERT_THAT(model, IsOk());
  Trainer trainer = MakeTrainer(*model, {.num_cores = 2, .per_core_batch = 4});
  for (uint32_t step = 0; step < 4; ++step) {
    auto batch = ToyBatch(2, 4, {4}, 4, step);
    if (step > 0) batch[1].valid = {0, 0, 0, 0};  // Step 0 makes the shifts nonzero.
    ASSERT_THAT(trainer.Step(InputsOf(batch)), IsOk());
    ASSERT_THAT(TrainingPeer::Parameters(trainer, 0), Not(testing::Contains(testing::IsNan())))
        << step;
  }
}

}  // namespace
}  // namespace systole::emulator
