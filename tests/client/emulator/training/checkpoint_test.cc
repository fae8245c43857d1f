// A run that is saved and resumed is the run without a break, and no other file is taken for one.
#include "client/emulator/training/checkpoint.h"

#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "client/emulator/model/model.h"
#include "client/emulator/training/training_loop.h"
#include "core/checksum/xxh3.h"
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

// Takes steps up to number `end`, whose batches depend on the step alone; returns the losses.
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

// A checkpoint between two steps of an epoch of 10.
Checkpoint CheckpointOf(Trainer& trainer) {
  LoopState loop;
  loop.current.steps = trainer.steps();
  return TakeCheckpoint(trainer, loop, /*steps_per_epoch=*/10, "token");
}

// A small one with every field filled.
Checkpoint FullCheckpoint() {
  const EpochReport epoch = {.steps = 3,
                             .training = {.examples = 24, .loss = 1.25, .accuracy = 0.5},
                             .validation = Score{.examples = 8, .loss = 1.5, .accuracy = 0.375},
                             .duration = absl::Nanoseconds(1234567891),
                             .compute = absl::Milliseconds(900),
                             .bytes_received = 4096,
                             .infeed_stall = {absl::Milliseconds(1), absl::Milliseconds(2)}};
  Checkpoint checkpoint = {.model = "toy",
                           .model_fingerprint = 0xfedcba9876543210u,
                           .seed = 7,
                           .numerics = Numerics::kFast,
                           .global_batch = 8,
                           .steps_per_epoch = 3,
                           .feed_token = "systole1:x",
                           .trainer = {.steps = 5,
                                       .parameters = {0.5f, -1.0f, 0x1p-140f},
                                       .statistics = {2.0f},
                                       .optimizer_state = {{1, 2, 3}, {4, 5, 6}}}};
  checkpoint.loop.epochs = {epoch};
  checkpoint.loop.current = {.steps = 2, .infeed_stall = {absl::Milliseconds(3)}};
  checkpoint.loop.sums = {.examples = 16, .correct = 9, .loss = 21.5};
  checkpoint.loop.training_time = absl::Seconds(3);
  checkpoint.loop.first_step_wait = absl::Milliseconds(250);
  return checkpoint;
}

// The same bytes with the size and the checksum they should have.
std::string Sealed(std::string bytes) {
  const uint64_t size = bytes.size();
  std::memcpy(bytes.data() + 16, &size, sizeof(size));
  const uint64_t checksum = Xxh3(absl::string_view(bytes).substr(0, size - 8));
  std::memcpy(bytes.data() + size - 8, &checksum, sizeof(checksum));
  return bytes;
}

TEST(CheckpointTest, AResumedRunGoesOnToTheBit) {
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
      const std::string bytes = EncodeCheckpoint(CheckpointOf(first));
      const absl::StatusOr<Checkpoint> checkpoint = DecodeCheckpoint(bytes);
      ASSERT_THAT(checkpoint, IsOk());
      Trainer second = MakeTrainer(model, options);
      ASSERT_THAT(RestoreTrainer(*checkpoint, second), IsOk());
      EXPECT_EQ(second.WeightsHash(), first.WeightsHash());
      losses.erase(losses.begin(), losses.begin() + 4);
      EXPECT_EQ(StepTo(8, second), losses);
      EXPECT_EQ(second.WeightsHash(), whole.WeightsHash());
      EXPECT_EQ(EncodeCheckpoint(CheckpointOf(second)), EncodeCheckpoint(CheckpointOf(whole)));
    }
  }
}

TEST(CheckpointTest, OtherCoresWithTheSameShardsGoOnToTheBit) {
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
  StepTo(6, four);  // Checks that all replicas were restored.
}

// ---- The loop: three epochs of four steps, saved after each step, resumed from every save. ----

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
               saved.push_back(EncodeCheckpoint(TakeCheckpoint(trainer, state, kSteps, "token")));
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

