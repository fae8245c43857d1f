// A run that is saved and resumed must equal the run without a break. A checkpoint of another run
// must be refused.
#include "client/emulator/training/checkpoint.h"

#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "client/emulator/model/model.h"
#include "client/emulator/training/checkpoint_file.h"
#include "client/emulator/training/training_loop.h"
#include "core/storage/byte_sink.h"
#include "core/storage/memory_source.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/client/emulator/training/toy_batch.h"
#include "tests/status_matchers.h"

namespace systole::emulator {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr char kLayers[] = R"(
  name: "toy" input: [8, 8, 3]
  layers { conv2d { filters: 8 } } layers { batch_norm {} } layers { relu {} }
  layers { average_pool { global: true } } layers { flatten {} }
  layers { dropout { rate: 0.2 } } layers { dense { units: 4 } }
  loss { softmax_cross_entropy {} })";
constexpr char kMomentum[] =
    "optimizer { learning_rate: 0.05 momentum: 0.9 weight_decay: 0.001 warmup_steps: 5 }";

Model ModelWith(const std::string& optimizer) {
  return *ParseModel(absl::StrCat(kLayers, optimizer), "test");
}
Trainer MakeTrainer(const Model& model, const TrainerOptions& options = {
                                            .num_cores = 4, .per_core_batch = 2, .seed = 7}) {
  return *Trainer::Create(model, options);
}

// Trains until `trainer` has done `end` steps, and returns the losses of the new steps. A step's
// batch depends only on the step's number.
std::vector<double> StepTo(int64_t end, Trainer& trainer) {
  std::vector<double> losses;
  while (trainer.steps() < end) {
    const auto batch = ToyBatch(trainer.options().num_cores, trainer.options().per_core_batch,
                                {8, 8, 3}, 4, static_cast<uint32_t>(trainer.steps()));
    const absl::StatusOr<StepResult> result = trainer.Step(InputsOf(batch));
    EXPECT_THAT(result, IsOk());
    losses.push_back(result.ok() ? result->loss : -1);
  }
  return losses;
}

// A checkpoint after the steps that `trainer` has done, in the first epoch. Epochs have 10 steps.
Checkpoint CheckpointOf(Trainer& trainer) {
  LoopState loop;
  loop.current.steps = loop.step_in_epoch = trainer.steps();
  return TakeCheckpoint(trainer, loop, {.global_batch = 8, .steps_per_epoch = 10}, "token");
}

// The bytes of the checkpoint's file.
std::string BytesOf(const Checkpoint& checkpoint) {
  std::string bytes;
  EXPECT_THAT(WriteCheckpoint(checkpoint, "test", std::make_unique<StringSink>(&bytes)), IsOk());
  return bytes;
}

absl::StatusOr<Checkpoint> Read(const std::string& bytes) {
  return ReadCheckpoint(MemorySource(bytes, "a.ckpt"));
}

TEST(CheckpointTest, AResumedRunIsBitIdenticalToAnUninterruptedRun) {
  const std::string optimizers[] = {
      kMomentum, "optimizer { learning_rate: 0.01 adam {} weight_decay: 0.01 }",
      "optimizer { learning_rate: 0.5 momentum: 0.9 weight_decay: 0.001 lars {} }"};
  for (const std::string& optimizer : optimizers) {
    for (const Numerics numerics : {Numerics::kExact, Numerics::kFast}) {
      SCOPED_TRACE(absl::StrCat(optimizer, ", ", NumericsName(numerics)));
      const Model model = ModelWith(optimizer);
      const TrainerOptions options = {
          .num_cores = 4, .per_core_batch = 2, .seed = 7, .numerics = numerics};
      Trainer whole = MakeTrainer(model, options);
      std::vector<double> losses = StepTo(8, whole);

      Trainer first = MakeTrainer(model, options);
      StepTo(4, first);
      const std::string bytes = BytesOf(CheckpointOf(first));
      const absl::StatusOr<Checkpoint> checkpoint = Read(bytes);
      ASSERT_THAT(checkpoint, IsOk());
      Trainer second = MakeTrainer(model, options);
      ASSERT_THAT(RestoreTrainer(*checkpoint, second), IsOk());
      EXPECT_EQ(second.WeightsHash(), first.WeightsHash());
      losses.erase(losses.begin(), losses.begin() + 4);
      EXPECT_EQ(StepTo(8, second), losses);
      EXPECT_EQ(second.WeightsHash(), whole.WeightsHash());
      EXPECT_EQ(BytesOf(CheckpointOf(second)), BytesOf(CheckpointOf(whole)));
    }
  }
}

