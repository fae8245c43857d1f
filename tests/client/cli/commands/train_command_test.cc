#include <csignal>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/cli/commands/commands.h"
#include "client/emulator/array/numerics.h"
#include "client/emulator/model/model.h"
#include "client/emulator/training/checkpoint_file.h"
#include "client/emulator/training/trainer.h"
#include "core/order/feed_position.h"
#include "core/order/resume_token.h"
#include "core/status/check.h"
#include "core/storage/byte_sink.h"
#include "core/storage/memory_source.h"
#include "gmock/gmock.h"
#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"
#include "tests/client/cli/command_run.h"
#include "tests/client/feed/fake_server.h"
#include "tests/core/storage/temp_folder.h"
#include "tests/status_matchers.h"
#include "tests/wait_until.h"

namespace systole {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::EndsWith;
using testing::HasSubstr;
using testing::MatchesRegex;
using testing::Not;

constexpr char kModel[] = R"(
name: "bright-or-dark"
input: [4]
input_scale: 0.01
layers { name: "classes" dense { units: 2 } }
loss { softmax_cross_entropy {} }
optimizer { learning_rate: 0.1 }
)";

// A feed of two cores. In each step a core gets `slots` examples. An epoch has 80 examples. Dark
// images are of class 0, bright images of class 1.
FakeFeed BrightOrDark(int64_t slots = 4) {
  const auto is_bright = [](int64_t step, int core, int64_t slot) {
    return (step * 5 + core * 3 + slot * 7) % 4 < 2;
  };
  return {
      .per_core_batch = slots,
      .steps_per_epoch = 40 / slots,
      .tensors = {{.spec = {.name = "image", .dtype = DType::kUint8, .shape = {slots, 4}}},
                  {.spec = {.name = "label", .dtype = DType::kInt64, .shape = {slots}}},
                  {.spec = {.name = "valid", .dtype = DType::kUint8, .shape = {slots}}}},
      .byte = [is_bright](int64_t step, int core, int tensor, int64_t place) {
        switch (tensor) {
          case 0:
            return static_cast<uint8_t>((is_bright(step, core, place / 4) ? 200 : 0) + place);
          case 1:
            return static_cast<uint8_t>(place % 8 == 0 && is_bright(step, core, place / 8) ? 1 : 0);
          default:
            return uint8_t{1};
        }
      }};
}

class TrainCommandTest : public testing::Test {
 protected:
  // Writes a spec of BrightOrDark() with `epochs` epochs. Returns the path of the file.
  std::string Spec(const std::string& name, int64_t epochs, int64_t global_batch = 8) const {
    v1::FeedSpec spec = SpecOf(BrightOrDark());
    spec.set_epochs(epochs);
    spec.set_global_batch(global_batch);
    std::string text;
    google::protobuf::TextFormat::PrintToString(spec, &text);
    return folder_.Write(name, text);
  }
  CommandRun Train(const std::string& spec, std::vector<std::string> args,
                   const FakeFeed& feed = BrightOrDark()) const {
    const FakeServer server(feed);
    args.insert(args.begin(), {"--server", server.address(), "--spec", spec, "--model",
                               folder_.Write("model.textproto", kModel), "--threads", "1"});
    return RunCommand(MakeTrainCommand(), args);
  }

  static emulator::Checkpoint ReadCheckpoint(const std::string& file) {
    const absl::StatusOr<emulator::Checkpoint> read =
        emulator::ReadCheckpoint(MemorySource(ReadWholeFile(file)));
    SYSTOLE_CHECK(read.ok());
    return *read;
  }

  const TempFolder folder_;
};

TEST_F(TrainCommandTest, LearnsAndEndsWithTheValidationAccuracy) {
  const std::string report = folder_ / "report.json";
  const CommandRun run = Train(Spec("a.textproto", 0), {"--eval-spec", Spec("b.textproto", 1),
                                                        "--epochs", "2", "--report-json", report});
  EXPECT_EQ(run.exit_code, 0) << run.err;
  EXPECT_THAT(run.out, AllOf(HasSubstr("model bright-or-dark, 2 cores x 4 examples"),
                             EndsWith("\nvalidation accuracy 1.000\n")));
  EXPECT_EQ(run.err, "");  // Without a terminal there is no progress bar.
  // Two epochs have 20 training steps. After each of them come the 10 steps of the validation
  // epoch, which makes 40 steps. A step has 52 bytes for each of two cores.
  EXPECT_THAT(ReadWholeFile(report),
              AllOf(HasSubstr("\"validation_accuracy\":1"), HasSubstr("\"training_seconds\":"),
                    HasSubstr(absl::StrCat("\"bytes_received\":", 40 * 2 * 52))));
}