// What of a report does not depend on time.
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
    const absl::StatusOr<Checkpoint> checkpoint = DecodeCheckpoint(whole.saved[i]);
    ASSERT_THAT(checkpoint, IsOk());
    EXPECT_EQ(checkpoint->trainer.steps, static_cast<int64_t>(i) + 1);
    LoopRun resumed(model);
    ASSERT_THAT(RestoreTrainer(*checkpoint, resumed.trainer), IsOk());
    const absl::StatusOr<TrainingReport> report = resumed.Run(checkpoint->loop, 0);
    ASSERT_THAT(report, IsOk());
    EXPECT_EQ(ValuesOf(*report), ValuesOf(*want));
    EXPECT_EQ(resumed.trainer.WeightsHash(), whole.trainer.WeightsHash());
    // 1 ms per slice: the wait for a run's first step is no stall.
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
      steps.push_back(DecodeCheckpoint(bytes)->trainer.steps);
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

TEST(CheckpointTest, ALoopThatCannotGoOnFromThereIsRefused) {
  LoopRun run(ModelWith(kMomentum));
  EXPECT_THAT(run.Run({}, -1),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("save_every is -1")));
  LoopState ended;
  ended.epochs.resize(kEpochs);
  EXPECT_THAT(run.Run(ended, 0),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("3 epochs have ended")));
}

// ---- Bytes ----

TEST(CheckpointTest, EveryFieldIsReadBack) {
  const Checkpoint want = FullCheckpoint();
  const std::string bytes = EncodeCheckpoint(want);
  const absl::StatusOr<Checkpoint> read = DecodeCheckpoint(bytes);
  ASSERT_THAT(read, IsOk());
  EXPECT_EQ(read->model, want.model);
  EXPECT_EQ(read->model_fingerprint, want.model_fingerprint);
  EXPECT_EQ(read->seed, want.seed);
  EXPECT_EQ(read->numerics, want.numerics);
  EXPECT_EQ(read->global_batch, want.global_batch);
  EXPECT_EQ(read->steps_per_epoch, want.steps_per_epoch);
  EXPECT_EQ(read->feed_token, want.feed_token);
  EXPECT_EQ(read->trainer.steps, 5);
  EXPECT_EQ(read->trainer.parameters, want.trainer.parameters);
  EXPECT_EQ(read->trainer.statistics, want.trainer.statistics);
  EXPECT_EQ(read->trainer.optimizer_state, want.trainer.optimizer_state);
  ASSERT_EQ(read->loop.epochs.size(), 1u);
  EXPECT_EQ(read->loop.epochs[0].validation->accuracy, 0.375);
  EXPECT_EQ(read->loop.epochs[0].duration, absl::Nanoseconds(1234567891));
  EXPECT_EQ(read->loop.epochs[0].infeed_stall, want.loop.epochs[0].infeed_stall);
  EXPECT_EQ(read->loop.current.steps, 2);
  EXPECT_FALSE(read->loop.current.validation.has_value());
  EXPECT_EQ(read->loop.sums.correct, 9);
  EXPECT_EQ(read->loop.sums.loss, 21.5);
  EXPECT_EQ(read->loop.first_step_wait, absl::Milliseconds(250));
  EXPECT_EQ(EncodeCheckpoint(*read), bytes);  // And whatever is not named above.
}

TEST(CheckpointTest, EveryTruncationIsRefused) {
  const std::string bytes = EncodeCheckpoint(FullCheckpoint());
  for (size_t size = 0; size < bytes.size(); ++size) {
    const std::string cut = bytes.substr(0, size);
    const auto code = size < 8 ? absl::StatusCode::kInvalidArgument : absl::StatusCode::kDataLoss;
    ASSERT_THAT(DecodeCheckpoint(cut),
                StatusIs(code, HasSubstr(size < 8 ? "no checkpoint" : "cut short")))
        << size;
  }
  EXPECT_THAT(DecodeCheckpoint(bytes + "x"),
              StatusIs(absl::StatusCode::kDataLoss, HasSubstr("added to")));
}

TEST(CheckpointTest, EveryFlippedBitIsRefused) {
  const std::string bytes = EncodeCheckpoint(FullCheckpoint());
  for (size_t bit = 0; bit < bytes.size() * 8; ++bit) {
    std::string damaged = bytes;
    damaged[bit / 8] = static_cast<char>(damaged[bit / 8] ^ 1 << bit % 8);
    ASSERT_FALSE(DecodeCheckpoint(damaged).ok()) << bit;
  }
}

TEST(CheckpointTest, OtherFilesAndOtherFormatsAreNamed) {
  EXPECT_THAT(DecodeCheckpoint("\x7f"
                               "ELF, or what you will"),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("no checkpoint")));
  std::string newer = EncodeCheckpoint(FullCheckpoint());
  newer[8] = 2;
  EXPECT_THAT(DecodeCheckpoint(newer),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("format 2, want 1"), HasSubstr("release that saved it"))));
}