TEST(CheckpointTest, ResumingOnOtherCoresWithTheSameShardsIsBitIdentical) {
  const Model model = ModelWith(kMomentum);
  Trainer eight = MakeTrainer(model, {.num_cores = 8, .per_core_batch = 2});
  StepTo(3, eight);
  const Checkpoint checkpoint = CheckpointOf(eight);
  StepTo(6, eight);
  Trainer one = MakeTrainer(model, {.num_cores = 1, .per_core_batch = 16, .shards_per_core = 8});
  ASSERT_THAT(RestoreTrainer(checkpoint, one), IsOk());
  StepTo(6, one);
  EXPECT_EQ(one.WeightsHash(), eight.WeightsHash());
  Trainer four = MakeTrainer(model, {.num_cores = 4, .per_core_batch = 4});
  ASSERT_THAT(RestoreTrainer(checkpoint, four), IsOk());
  EXPECT_EQ(four.steps(), 3);
  StepTo(6, four);  // A step fails if a replica was not restored.
}

// ---- The loop: three epochs of four steps ----

constexpr int64_t kEpochs = 3, kSteps = 4;

class LoopRun {
 public:
  explicit LoopRun(const Model& model) : trainer(MakeTrainer(model)) {}

  absl::StatusOr<TrainingReport> Run(const LoopState& from, int64_t save_every) {
    const auto feed = [this](int64_t first, int64_t end) -> PopInfeed {
      auto next = std::make_shared<std::vector<int64_t>>(4, first);
      return [this, next, end](int64_t core) -> absl::StatusOr<std::optional<InfeedStep>> {
        const int64_t step = (*next)[core]++;
        now_ += absl::Milliseconds(1);
        if (step >= end) return std::nullopt;
        auto batch = std::make_shared<std::vector<ToyCore<float>>>(
            ToyBatch(4, 2, {8, 8, 3}, 4, static_cast<uint32_t>(step)));
        return InfeedStep{.step = step,
                          .inputs = (*batch)[core].Inputs(),
                          .bytes = 100,
                          .arrived_at = now_,
                          .owner = batch};
      };
    };
    return RunTraining(
        trainer, feed(trainer.steps(), 100),
        {.epochs = kEpochs,
         .steps_per_epoch = kSteps,
         .open_validation = [feed]() -> absl::StatusOr<PopInfeed> { return feed(1000, 1002); },
         .clock = [this] { return now_; },
         .resume_from = from,
         .save =
             [this](const LoopState& state) {
               saved.push_back(BytesOf(TakeCheckpoint(
                   trainer, state, {.global_batch = 8, .steps_per_epoch = kSteps}, "token")));
               return save_result;
             },
         .save_every = save_every});
  }

  Trainer trainer;
  std::vector<std::string> saved;
  absl::Status save_result;

 private:
  absl::Duration now_;
};

// The values of a report that do not depend on time.
std::string ValuesOf(const TrainingReport& report) {
  std::string values;
  for (const EpochReport& epoch : report.epochs) {
    for (const Score& score : {epoch.training, *epoch.validation}) {
      absl::StrAppend(&values, score.examples, " ", score.accuracy, " ");
      values.append(reinterpret_cast<const char*>(&score.loss), sizeof(score.loss));
    }
    absl::StrAppend(&values, epoch.steps, " steps ", epoch.bytes_received, " bytes\n");
  }
  return values;
}

