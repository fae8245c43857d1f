#include "client/emulator/training/trainer.h"

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/emulator/array/flush_scope.h"
#include "client/emulator/model/model.h"
#include "client/emulator/training/network.h"
#include "core/numeric/bf16.h"
#include "core/numeric/simd_target.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/client/emulator/training/toy_batch.h"
#include "tests/client/emulator/training/training_peer.h"
#include "tests/status_matchers.h"

namespace systole::emulator {
namespace {

using testing::AllOf;
using testing::HasSubstr;

constexpr char kCnn[] = R"(
  name: "toy-cnn" input: [8, 8, 3]
  layers { conv2d { filters: 8 } } layers { batch_norm {} } layers { relu {} }
  layers { max_pool {} }
  layers { conv2d { filters: 16 bias: true } } layers { batch_norm {} } layers { relu {} }
  layers { average_pool { global: true } } layers { flatten {} }
  layers { dense { units: 4 } }
  loss { softmax_cross_entropy {} }
  optimizer { learning_rate: 0.05 momentum: 0.9 weight_decay: 0.001 warmup_steps: 3 })";
const std::vector<int64_t> kCnnShape = {8, 8, 3};

constexpr char kMlp[] = R"(
  name: "toy-mlp" input: [12]
  layers { dense { units: 16 } } layers { relu {} } layers { dense { units: 4 } }
  loss { softmax_cross_entropy {} } optimizer { learning_rate: 0.1 momentum: 0.9 })";
const std::vector<int64_t> kMlpShape = {12};

Trainer MakeTrainer(const std::string& text, const TrainerOptions& options) {
  return *Trainer::Create(*ParseModel(text, "test"), options);
}

// The losses of `steps` steps, then the hash of the weights. Only runs that are equal to the last
// bit have the same numbers.
std::vector<double> RunCnn(const TrainerOptions& options, int steps = 4) {
  Trainer trainer = MakeTrainer(kCnn, options);
  std::vector<double> trace;
  for (int step = 0; step < steps; ++step) {
    const auto batch = ToyBatch(options.num_cores, options.per_core_batch, kCnnShape, 4, step);
    const absl::StatusOr<StepResult> result = trainer.Step(InputsOf(batch));
    EXPECT_THAT(result, IsOk());
    trace.push_back(result.ok() ? result->loss : -1);
  }
  trace.push_back(static_cast<double>(trainer.WeightsHash() >> 12));
  return trace;
}

TEST(TrainerTest, SameSeedGivesTheSameRunAndAnotherSeedAnother) {
  const TrainerOptions options = {.num_cores = 8, .per_core_batch = 2, .seed = 3};
  TrainerOptions other = options;
  other.seed = 4;
  EXPECT_EQ(RunCnn(options), RunCnn(options));
  EXPECT_NE(RunCnn(options), RunCnn(other));
}

TEST(TrainerTest, NumberOfThreadsChangesNoBit) {
  TrainerOptions options = {.num_cores = 8, .per_core_batch = 2, .threads = 1};
  const std::vector<double> want = RunCnn(options);
  for (const int threads : {2, 3, 8, 16}) {
    options.threads = threads;
    EXPECT_EQ(RunCnn(options), want) << threads;
  }
}

TEST(TrainerTest, InstructionSetChangesNoBit) {
  const TrainerOptions options = {.num_cores = 2, .per_core_batch = 3, .threads = 2};
  const std::vector<double> want = RunCnn(options);
  for (const std::string& target : SupportedSimdTargets()) {
    ASSERT_THAT(ForceSimdTarget(target), IsOk());
    EXPECT_EQ(RunCnn(options), want) << target;
  }
  ASSERT_THAT(ForceSimdTarget(""), IsOk());
}

// The expected numbers are constants, so the test fails if a compiler, an optimisation level or a
// machine changes a bit. Only a change of the numerics on purpose may change these constants.
TEST(TrainerTest, RunOfASeedGivesTheStoredLossesAndWeights) {
  const std::vector<double> run = RunCnn({.num_cores = 8, .per_core_batch = 2, .seed = 3});
  EXPECT_THAT(run, testing::ElementsAre(1.51778817f, 1.47303081f, 1.27821898f, 1.54062533f,
                                        3022185768351313));
}