// With a checksum that fits: what a length or a number says is still checked.
TEST(CheckpointTest, AFieldThatCannotBeIsNamed) {
  const std::string bytes = EncodeCheckpoint(FullCheckpoint());
  const auto with_u64 = [&bytes](size_t at, uint64_t value) {
    std::string changed = bytes;
    std::memcpy(changed.data() + at, &value, sizeof(value));
    return DecodeCheckpoint(Sealed(changed));
  };
  const auto is_bad = [](const std::string& field) {
    return StatusIs(absl::StatusCode::kDataLoss, HasSubstr(absl::StrCat(field, " cannot be")));
  };
  const size_t seed_at = 24 + 8 + 3 + 8, numerics_at = seed_at + 8, batch_at = numerics_at + 8 + 4,
               token_at = batch_at + 16, steps_at = token_at + 8 + 10, parameters_at = steps_at + 8,
               optimizer_at = parameters_at + 8 + 12 + 8 + 4;
  EXPECT_THAT(with_u64(24, uint64_t{1} << 63), is_bad("the model's name"));
  EXPECT_THAT(with_u64(numerics_at, 3), is_bad("the numerics"));
  EXPECT_THAT(with_u64(batch_at, 0), is_bad("the global batch"));
  EXPECT_THAT(with_u64(batch_at + 8, 0), is_bad("the steps per epoch"));
  EXPECT_THAT(with_u64(batch_at + 8, 4), is_bad("the number of epochs"));
  EXPECT_THAT(with_u64(token_at, ~uint64_t{0}), is_bad("the feed's token"));
  EXPECT_THAT(with_u64(steps_at, ~uint64_t{0}), is_bad("the number of steps"));
  EXPECT_THAT(with_u64(steps_at, 1), is_bad("the epoch's steps"));
  EXPECT_THAT(with_u64(parameters_at, uint64_t{1} << 62), is_bad("the parameters"));
  EXPECT_THAT(with_u64(optimizer_at, uint64_t{1} << 40), is_bad("the optimizer's arrays"));
  EXPECT_THAT(with_u64(optimizer_at, 0), testing::Not(IsOk()));
  std::string longer = bytes;
  longer.insert(longer.size() - 8, 8, '\0');
  EXPECT_THAT(DecodeCheckpoint(Sealed(longer)),
              StatusIs(absl::StatusCode::kDataLoss, HasSubstr("8 bytes follow its last field")));
}

// ---- Runs that do not match ----

TEST(CheckpointTest, AnotherModelSeedNumericsOrBatchIsRefusedWithARemedy) {
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
                "whose text is not the same",
                "as it was"},
               {model,
                {.num_cores = 4, .per_core_batch = 2, .seed = 8},
                "seed 7, this run has 8",
                "give --seed 7"},
               {model,
                {.num_cores = 4, .per_core_batch = 2, .seed = 7, .numerics = Numerics::kFast},
                "numerics exact, this run has fast",
                "give --numerics exact"},
               {model,
                {.num_cores = 4, .per_core_batch = 3, .seed = 7},
                "global batch 8, this run has 12",
                "global_batch back"}};
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

TEST(CheckpointTest, ArraysOfAnotherLengthAreRefusedByName) {
  Trainer trainer = MakeTrainer(ModelWith(kMomentum));
  const TrainerState good = trainer.State();
  const auto refused = [&trainer](const TrainerState& state, const std::string& what) {
    EXPECT_THAT(trainer.Restore(state),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(what)));
  };
  TrainerState bad = good;
  bad.parameters.pop_back();
  refused(bad, "parameters, model 'toy' wants");
  bad = good;
  bad.statistics.push_back(0);
  refused(bad, "17 statistics, model 'toy' wants 16");
  bad = good;
  bad.optimizer_state.push_back(bad.parameters);
  refused(bad, "2 arrays of the optimizer, model 'toy' wants 1");
  bad = good;
  bad.optimizer_state[0].clear();
  refused(bad, "0 numbers in an array of the optimizer");
  EXPECT_THAT(trainer.Restore(good), IsOk());
}

}  // namespace
}  // namespace systole::emulator