TEST(CheckpointTest, ALoopResumedFromAnySaveEndsWithTheSameReportAndWeights) {
  const Model model = ModelWith(kMomentum);
  LoopRun whole(model);
  const absl::StatusOr<TrainingReport> want = whole.Run({}, /*save_every=*/1);
  ASSERT_THAT(want, IsOk());
  ASSERT_EQ(whole.saved.size(), static_cast<size_t>(kEpochs * kSteps));
  for (size_t i = 0; i + 1 < whole.saved.size(); ++i) {
    SCOPED_TRACE(i);
    const absl::StatusOr<Checkpoint> checkpoint = Read(whole.saved[i]);
    ASSERT_THAT(checkpoint, IsOk());
    EXPECT_EQ(checkpoint->trainer.steps, static_cast<int64_t>(i) + 1);
    LoopRun resumed(model);
    ASSERT_THAT(RestoreTrainer(*checkpoint, resumed.trainer), IsOk());
    const absl::StatusOr<TrainingReport> report = resumed.Run(checkpoint->loop, 0);
    ASSERT_THAT(report, IsOk());
    EXPECT_EQ(ValuesOf(*report), ValuesOf(*want));
    EXPECT_EQ(resumed.trainer.WeightsHash(), whole.trainer.WeightsHash());
    // A step has 4 slices of 1 ms each. The wait for a run's first step is counted apart from the
    // training time. The saved run and the resumed run each had such a wait of 4 ms.
    EXPECT_EQ(report->training_time, want->training_time);
    EXPECT_EQ(report->first_step_wait, absl::Milliseconds(4 * 2));
  }
}

TEST(CheckpointTest, SavesComeAsOftenAsAskedAndAtEveryEpochsEnd) {
  const auto steps_saved = [](int64_t save_every) {
    LoopRun run(ModelWith(kMomentum));
    EXPECT_THAT(run.Run({}, save_every), IsOk());
    std::vector<int64_t> steps;
    for (const std::string& bytes : run.saved) {
      steps.push_back(Read(bytes)->trainer.steps);
    }
    return steps;
  };
  EXPECT_THAT(steps_saved(0), ElementsAre(4, 8, 12));
  EXPECT_THAT(steps_saved(3), ElementsAre(3, 4, 6, 8, 9, 12));
}

TEST(CheckpointTest, ASaveThatFailsEndsTheRun) {
  LoopRun run(ModelWith(kMomentum));
  run.save_result = absl::ResourceExhaustedError("no space left");
  EXPECT_THAT(run.Run({}, 2),
              StatusIs(absl::StatusCode::kResourceExhausted, HasSubstr("no space left")));
  EXPECT_EQ(run.trainer.steps(), 2);
}

TEST(CheckpointTest, AnInvalidSaveIntervalOrFinishedRunIsRefused) {
  LoopRun run(ModelWith(kMomentum));
  EXPECT_THAT(run.Run({}, -1),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("save_every is -1")));
  LoopState ended;
  ended.epochs.resize(kEpochs);
  EXPECT_THAT(run.Run(ended, 0),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("3 epochs have ended")));
}

// ---- Another global batch ----

TEST(CheckpointTest, AnotherBatchSizeResumesAtTheFirstStepOfUnseenExamples) {
  Checkpoint checkpoint = {.global_batch = 16, .steps_per_epoch = 5};  // For 90 records.
  const auto step = [&](int64_t saved, int64_t global_batch, int64_t steps_per_epoch) {
    checkpoint.loop.step_in_epoch = saved;
    return StepInEpoch(checkpoint,
                       {.global_batch = global_batch, .steps_per_epoch = steps_per_epoch});
  };
  EXPECT_EQ(step(3, 16, 5), 3);
  EXPECT_EQ(step(0, 7, 12), 0);
  EXPECT_EQ(step(3, 8, 11), 6);
  EXPECT_EQ(step(3, 24, 3), 2);
  EXPECT_EQ(step(3, 20, 4), 3);   // Skips examples 48 to 59.
  EXPECT_EQ(step(3, 40, 2), 2);   // No step begins at example 48 or later.
  EXPECT_EQ(step(5, 8, 11), 11);  // Only the validation was left.
  // The largest number that a file can hold.
  constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
  checkpoint = {.global_batch = kMost, .steps_per_epoch = kMost};
  EXPECT_EQ(step(kMost - 1, 1, kMost), kMost);
  EXPECT_EQ(step(kMost - 1, kMost - 1, kMost), kMost);
}