TEST_F(TrainCommandTest, NumericsAreChosenAndNamed) {
  const CommandRun fast =
      Train(Spec("a.textproto", 0), {"--epochs", "1", "--numerics", "fast", "--json"});
  EXPECT_EQ(fast.exit_code, 0) << fast.err;
  EXPECT_THAT(fast.out, AllOf(HasSubstr("\"numerics\":\"fast\""),
                              HasSubstr(emulator::MissingNumericsNote(emulator::Numerics::kFast))));
  const CommandRun exact = Train(Spec("a.textproto", 0), {"--epochs", "1"});
  EXPECT_THAT(exact.out, AllOf(HasSubstr("numerics exact"), Not(HasSubstr("note: numerics"))));
  const CommandRun neither = Train(Spec("a.textproto", 0), {"--numerics", "bf16"});
  EXPECT_EQ(neither.exit_code, 2);
  EXPECT_THAT(neither.err, HasSubstr("want exact or fast"));
}

TEST_F(TrainCommandTest, WithoutEvaluationNoValidationAccuracyIsPrinted) {
  const CommandRun run = Train(Spec("a.textproto", 2), {"--epochs", "2"});
  EXPECT_EQ(run.exit_code, 0) << run.err;
  EXPECT_THAT(run.out, testing::Not(HasSubstr("validation accuracy")));
}

TEST_F(TrainCommandTest, JsonIsOneObject) {
  const CommandRun run = Train(Spec("a.textproto", 0),
                               {"--eval-spec", Spec("b.textproto", 1), "--epochs", "1", "--json"});
  EXPECT_EQ(run.exit_code, 0) << run.err;
  EXPECT_THAT(
      run.out,
      MatchesRegex("\\{\"mode\":\"functional\",\"verdict\":\".*\",\"model\":\"bright-or-dark\".*"
                   "\"systole_version\":\"test\".*\\}\n"));
}

TEST_F(TrainCommandTest, TheReportIsAPageThatHoldsTheJson) {
  const std::string page = folder_ / "report.html";
  const CommandRun run =
      Train(Spec("a.textproto", 0), {"--eval-spec", Spec("b.textproto", 1), "--epochs", "2",
                                     "--seed", "9", "--json", "--report", page});
  EXPECT_EQ(run.exit_code, 0) << run.err;
  const std::string html = ReadWholeFile(page);
  EXPECT_THAT(html, AllOf(HasSubstr(run.out.substr(0, run.out.size() - 1)),
                          HasSubstr("id=\"plot-loss\""), HasSubstr("id=\"plot-cores\"")));
  EXPECT_THAT(run.out, AllOf(HasSubstr("\"seed\":9"), HasSubstr("\"history\":{\"first_step\":0,"
                                                                "\"steps\":20,")));
}

TEST_F(TrainCommandTest, ReportsMaskedExamplesOfTrainingAndValidationFeeds) {
  FakeFeed feed = BrightOrDark();
  feed.byte = [bright = feed.byte](int64_t step, int core, int tensor, int64_t place) {
    return tensor == 2 && core == 0 && place == 1 && step < 2 ? uint8_t{0}
                                                              : bright(step, core, tensor, place);
  };
  const CommandRun run = Train(Spec("s", 1), {"--epochs", "1", "--eval-spec", Spec("e", 1)}, feed);
  EXPECT_EQ(run.exit_code, 0) << run.err;
  EXPECT_THAT(run.out, AllOf(HasSubstr("note: training feed: 2 examples are masked"),
                             HasSubstr("note: validation feed: 2 examples are masked")));
  const CommandRun json = Train(Spec("s", 1), {"--epochs", "1", "--json"}, feed);
  EXPECT_THAT(json.out, AllOf(HasSubstr("\"masked_examples\":2,\"padded_examples\":0"),
                              HasSubstr("\"notes\":[\"training feed: 2 examples are masked")));
}

// ---- Interrupted ----

