// Tests with real servers that a killed trainer goes on from its checkpoint as if it had not been
// killed.
#include <signal.h>

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "client/emulator/training/checkpoint_file.h"
#include "core/order/feed_position.h"
#include "core/order/resume_token.h"
#include "core/status/check.h"
#include "core/storage/memory_source.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/status_matchers.h"
#include "tests/system/served_feed.h"
#include "tests/wait_until.h"

namespace systole {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

constexpr int kImages = 90, kStepsPerEpoch = 5;  // 16 examples a step, the tail is dropped.

constexpr char kModel[] = R"(
  name: "toy" input: [24, 32, 3]
  layers { conv2d { filters: 8 stride: 2 } } layers { batch_norm {} } layers { relu {} }
  layers { average_pool { global: true } } layers { flatten {} }
  layers { dropout { rate: 0.2 } } layers { dense { units: 5 } }
  loss { softmax_cross_entropy {} }
  optimizer { learning_rate: 0.01 adam {} }
)";

class CheckpointSystemTest : public testing::Test {
 protected:
  void SetUp() override {
    PackFlowers(folder_, kImages, /*shards=*/3);
    model_ = folder_.Write("model.textproto", kModel);
    spec_ = WriteSpec("spec.textproto", {});
    auto server = ServerProcess::Start(
        {"--dataset", absl::StrCat("flowers=", folder_ / "flowers-train-*.tfrecord")});
    ASSERT_THAT(server, IsOk());
    server_ = *std::move(server);
  }

  // Writes a spec of an endless feed.
  std::string WriteSpec(const std::string& name,
                        std::vector<std::pair<absl::string_view, absl::string_view>> changes) {
    changes.push_back({"epochs: 2", "epochs: 0"});
    return folder_.Write(name, absl::StrReplaceAll(FlowersSpec(), changes));
  }
  std::vector<std::string> TrainArgs(const std::string& spec, int64_t epochs,
                                     const std::string& checkpoint,
                                     std::vector<std::string> more = {}) const {
    std::vector<std::string> args = {
        "train", "--server", server_->address(),   "--spec",       spec,      "--model",
        model_,  "--epochs", absl::StrCat(epochs), "--checkpoint", checkpoint};
    args.insert(args.end(), more.begin(), more.end());
    return args;
  }
  static emulator::Checkpoint Read(const std::string& file) {
    absl::StatusOr<emulator::Checkpoint> read =
        emulator::ReadCheckpoint(MemorySource(ReadWholeFile(file)));
    SYSTOLE_CHECK(read.ok());
    return *std::move(read);
  }

  const TempFolder folder_;
  std::string model_, spec_;
  std::unique_ptr<ServerProcess> server_;
};

TEST_F(CheckpointSystemTest, ARunKilledAndResumedEndsWithTheWeightsOfAnUnbrokenRun) {
  const std::string file = folder_ / "killed.ckpt", whole = folder_ / "whole.ckpt";
  std::vector<std::string> endless = TrainArgs(spec_, 1000000, file, {"--checkpoint-every", "1"});
  endless.insert(endless.begin(), SystoleProgram());
  Process doomed(endless);
  ASSERT_TRUE(WaitUntil([&] { return std::filesystem::exists(file) || !doomed.IsRunning(); }));
  doomed.Signal(SIGKILL);
  ASSERT_EQ(doomed.Wait().signal, SIGKILL);

  const int64_t taken = Read(file).trainer.steps;
  ASSERT_GE(taken, 1);
  const int64_t epochs = taken / kStepsPerEpoch + 2;
  const Finished resumed = RunSystole(TrainArgs(spec_, epochs, file, {"--resume", file}));
  ASSERT_EQ(resumed.exit_code, 0) << resumed.err;
  const Finished straight = RunSystole(TrainArgs(spec_, epochs, whole, {"--threads", "1"}));
  ASSERT_EQ(straight.exit_code, 0) << straight.err;

  const emulator::Checkpoint got = Read(file), want = Read(whole);
  EXPECT_EQ(got.trainer.steps, epochs * kStepsPerEpoch);
  EXPECT_EQ(got.trainer, want.trainer);
  EXPECT_EQ(got.feed_token, want.feed_token);
  ASSERT_EQ(got.loop.epochs.size(), static_cast<size_t>(epochs));
  for (int64_t epoch = 0; epoch < epochs; ++epoch) {
    EXPECT_EQ(got.loop.epochs[epoch].training.loss, want.loop.epochs[epoch].training.loss);
  }
}