TEST(TrainerTest, EightCoresEqualOneCoreWithTheSameEightShards) {
  const std::vector<double> eight = RunCnn({.num_cores = 8, .per_core_batch = 2});
  EXPECT_EQ(RunCnn({.num_cores = 1, .per_core_batch = 16, .shards_per_core = 8}), eight);
  EXPECT_EQ(RunCnn({.num_cores = 2, .per_core_batch = 8, .shards_per_core = 4}), eight);
  EXPECT_EQ(RunCnn({.num_cores = 3, .per_core_batch = 2}),
            RunCnn({.num_cores = 1, .per_core_batch = 6, .shards_per_core = 3}));
}

TEST(TrainerTest, FastNumericsAreBitIdenticalForAnyNumberOfThreads) {
  TrainerOptions options = {.num_cores = 8, .per_core_batch = 2, .numerics = Numerics::kFast};
  const std::vector<double> want = RunCnn(options);
  for (const int threads : {1, 2, 3, 8}) {
    options.threads = threads;
    EXPECT_EQ(RunCnn(options), want) << threads;
  }
}

TEST(TrainerTest, FastNumericsStayNearExactNumerics) {
  TrainerOptions options = {.num_cores = 4, .per_core_batch = 4};
  std::vector<double> exact = RunCnn(options);
  options.numerics = Numerics::kFast;
  std::vector<double> fast = RunCnn(options);
  exact.pop_back();  // Removes the hash.
  fast.pop_back();
  EXPECT_THAT(fast, testing::Pointwise(testing::DoubleNear(1e-2), exact));
}

// Each of eight cores has one example. The sum adds 1/8 of each example's gradient: first pairs of
// neighbours, then pairs of these sums. The division by 8 is exact.
TEST(TrainerTest, GradientsAreSummedInTheDocumentedTree) {
  const Model model = *ParseModel(kMlp, "test");
  const auto batch = ToyBatch(8, 1, kMlpShape, 4, 1);
  const auto fill = [&batch](Network<float>& network, int64_t shard, int64_t core) {
    std::copy(batch[core].image.begin(), batch[core].image.end(),
              network.batch(shard).input.data());
    network.batch(shard).labels = batch[core].label;
    network.batch(shard).valid = {1};
  };
  Network<float> eight(model, {.num_cores = 8}, nullptr);
  std::vector<std::vector<float>> g;
  for (int64_t core = 0; core < 8; ++core) {
    fill(eight, core, core);
    Network<float> one(model, {.num_cores = 1}, nullptr);
    fill(one, 0, core);
    one.Forward(true);
    one.Backward();
    g.push_back(TrainingPeer::SumGradients(one));
    for (float& value : g.back()) value /= 8;
  }
  eight.Forward(true);
  eight.Backward();
  const std::vector<float> sum = TrainingPeer::SumGradients(eight);
  for (size_t i = 0; i < sum.size(); ++i) {
    ASSERT_EQ(sum[i], ((g[0][i] + g[1][i]) + (g[2][i] + g[3][i])) +
                          ((g[4][i] + g[5][i]) + (g[6][i] + g[7][i])));
  }
}

TEST(TrainerTest, ReplicaThatDiffersIsAnInternalErrorNamingTheCore) {
  Trainer trainer = MakeTrainer(kMlp, {.num_cores = 4, .per_core_batch = 2});
  const auto batch = ToyBatch(4, 2, kMlpShape, 4, 1);
  ASSERT_THAT(trainer.Step(InputsOf(batch)), IsOk());
  float& weight = TrainingPeer::Parameters(trainer, 2)[5];
  weight = std::nextafter(weight, 9.0f);
  EXPECT_THAT(
      trainer.Step(InputsOf(batch)),
      StatusIs(absl::StatusCode::kInternal, AllOf(HasSubstr("core 2"), HasSubstr("step 1"))));
}