// Runs a training that is interrupted when the server has sent `steps_sent` steps and `ready` is
// true.
class InterruptedTrainTest : public TrainCommandTest {
 protected:
  CommandRun TrainUntil(int64_t steps_sent, const std::function<bool()>& ready,
                        const std::vector<std::string>& more) const {
    Interrupt interrupt([](int) {});
    FakeFeed feed = BrightOrDark();
    feed.spoil = [&](int, int, FakeChunk& piece) {
      if (piece.header.step < steps_sent) return;
      piece.hang = true;
      EXPECT_TRUE(WaitUntil(ready));
      interrupt.Request(SIGINT);
    };
    const FakeServer server(feed);
    std::vector<std::string> args = {"train",
                                     "--server",
                                     server.address(),
                                     "--spec",
                                     Spec("s", 2),
                                     "--model",
                                     folder_.Write("model.textproto", kModel),
                                     "--threads",
                                     "1",
                                     "--epochs",
                                     "2"};
    args.insert(args.end(), more.begin(), more.end());
    std::vector<std::unique_ptr<Command>> commands;
    commands.push_back(MakeTrainCommand());
    std::ostringstream out, err;
    const int exit_code =
        RunCommandLine(args, commands, "test", {.out = out, .err = err, .interrupt = &interrupt});
    return {exit_code, out.str(), err.str()};
  }
};

bool AtOnce() { return true; }

TEST_F(InterruptedTrainTest, AnInterruptedRunWithoutCheckpointsSaysHowToSaveThem) {
  const CommandRun run = TrainUntil(3, AtOnce, {});
  EXPECT_EQ(run.exit_code, 130);
  EXPECT_THAT(run.err,
              MatchesRegex("systole train: interrupted after [0-9]+ steps: no checkpoint was "
                           "written; --checkpoint FILE saves the run after every epoch, "
                           "--checkpoint-every STEPS more often\n"));
}

TEST_F(InterruptedTrainTest, AnInterruptBeforeTheFirstSaveSaysWhenCheckpointsAreSaved) {
  const CommandRun run = TrainUntil(3, AtOnce, {"--checkpoint", folder_ / "c"});
  EXPECT_EQ(run.exit_code, 130);
  EXPECT_THAT(run.err, HasSubstr("no checkpoint was written; --checkpoint saves the run after "
                                 "every epoch, --checkpoint-every STEPS more often"));
  EXPECT_FALSE(std::filesystem::exists(folder_ / "c"));
}

TEST_F(InterruptedTrainTest, AnInterruptedRunNamesTheLastCheckpointToResumeFrom) {
  const std::string file = folder_ / "c";
  const auto is_saved = [&] { return std::filesystem::exists(file); };
  const CommandRun run = TrainUntil(9, is_saved, {"--checkpoint", file, "--checkpoint-every", "1"});
  EXPECT_EQ(run.exit_code, 130);
  const int64_t steps = ReadCheckpoint(file).trainer.steps;
  EXPECT_THAT(run.err, HasSubstr(absl::StrCat("interrupted after ", steps, " steps: --resume ",
                                              file, " goes on after step ", steps)));
  // The interrupted run can be resumed.
  EXPECT_EQ(Train(Spec("s", 2), {"--epochs", "2", "--resume", file}).exit_code, 0);
  const CommandRun again = TrainUntil(9, AtOnce, {"--resume", file});
  EXPECT_THAT(again.err, HasSubstr(absl::StrCat("no checkpoint was written, --resume ", file,
                                                " goes on after step ", steps, " as before")));
}

// ---- Checkpoints ----

TEST_F(TrainCommandTest, AResumedRunEndsAsTheRunWithoutABreak) {
  const std::string spec = Spec("a.textproto", 0), eval = Spec("b.textproto", 1);
  const std::string whole = folder_ / "whole.ckpt", half = folder_ / "half.ckpt";
  const CommandRun all =
      Train(spec, {"--eval-spec", eval, "--epochs", "2", "--checkpoint", whole, "--json"});
  ASSERT_EQ(all.exit_code, 0) << all.err;
  const CommandRun first =
      Train(spec, {"--eval-spec", eval, "--epochs", "1", "--checkpoint", half, "--json"});
  ASSERT_EQ(first.exit_code, 0) << first.err;
  const CommandRun second = Train(spec, {"--eval-spec", eval, "--epochs", "2", "--resume", half,
                                         "--checkpoint", half, "--json"});
  ASSERT_EQ(second.exit_code, 0) << second.err;
  const emulator::Checkpoint want = ReadCheckpoint(whole), got = ReadCheckpoint(half);
  EXPECT_EQ(got.trainer.steps, 20);
  EXPECT_EQ(got.trainer, want.trainer);
  EXPECT_EQ(got.feed_token, want.feed_token);
  ASSERT_EQ(got.loop.epochs.size(), 2u);
  for (size_t epoch = 0; epoch < 2; ++epoch) {
    EXPECT_EQ(got.loop.epochs[epoch].training.loss, want.loop.epochs[epoch].training.loss);
    EXPECT_EQ(got.loop.epochs[epoch].validation->loss, want.loop.epochs[epoch].validation->loss);
  }
  EXPECT_THAT(folder_.List(), Not(Contains(HasSubstr(".tmp"))));
}