TEST_F(CheckpointSystemTest, ARunResumesOnOtherCoresButNotWithAnotherFeed) {
  const std::string file = folder_ / "eight.ckpt", four = folder_ / "four.ckpt";
  ASSERT_EQ(RunSystole(TrainArgs(spec_, 1, file)).exit_code, 0);
  const Finished on_four =
      RunSystole(TrainArgs(WriteSpec("four.textproto", {{"num_cores: 8", "num_cores: 4"}}), 2, four,
                           {"--resume", file}));
  EXPECT_EQ(on_four.exit_code, 0) << on_four.err;
  EXPECT_THAT(on_four.out, HasSubstr("4 cores x 4 examples"));
  EXPECT_EQ(Read(four).trainer.steps, 2 * kStepsPerEpoch);

  const auto with = [&](absl::string_view old, absl::string_view changed) {
    return RunSystole(
        TrainArgs(WriteSpec("other.textproto", {{old, changed}}), 2, four, {"--resume", file}));
  };
  const Finished shuffled = with("seed: 7", "seed: 8");
  EXPECT_EQ(shuffled.exit_code, 1);
  EXPECT_THAT(shuffled.err, AllOf(HasSubstr("eight.ckpt"), HasSubstr("seed, shuffle, select")));
}

// The run is saved after 3 steps of 16 examples.
TEST_F(CheckpointSystemTest, ARunResumesWithAnotherBatchSizeAndReportsSkippedExamples) {
  const std::string file = folder_ / "three.ckpt", later = folder_ / "later.ckpt";
  // The dataset for validation does not exist, so the run ends when it begins to validate.
  const Finished ended =
      RunSystole(TrainArgs(spec_, 1, file,
                           {"--checkpoint-every", "3", "--eval-spec",
                            WriteSpec("absent.textproto", {{"\"flowers\"", "\"absent\""}})}));
  ASSERT_EQ(ended.exit_code, 3) << ended.err;
  ASSERT_EQ(Read(file).trainer.steps, 3);

  struct Case {
    int batch, steps_per_epoch, next_step, skipped;
  };
  for (const auto& [batch, per_epoch, next, skipped] :
       {Case{8, 11, 6, 0}, Case{20, 4, 3, 12}, Case{24, 3, 2, 0}, Case{32, 2, 2, 16},
        Case{40, 2, 2, 32}, Case{90, 1, 1, 42}}) {
    SCOPED_TRACE(batch);
    const std::string spec =
        WriteSpec("batch.textproto", {{"global_batch: 16", absl::StrCat("global_batch: ", batch)},
                                      {"num_cores: 8", "num_cores: 2"}});
    const Finished resumed = RunSystole(TrainArgs(spec, 2, later, {"--resume", file}));
    ASSERT_EQ(resumed.exit_code, 0) << resumed.err;
    EXPECT_THAT(resumed.out, HasSubstr(absl::StrCat("note: after step 3 the run went on with "
                                                    "global_batch ",
                                                    batch, " in place of 16")));
    if (skipped == 0) {
      EXPECT_THAT(resumed.err, Not(HasSubstr("skipped")));
    } else {
      EXPECT_THAT(resumed.err,
                  HasSubstr(absl::StrCat("warning: examples skipped: ", skipped,
                                         ". The token was taken after 48 examples of epoch 0")));
    }
    const emulator::Checkpoint end = Read(later);
    EXPECT_EQ(end.trainer.steps, 3 + (per_epoch - next) + per_epoch);
    ASSERT_EQ(end.loop.epochs.size(), 2u);
    EXPECT_EQ(end.loop.epochs[0].training.examples, 48 + (per_epoch - next) * batch);
    EXPECT_EQ(end.loop.epochs[1].training.examples, per_epoch * batch);
    EXPECT_EQ(ResumeToken::Decode(end.feed_token)->position, FeedPosition{.epoch = 2});
    // The changed run can be resumed, too.
    const Finished back = RunSystole(TrainArgs(spec_, 3, later, {"--resume", later}));
    ASSERT_EQ(back.exit_code, 0) << back.err;
    EXPECT_EQ(Read(later).trainer.steps, end.trainer.steps + kStepsPerEpoch);
  }
}

