// A killed trainer goes on from its checkpoint, against real servers, as if it had not been killed.
#include <signal.h>

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "client/emulator/training/checkpoint_file.h"
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

TEST_F(CheckpointSystemTest, AKilledRunGoesOnToTheSameWeights) {
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

TEST_F(CheckpointSystemTest, OtherCoresMayGoOnAndAnotherFeedMayNot) {
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
  // The feed could go on, but the run would not be the one that was saved.
  const Finished larger = with("global_batch: 16", "global_batch: 32");
  EXPECT_EQ(larger.exit_code, 2);
  EXPECT_THAT(larger.err, AllOf(HasSubstr("eight.ckpt"),
                                HasSubstr("global batch 16, this run has 32; set the spec's")));
}

}  // namespace
}  // namespace systole