TEST_F(TrainCommandTest, ARunBrokenOffInMidEpochGoesOnFromItsLastSave) {
  const std::string spec = Spec("a.textproto", 0);
  const std::string whole = folder_ / "whole.ckpt", half = folder_ / "half.ckpt";
  ASSERT_EQ(Train(spec, {"--epochs", "2", "--checkpoint", whole}).exit_code, 0);
  FakeFeed broken = BrightOrDark();
  broken.spoil = [](int, int, FakeChunk& piece) {
    if (piece.header.step == 15) piece.end = absl::DataLossError("shard-3");
  };
  const CommandRun first =
      Train(spec, {"--epochs", "2", "--checkpoint", half, "--checkpoint-every", "4"}, broken);
  ASSERT_EQ(first.exit_code, 1);
  EXPECT_EQ(ReadCheckpoint(half).trainer.steps, 12);
  const CommandRun second = Train(spec, {"--epochs", "2", "--resume", half, "--checkpoint", half});
  ASSERT_EQ(second.exit_code, 0) << second.err;
  EXPECT_EQ(ReadCheckpoint(half).trainer, ReadCheckpoint(whole).trainer);
  EXPECT_EQ(ReadCheckpoint(half).loop.epochs[1].training.loss,
            ReadCheckpoint(whole).loop.epochs[1].training.loss);
}

// BrightOrDark(), but with an error in place of `step`.
FakeFeed BrokenAt(int64_t step, int64_t slots) {
  FakeFeed feed = BrightOrDark(slots);
  feed.spoil = [step](int, int, FakeChunk& piece) {
    if (piece.header.step == step) piece.end = absl::DataLossError("shard-3");
  };
  return feed;
}

TEST_F(TrainCommandTest, ARunGoesOnWithAnotherBatchAtTheSameExample) {
  const std::string file = folder_ / "a.ckpt";
  const auto train = [&](int64_t slots, const FakeFeed& feed, std::vector<std::string> more) {
    more.insert(more.end(), {"--epochs", "2", "--checkpoint", file});
    return Train(Spec("a.textproto", 0, 2 * slots), more, feed);
  };
  ASSERT_EQ(train(4, BrokenAt(15, 4), {"--checkpoint-every", "4"}).exit_code, 1);
  EXPECT_EQ(ReadCheckpoint(file).trainer.steps, 12);  // 80 examples of epoch 0, 16 of epoch 1.

  // With batches of 4 examples, the trainer's step 12 is the feed's step 24. The run goes on there.
  ASSERT_EQ(train(2, BrokenAt(33, 2), {"--checkpoint-every", "5", "--resume", file}).exit_code, 1);
  const emulator::Checkpoint smaller = ReadCheckpoint(file);
  EXPECT_EQ(smaller.trainer.steps, 20);
  EXPECT_EQ(smaller.loop.current.steps, 10);
  EXPECT_EQ(smaller.loop.step_in_epoch, 12);
  EXPECT_EQ(ResumeToken::Decode(smaller.feed_token)->position,
            (FeedPosition{.epoch = 1, .examples = 48}));

  // 32 examples of the epoch are left. With batches of 16 examples they are two steps.
  const CommandRun larger = train(8, BrightOrDark(8), {"--resume", file});
  ASSERT_EQ(larger.exit_code, 0) << larger.err;
  EXPECT_THAT(larger.out,
              AllOf(HasSubstr("2 cores x 8 examples"),
                    HasSubstr("note: after step 20 the run went on with global_batch 16 "
                              "in place of 4; its learning rate")));
  const emulator::Checkpoint end = ReadCheckpoint(file);
  EXPECT_EQ(end.trainer.steps, 22);
  ASSERT_EQ(end.loop.epochs.size(), 2u);
  EXPECT_EQ(end.loop.epochs[0].steps, 10);
  EXPECT_EQ(end.loop.epochs[1].steps, 12);
  for (const emulator::EpochReport& epoch : end.loop.epochs) {
    EXPECT_EQ(epoch.training.examples, 80);
  }
  EXPECT_EQ(ResumeToken::Decode(end.feed_token)->position, FeedPosition{.epoch = 2});

  // If the batch is that of the checkpoint, there is no such note.
  const CommandRun same =
      Train(Spec("a.textproto", 0, 16), {"--epochs", "3", "--resume", file}, BrightOrDark(8));
  ASSERT_EQ(same.exit_code, 0) << same.err;
  EXPECT_THAT(same.out, Not(HasSubstr("note: after step")));
}