TEST(CheckpointTest, WeightsAreRestoredForAnotherBatchSize) {
  const Model model = ModelWith(kMomentum);
  Trainer saved = MakeTrainer(model);
  StepTo(2, saved);
  Trainer larger = MakeTrainer(model, {.num_cores = 4, .per_core_batch = 3, .seed = 7});
  ASSERT_THAT(RestoreTrainer(CheckpointOf(saved), larger), IsOk());
  EXPECT_EQ(larger.WeightsHash(), saved.WeightsHash());
  StepTo(4, larger);
}

// ---- Runs that do not match ----

TEST(CheckpointTest, AnotherModelSeedOrNumericsIsRefusedWithARemedy) {
  const Model model = ModelWith(kMomentum);
  Trainer saved = MakeTrainer(model);
  StepTo(2, saved);
  const Checkpoint checkpoint = CheckpointOf(saved);
  const struct {
    Model model;
    TrainerOptions options;
    std::string difference, remedy;
  } cases[] = {{ModelWith("optimizer { learning_rate: 0.06 momentum: 0.9 }"),
                {.num_cores = 4, .per_core_batch = 2, .seed = 7},
                "whose file has other text",
                "give the model file"},
               {model,
                {.num_cores = 4, .per_core_batch = 2, .seed = 8},
                "seed 7, this run has 8",
                "give --seed 7"},
               {model,
                {.num_cores = 4, .per_core_batch = 2, .seed = 7, .numerics = Numerics::kFast},
                "numerics exact, this run has fast",
                "give --numerics exact"}};
  for (const auto& c : cases) {
    Trainer trainer = MakeTrainer(c.model, c.options);
    const uint64_t before = trainer.WeightsHash();
    EXPECT_THAT(RestoreTrainer(checkpoint, trainer),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         AllOf(HasSubstr(c.difference), HasSubstr(c.remedy))));
    EXPECT_EQ(trainer.WeightsHash(), before);
    EXPECT_EQ(trainer.steps(), 0);
  }
}

TEST(CheckpointTest, TensorsOfAnotherModelAreRefusedByName) {
  Trainer trainer = MakeTrainer(ModelWith(kMomentum));
  const TrainerState good = trainer.State();
  const uint64_t before = trainer.WeightsHash();
  const auto refused = [&](const std::string& what, const auto& spoil) {
    TrainerState bad = good;
    bad.steps = 3;
    spoil(bad.tensors);
    EXPECT_THAT(trainer.Restore(bad),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(what)));
    EXPECT_EQ(trainer.steps(), 0);
    EXPECT_EQ(trainer.WeightsHash(), before);
  };
  using Tensors = std::vector<StateTensor>;
  refused("has 11 tensors, model 'toy' needs 12", [](Tensors& t) { t.pop_back(); });
  refused("has 13 tensors", [](Tensors& t) { t.push_back(t[0]); });
  refused("tensor 0 of the trainer's state is 'conv2d_0/weight\\n' [3,3,3,8]",
          [](Tensors& t) { t[0].name = "conv2d_0/weight\n"; });
  refused("with 216 values, model 'toy' needs", [](Tensors& t) { t[0].shape = {3, 3, 8, 3}; });
  refused("with 215 values, model 'toy' needs 'conv2d_0/weights' [3,3,3,8]",
          [](Tensors& t) { t[0].values.pop_back(); });
  refused("needs 'batch_norm_1/scales' [8]", [](Tensors& t) { std::swap(t[1], t[2]); });
  EXPECT_THAT(trainer.Restore(good), IsOk());
}

}  // namespace
}  // namespace systole::emulator