TEST(TrainerTest, MlpLearnsAToyProblem) {
  Trainer trainer = MakeTrainer(kMlp, {.num_cores = 4, .per_core_batch = 8, .threads = 2});
  for (uint32_t step = 0; step < 60; ++step) {
    ASSERT_THAT(trainer.Step(InputsOf(ToyBatch(4, 8, kMlpShape, 4, step))), IsOk());
  }
  EXPECT_EQ(trainer.steps(), 60);
  const auto unseen = ToyBatch(4, 8, kMlpShape, 4, 1000);
  const uint64_t before = trainer.WeightsHash();
  const absl::StatusOr<StepResult> result = trainer.Evaluate(InputsOf(unseen));
  ASSERT_THAT(result, IsOk());
  EXPECT_GE(result->correct, 29);  // There are 32 examples.
  EXPECT_LT(result->loss, 0.4);
  EXPECT_EQ(trainer.WeightsHash(), before);
}

TEST(TrainerTest, CnnWithBatchNormLearnsAndEvaluatesWithRunningStatistics) {
  Trainer trainer = MakeTrainer(kCnn, {.num_cores = 4, .per_core_batch = 8, .threads = 2});
  // For class c, ToyBatch() adds 1 to the elements c, c + 4, c + 8, .. With three channels, these
  // are in another channel from pixel to pixel. So the network must learn the pattern of these
  // elements.
  for (uint32_t step = 0; step < 50; ++step) {
    ASSERT_THAT(trainer.Step(InputsOf(ToyBatch(4, 8, kCnnShape, 4, step))), IsOk());
  }
  const absl::StatusOr<StepResult> result =
      trainer.Evaluate(InputsOf(ToyBatch(4, 8, kCnnShape, 4, 1000)));
  ASSERT_THAT(result, IsOk());
  EXPECT_GE(result->correct, 29);  // There are 32 examples.
}

TEST(TrainerTest, InvalidExamplesContributeNothing) {
  const auto run = [](float garbage, int64_t label) {
    Trainer trainer = MakeTrainer(kCnn, {.num_cores = 4, .per_core_batch = 3});
    std::vector<double> trace;
    for (uint32_t step = 0; step < 3; ++step) {
      auto batch = ToyBatch(4, 3, kCnnShape, 4, step);
      for (auto& core : batch) {
        core.valid[1] = 0;
        core.label[1] = label;
        std::fill_n(core.image.begin() + 192, 192, garbage);
      }
      batch[3].valid = {0, 0, 0};  // Core 3 has no valid example.
      const absl::StatusOr<StepResult> result = trainer.Step(InputsOf(batch));
      EXPECT_THAT(result, IsOk());
      EXPECT_EQ(result->valid, 6);
      trace.push_back(result->loss);
    }
    trace.push_back(static_cast<double>(trainer.WeightsHash() >> 12));
    return trace;
  };
  const std::vector<double> want = run(0, 0);
  EXPECT_TRUE(std::isfinite(want[2]));
  EXPECT_EQ(run(std::numeric_limits<float>::quiet_NaN(), -7), want);
  EXPECT_EQ(run(1e30f, 1 << 20), want);
}

// Trains on the same six examples, once with two invalid examples and once without them. The losses
// of a step must be nearly equal, because only the grouping of sums differs.
TEST(TrainerTest, MaskedBatchTrainsLikeTheSmallerBatch) {
  Trainer masked = MakeTrainer(kCnn, {.num_cores = 2, .per_core_batch = 4});
  Trainer small = MakeTrainer(kCnn, {.num_cores = 2, .per_core_batch = 3});
  const auto few = ToyBatch(2, 3, kCnnShape, 4, 9);
  auto many = ToyBatch(2, 4, kCnnShape, 4, 9);
  for (size_t core = 0; core < 2; ++core) {
    std::copy(few[core].image.begin(), few[core].image.end(), many[core].image.begin());
    std::copy(few[core].label.begin(), few[core].label.end(), many[core].label.begin());
    many[core].valid[3] = 0;
  }
  for (int step = 0; step < 3; ++step) {
    const absl::StatusOr<StepResult> a = masked.Step(InputsOf(many));
    const absl::StatusOr<StepResult> b = small.Step(InputsOf(few));
    ASSERT_THAT(a, IsOk());
    ASSERT_THAT(b, IsOk());
    EXPECT_NEAR(a->loss, b->loss, 1e-3);
    EXPECT_EQ(a->valid, b->valid);
  }
}