// An epoch of a mixture is as many full steps as its 90 records fill. With batches of 16 these are
// 5 steps, with 80 examples.
TEST_F(CheckpointSystemTest, AMixtureRunResumesWithAnotherBatchSizeAndReportsTheSkip) {
  const auto mixture = [&](int batch) {
    return WriteSpec("mixture.textproto",
                     {{"dataset: \"flowers\"",
                       "mixture { dataset: 'flowers' weight: 2 select { take: 40 } } "
                       "mixture { dataset: 'flowers' weight: 1 select { skip: 40 } }"},
                      {"global_batch: 16", absl::StrCat("global_batch: ", batch)},
                      {"num_cores: 8", "num_cores: 2"}});
  };
  const std::string file = folder_ / "mixture.ckpt";
  ASSERT_EQ(RunSystole(TrainArgs(mixture(16), 3, file)).exit_code, 0);  // 240 examples.
  const Finished resumed = RunSystole(TrainArgs(mixture(18), 4, file, {"--resume", file}));
  ASSERT_EQ(resumed.exit_code, 0) << resumed.err;
  EXPECT_THAT(resumed.err, HasSubstr("examples skipped: 12. The token was taken after 240 examples "
                                     "of the mixture, where no step of global_batch: 18 begins"));
  const emulator::Checkpoint end = Read(file);
  EXPECT_EQ(end.trainer.steps, 3 * 5 + 5);
  EXPECT_EQ(end.loop.epochs[3].training.examples, 90);
  // The run skips 12 examples after the token's 240, and then takes 5 steps of 18: it ends after
  // 342 examples. A position counts in epochs of 90 examples: 342 = 3 * 90 + 72.
  EXPECT_EQ(ResumeToken::Decode(end.feed_token)->position,
            (FeedPosition{.epoch = 3, .examples = 72}));
  const Finished again = RunSystole(TrainArgs(mixture(18), 5, file, {"--resume", file}));
  ASSERT_EQ(again.exit_code, 0) << again.err;
  EXPECT_EQ(Read(file).trainer.steps, 3 * 5 + 5 + 5);
}

// An epoch has 5 steps: 90 examples with batches of 18, or 80 with batches of 16. With batches of
// 16, 4 epochs have 320 examples. After 3 epochs with batches of 18, which are 270 examples, 50 are
// left: only 3 steps of 16.
TEST_F(CheckpointSystemTest, ResumingAMixtureThatEndsTooEarlyIsRefusedWithRemedies) {
  const auto mixture = [&](int batch, int epochs) {
    const std::string name = absl::StrCat("mixture-", batch, "-", epochs, ".textproto");
    const std::string text = absl::StrReplaceAll(
        FlowersSpec(), {{"dataset: \"flowers\"",
                         "mixture { dataset: 'flowers' weight: 2 select { take: 40 } } "
                         "mixture { dataset: 'flowers' weight: 1 select { skip: 40 } }"},
                        {"global_batch: 16", absl::StrCat("global_batch: ", batch)},
                        {"num_cores: 8", "num_cores: 2"},
                        {"epochs: 2", absl::StrCat("epochs: ", epochs)}});
    return folder_.Write(name, text);
  };
  const std::string saved = folder_ / "saved.ckpt", later = folder_ / "later.ckpt";
  ASSERT_EQ(RunSystole(TrainArgs(mixture(18, 4), 3, saved)).exit_code, 0);
  const Finished refused = RunSystole(TrainArgs(mixture(16, 4), 4, later, {"--resume", saved}));
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_THAT(refused.err,
              AllOf(HasSubstr("saved.ckpt: with global_batch: 16 the feed ends after 3 more steps, "
                              "but --epochs 4 needs 5; write epochs: 0"),
                    HasSubstr("mixture-16-4.textproto, or resume with global_batch: 18")));
  // The error names two remedies. Both must work.
  for (const std::string& spec : {mixture(16, 0), mixture(18, 4)}) {
    const Finished resumed = RunSystole(TrainArgs(spec, 4, later, {"--resume", saved}));
    ASSERT_EQ(resumed.exit_code, 0) << resumed.err;
    EXPECT_EQ(Read(later).trainer.steps, 3 * 5 + 5);
  }
}

}  // namespace
}  // namespace systole