TEST_F(TrainCommandTest, AnEpochThatHasNoStepOfTheNewBatchLeftIsValidatedAndEnds) {
  const std::string nine = folder_ / "nine.ckpt", file = folder_ / "a.ckpt";
  ASSERT_EQ(Train(Spec("a", 0), {"--epochs", "1", "--checkpoint", nine, "--checkpoint-every", "9"},
                  BrokenAt(9, 4))
                .exit_code,
            1);
  const std::string spec = Spec("b", 0, 16), eval = Spec("c", 1, 16);
  for (const int64_t epochs : {1, 2}) {
    const CommandRun run = Train(spec,
                                 {"--eval-spec", eval, "--epochs", absl::StrCat(epochs), "--resume",
                                  nine, "--checkpoint", file},
                                 BrightOrDark(8));
    ASSERT_EQ(run.exit_code, 0) << run.err;
    const emulator::Checkpoint end = ReadCheckpoint(file);
    EXPECT_EQ(end.trainer.steps, 9 + 5 * (epochs - 1));
    ASSERT_EQ(static_cast<int64_t>(end.loop.epochs.size()), epochs);
    EXPECT_EQ(end.loop.epochs[0].steps, 9);
    EXPECT_EQ(end.loop.epochs[0].validation->examples, 80);
    EXPECT_EQ(end.loop.epochs.back().training.examples, epochs == 1 ? 72 : 80);
    EXPECT_EQ(ResumeToken::Decode(end.feed_token)->position, FeedPosition{.epoch = epochs});
  }
}

// With this file another program can start from the same weights, so that both runs can be
// compared.
TEST_F(TrainCommandTest, TheInitialCheckpointHoldsTheWeightsBeforeStep0AndResumesToTheSameRun) {
  const std::string spec = Spec("a.textproto", 0);
  const std::string initial = folder_ / "initial.ckpt", whole = folder_ / "whole.ckpt",
                    resumed = folder_ / "resumed.ckpt";
  ASSERT_EQ(Train(spec, {"--epochs", "1", "--seed", "9", "--initial-checkpoint", initial,
                         "--checkpoint", whole})
                .exit_code,
            0);
  const emulator::Checkpoint start = ReadCheckpoint(initial);
  EXPECT_EQ(start.trainer.steps, 0);
  const emulator::Model model = *emulator::ParseModel(kModel, "test");
  emulator::Trainer untrained =
      *emulator::Trainer::Create(model, {.num_cores = 2, .per_core_batch = 4, .seed = 9});
  EXPECT_EQ(start.trainer, untrained.State());
  EXPECT_NE(start.trainer.tensors, ReadCheckpoint(whole).trainer.tensors);
  const CommandRun run =
      Train(spec, {"--epochs", "1", "--seed", "9", "--resume", initial, "--checkpoint", resumed});
  ASSERT_EQ(run.exit_code, 0) << run.err;
  EXPECT_EQ(ReadCheckpoint(resumed).trainer, ReadCheckpoint(whole).trainer);
}

TEST_F(TrainCommandTest, AnInitialCheckpointOfAResumedRunIsRefused) {
  const CommandRun run = Train(Spec("a.textproto", 0), {"--resume", folder_ / "a.ckpt",
                                                        "--initial-checkpoint", folder_ / "b"});
  EXPECT_EQ(run.exit_code, 2);
  EXPECT_THAT(run.err, AllOf(HasSubstr("--initial-checkpoint"), HasSubstr("--resume")));
}