TEST(TrainerTest, BatchWithoutValidExampleChangesNoWeights) {
  Trainer trainer = MakeTrainer(kCnn, {.num_cores = 2, .per_core_batch = 2});
  auto batch = ToyBatch(2, 2, kCnnShape, 4, 1);
  for (auto& core : batch) core.valid = {0, 0};
  const uint64_t before = trainer.WeightsHash();
  const absl::StatusOr<StepResult> result = trainer.Step(InputsOf(batch));
  ASSERT_THAT(result, IsOk());
  EXPECT_EQ(result->valid, 0);
  EXPECT_EQ(result->loss, 0);
  EXPECT_EQ(trainer.WeightsHash(), before);
  EXPECT_EQ(trainer.steps(), 1);  // The rate's schedule and Adam count it.
  EXPECT_THAT(trainer.Evaluate(InputsOf(batch)), IsOk());
}

TEST(TrainerTest, DtypesOfTheSameNumbersGiveTheSameRun) {
  const auto floats = ToyBatch(2, 4, kMlpShape, 4, 1);
  std::vector<ToyCore<uint8_t>> bytes(2);
  std::vector<ToyCore<uint16_t>> halves(2);
  std::vector<ToyCore<float>> wide = floats;
  for (size_t core = 0; core < 2; ++core) {
    const auto& from = floats[core];
    bytes[core] = {from.image_shape, from.vector_shape, {}, from.label, from.valid, DType::kUint8};
    halves[core] = {from.image_shape, from.vector_shape, {},
                    from.label,       from.valid,        DType::kBfloat16};
    wide[core].image.clear();
    for (const float value : from.image) {
      const auto byte = static_cast<uint8_t>((value + 1) * 80);
      bytes[core].image.push_back(byte);
      halves[core].image.push_back(RoundToBf16(byte));
      wide[core].image.push_back(byte);
    }
  }
  const auto loss_of = [](const std::vector<CoreInputs>& inputs) {
    Trainer trainer = MakeTrainer(absl::StrCat(kMlp, " input_scale: 0.01"),
                                  {.num_cores = 2, .per_core_batch = 4});
    EXPECT_THAT(trainer.Step(inputs), IsOk());
    return trainer.Step(inputs)->loss;
  };
  EXPECT_EQ(loss_of(InputsOf(bytes)), loss_of(InputsOf(wide)));
  EXPECT_EQ(loss_of(InputsOf(halves)), loss_of(InputsOf(wide)));
}

TEST(TrainerTest, CallersFloatingPointStateIsRestored) {
  Trainer trainer = MakeTrainer(kMlp, {.num_cores = 2, .per_core_batch = 2});
  const uint64_t before = FlushScope::ControlBits();
  ASSERT_THAT(trainer.Step(InputsOf(ToyBatch(2, 2, kMlpShape, 4, 1))), IsOk());
  EXPECT_EQ(FlushScope::ControlBits(), before);
}

// ---- All the error paths ----

TEST(TrainerTest, OptionsOutOfRangeAreRefusedByName) {
  const Model model = *ParseModel(kMlp, "test");
  const struct {
    TrainerOptions options;
    std::string message;
  } cases[] = {{{.num_cores = 0}, "num_cores is 0"},
               {{.per_core_batch = -1}, "per_core_batch is -1"},
               {{.shards_per_core = 0}, "shards_per_core is 0"},
               {{.threads = 0}, "threads is 0"},
               {{.memory_limit_bytes = -1}, "memory_limit_bytes is -1"},
               {{.per_core_batch = 5, .shards_per_core = 2}, "multiple of shards_per_core (2)"}};
  for (const auto& c : cases) {
    EXPECT_THAT(Trainer::Create(model, c.options),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(c.message)));
  }
}

TEST(TrainerTest, UntrainableLayerIsRefusedByNameWithTheRemedy) {
  const absl::StatusOr<Model> model = ParseModel(
      "name: 'm' input: [4] layers { dense { units: 4 } } layers { name: 'curve' gelu {} }"
      " loss { softmax_cross_entropy {} } optimizer { learning_rate: 1 }",
      "test");
  ASSERT_THAT(model, IsOk());
  EXPECT_THAT(Trainer::Create(*model, {}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("layer 'curve'"), HasSubstr("`systole compile`"))));
}

TEST(TrainerTest, ModelOverTheMemoryLimitIsRefusedBeforeItIsMade) {
  const Model model = *ParseModel(kCnn, "test");
  EXPECT_THAT(Trainer::Create(model, {.per_core_batch = 1 << 20}),
              StatusIs(absl::StatusCode::kResourceExhausted,
                       AllOf(HasSubstr("toy-cnn"), HasSubstr("make global_batch smaller"))));
  EXPECT_THAT(Trainer::Create(model, {.memory_limit_bytes = 1000}),
              StatusIs(absl::StatusCode::kResourceExhausted, HasSubstr("1000 bytes")));
}

TEST(TrainerTest, InputsThatDoNotFitAreRefusedByCoreAndTensor) {
  Trainer trainer = MakeTrainer(kMlp, {.num_cores = 2, .per_core_batch = 3});
  const auto batch = ToyBatch(2, 3, kMlpShape, 4, 1);
  const std::vector<CoreInputs> good = InputsOf(batch);
  const auto expect_refused = [&](const std::vector<CoreInputs>& inputs, const auto& message) {
    const auto refused = StatusIs(absl::StatusCode::kInvalidArgument, message);
    EXPECT_THAT(trainer.Step(inputs), refused);
    EXPECT_THAT(trainer.Evaluate(inputs), refused);
  };
  expect_refused({good[0]}, HasSubstr("slices for 1 cores, want 2"));

  const std::vector<int64_t> short_vector = {2}, wide_image = {3, 13}, flat_image = {36},
                             huge = {3, int64_t{1} << 62, int64_t{1} << 62}, negative = {3, -12};
  auto bad = good;
  bad[1].label.shape = short_vector;
  expect_refused(bad, AllOf(HasSubstr("core 1: tensor 'label'"), HasSubstr("int64[2]"),
                            HasSubstr("int64[3]")));
  bad = good;
  bad[1].label.dtype = DType::kInt32;
  expect_refused(bad, AllOf(HasSubstr("'label' is int32[3]"), HasSubstr("want int64[3]")));
  bad = good;
  bad[0].valid.dtype = DType::kInt64;
  expect_refused(bad, HasSubstr("core 0: tensor 'valid' is int64[3], want uint8[3]"));
  bad = good;
  bad[1].image.dtype = DType::kInt32;
  expect_refused(bad, AllOf(HasSubstr("core 1: tensor 'image' is int32[3,12]"),
                            HasSubstr("bfloat16, float16, float32 or uint8")));
  for (const auto* shape : {&wide_image, &flat_image, &huge, &negative, &short_vector}) {
    bad = good;
    bad[1].image.shape = *shape;
    expect_refused(bad, AllOf(HasSubstr("core 1: tensor 'image' is float32["),
                              HasSubstr("want [3,12] as model 'toy-mlp' says")));
  }
}

TEST(TrainerTest, LabelOutOfRangeIsRefusedByCoreAndSlotUnlessInvalid) {
  Trainer trainer = MakeTrainer(kMlp, {.num_cores = 2, .per_core_batch = 3});
  for (const int64_t label : {int64_t{-1}, int64_t{4}}) {
    auto batch = ToyBatch(2, 3, kMlpShape, 4, 1);
    batch[1].label[2] = label;
    EXPECT_THAT(
        trainer.Step(InputsOf(batch)),
        StatusIs(absl::StatusCode::kInvalidArgument,
                 HasSubstr(absl::StrCat("core 1, slot 2: label is ", label, ", want 0 to 3"))));
    batch[1].valid[2] = 0;
    EXPECT_THAT(trainer.Step(InputsOf(batch)), IsOk());
  }
}

TEST(TrainerTest, ImageOfAnotherShapeAndTheSameSizeIsAccepted) {
  Trainer trainer = MakeTrainer(kCnn, {.num_cores = 1, .per_core_batch = 2});
  auto batch = ToyBatch(1, 2, kCnnShape, 4, 1);
  batch[0].image_shape = {2, 192};
  EXPECT_THAT(trainer.Step(InputsOf(batch)), IsOk());
}

}  // namespace
}  // namespace systole::emulator