TEST_F(TrainCommandTest, ARunThatDoesNotMatchItsCheckpointIsRefused) {
  const std::string spec = Spec("a.textproto", 0), file = folder_ / "a.ckpt";
  ASSERT_EQ(Train(spec, {"--epochs", "1", "--checkpoint", file}).exit_code, 0);
  const auto refused = [&](std::vector<std::string> args, const FakeFeed& feed, int exit_code,
                           const std::string& message) {
    args.insert(args.end(), {"--resume", file});
    const CommandRun run = Train(spec, args, feed);
    EXPECT_EQ(run.exit_code, exit_code);
    EXPECT_THAT(run.err, AllOf(HasSubstr(file), HasSubstr(message)));
  };
  refused({"--epochs", "1"}, BrightOrDark(), 2, "give --epochs 2 or more");
  refused({"--seed", "9"}, BrightOrDark(), 2, "give --seed 0");
  refused({"--numerics", "fast"}, BrightOrDark(), 2, "give --numerics exact");
  FakeFeed other = BrightOrDark();
  other.dataset_fingerprint = 12;
  refused({}, other, 1, "the dataset's fingerprint differs");
  other = BrightOrDark();
  other.order_fingerprint = 23;
  refused({}, other, 1, "seed, shuffle, select");
  other = BrightOrDark();
  other.content_version = "fake-2";
  refused({}, other, 1, "content version");
  other = BrightOrDark();
  other.steps_per_epoch = 5;
  refused({}, other, 1, "an epoch of the saved run has 10 steps, an epoch of this feed 5");
}

TEST_F(TrainCommandTest, AnInvalidOrDamagedOrMissingCheckpointIsRefused) {
  const std::string spec = Spec("a.textproto", 0), file = folder_ / "a.ckpt";
  ASSERT_EQ(Train(spec, {"--epochs", "1", "--checkpoint", file}).exit_code, 0);
  const std::string bytes = ReadWholeFile(file);
  const auto refused = [&](const std::string& name, const std::string& content, int exit_code,
                           const std::string& message) {
    const CommandRun run = Train(spec, {"--resume", folder_.Write(name, content)});
    EXPECT_EQ(run.exit_code, exit_code);
    EXPECT_THAT(run.err, AllOf(HasSubstr(name), HasSubstr(message)));
  };
  refused("cut.ckpt", bytes.substr(0, bytes.size() / 2), 1, "cut short");
  std::string damaged = bytes;
  damaged[damaged.size() - 8] ^= 4;  // This is a byte of the last tensor.
  refused("damaged.ckpt", damaged, 1, "CRC of the payload");
  refused("other.ckpt", "weights", 2, "no checkpoint");
  emulator::Checkpoint elsewhere = ReadCheckpoint(file);
  const std::string token = elsewhere.feed_token;
  const auto with_token = [&elsewhere](const std::string& other) {
    elsewhere.feed_token = other;
    std::string written;
    EXPECT_THAT(
        emulator::WriteCheckpoint(elsewhere, "test", std::make_unique<StringSink>(&written)),
        IsOk());
    return written;
  };
  refused("no_token.ckpt", with_token("systole2:x"), 1, "feed's token");
  refused("older.ckpt", with_token("systole1:x"), 1, "is of an older release");
  ResumeToken elsewhere_in_feed = *ResumeToken::Decode(token);
  elsewhere_in_feed.position.examples = 8;
  refused("token.ckpt", with_token(elsewhere_in_feed.Encode()), 1,
          "the feed's token in it is not for the trainer's step");
  const CommandRun absent = Train(spec, {"--resume", folder_ / "absent.ckpt"});
  EXPECT_EQ(absent.exit_code, 3);
  EXPECT_THAT(absent.err, HasSubstr("absent.ckpt"));
}

TEST_F(TrainCommandTest, InvalidCheckpointOptionsAreReportedBeforeTraining) {
  // If training began, the first chunk would end the run with code 1.
  FakeFeed damaged = BrightOrDark();
  damaged.spoil = [](int, int, FakeChunk& piece) { piece.end = absl::DataLossError("shard-3"); };
  const std::string spec = Spec("a.textproto", 0);
  for (const char* option : {"--checkpoint", "--initial-checkpoint"}) {
    const CommandRun nowhere = Train(spec, {option, folder_ / "no/such/a.ckpt"}, damaged);
    EXPECT_EQ(nowhere.exit_code, 3);
    EXPECT_THAT(nowhere.err, HasSubstr("no/such/a.ckpt"));
  }
  const CommandRun nameless = Train(spec, {"--checkpoint-every", "3"});
  EXPECT_EQ(nameless.exit_code, 2);
  EXPECT_THAT(nameless.err, HasSubstr("--checkpoint FILE"));
  const CommandRun negative = Train(spec, {"--checkpoint-every", "-1"});
  EXPECT_EQ(negative.exit_code, 2);
}

TEST_F(TrainCommandTest, ASpecWithTooFewEpochsIsRefused) {
  const CommandRun run = Train(Spec("a.textproto", 2), {"--epochs", "3"});
  EXPECT_EQ(run.exit_code, 2);
  EXPECT_THAT(run.err, AllOf(HasSubstr("a.textproto has epochs: 2"), HasSubstr("epochs: 0")));
}

TEST_F(TrainCommandTest, AnEvalSpecWithAnotherGlobalBatchIsRefused) {
  const CommandRun run = Train(Spec("a.textproto", 0), {"--eval-spec", Spec("b.textproto", 1, 16)});
  EXPECT_EQ(run.exit_code, 2);
  EXPECT_THAT(run.err, AllOf(HasSubstr("b.textproto has global_batch: 16"), HasSubstr("want 8")));
}

TEST_F(TrainCommandTest, OutputsThatAreNotThereAreRefused) {
  const CommandRun run = Train(Spec("a.textproto", 0), {"--image-output", "picture"});
  EXPECT_EQ(run.exit_code, 2);
  EXPECT_THAT(run.err, AllOf(HasSubstr("'picture'"), HasSubstr("--image-output")));
  const CommandRun other = Train(Spec("a.textproto", 0), {"--label-output", "kind"});
  EXPECT_EQ(other.exit_code, 2);
  EXPECT_THAT(other.err, AllOf(HasSubstr("'kind'"), HasSubstr("--label-output")));
}

TEST_F(TrainCommandTest, AnImageThatDoesNotFitTheModelIsRefused) {
  FakeFeed feed = BrightOrDark();
  feed.tensors[0].spec.shape = {4, 5};
  const CommandRun run = Train(Spec("a.textproto", 0), {}, feed);
  EXPECT_EQ(run.exit_code, 2);
  EXPECT_THAT(run.err, HasSubstr("image"));
}

TEST_F(TrainCommandTest, DamageInTheFeedIsCode1) {
  FakeFeed feed = BrightOrDark();
  feed.spoil = [](int, int, FakeChunk& piece) {
    if (piece.header.step == 4) piece.end = absl::DataLossError("shard-3");
  };
  const CommandRun run = Train(Spec("a.textproto", 0), {}, feed);
  EXPECT_EQ(run.exit_code, 1);
  EXPECT_THAT(run.err, HasSubstr("shard-3"));
}

TEST_F(TrainCommandTest, AnUnwritableReportFileIsReportedBeforeTraining) {
  for (const char* option : {"--report", "--report-json"}) {
    const CommandRun run =
        Train(Spec("a.textproto", 0), {"--epochs", "1", option, folder_ / "no/such/file"});
    EXPECT_EQ(run.exit_code, 3);
    EXPECT_EQ(run.out, "");
    EXPECT_THAT(run.err, HasSubstr("no/such/file"));
  }
}

// The first error shows that the shipped model flowers-cnn was found by its name: this model takes
// larger images than the feed has.
TEST_F(TrainCommandTest, AModelIsAShippedNameOrAFileAndNothingElse) {
  const FakeServer server(BrightOrDark());
  const auto train = [&](const std::string& model) {
    return RunCommand(MakeTrainCommand(), {"--server", server.address(), "--spec",
                                           Spec("a.textproto", 0), "--model", model});
  };
  EXPECT_THAT(train("flowers-cnn").err, HasSubstr("as model 'flowers-cnn' says"));
  const CommandRun file = train(folder_.Write("own.textproto", kModel));
  EXPECT_EQ(file.exit_code, 0) << file.err;
  EXPECT_THAT(file.out, HasSubstr("model bright-or-dark, 2 cores x 4 examples"));
  const CommandRun unknown = train("vgg16");
  EXPECT_EQ(unknown.exit_code, 3);
  EXPECT_THAT(unknown.err, HasSubstr("flowers-cnn, mlp-784"));
}

TEST_F(TrainCommandTest, NoEpochIsWrongUsage) {
  EXPECT_EQ(Train(Spec("a.textproto", 0), {"--epochs", "0"}).exit_code, 2);
}

}  // namespace
}  // namespace systole
