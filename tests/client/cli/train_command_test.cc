#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/cli/commands.h"
#include "gmock/gmock.h"
#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"
#include "tests/client/cli/command_run.h"
#include "tests/client/fake_server.h"
#include "tests/core/storage/temp_folder.h"

namespace systole {
namespace {

using testing::AllOf;
using testing::EndsWith;
using testing::HasSubstr;
using testing::MatchesRegex;

constexpr char kModel[] = R"(
name: "bright-or-dark"
input: [4]
input_scale: 0.01
layers { name: "classes" dense { units: 2 } }
loss { softmax_cross_entropy {} }
optimizer { learning_rate: 0.1 }
)";

// Two cores, four examples each: dark images are of class 0, bright ones of class 1.
FakeFeed BrightOrDark() {
  const auto is_bright = [](int64_t step, int core, int64_t slot) {
    return (step * 5 + core * 3 + slot * 7) % 4 < 2;
  };
  return {
      .tensors = {{.spec = {.name = "image", .dtype = DType::kUint8, .shape = {4, 4}}},
                  {.spec = {.name = "label", .dtype = DType::kInt64, .shape = {4}}},
                  {.spec = {.name = "valid", .dtype = DType::kUint8, .shape = {4}}}},
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
  // A spec of the feed with so many epochs.
  std::string Spec(const std::string& name, int64_t epochs, int64_t global_batch = 8) const {
    v1::FeedSpec spec = SpecOf(FakeFeed());
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

  const TempFolder folder_;
};

TEST_F(TrainCommandTest, LearnsAndEndsWithTheValidationAccuracy) {
  const std::string report = folder_ / "report.json";
  const CommandRun run = Train(Spec("a.textproto", 0), {"--eval-spec", Spec("b.textproto", 1),
                                                        "--epochs", "2", "--report-json", report});
  EXPECT_EQ(run.exit_code, 0) << run.err;
  EXPECT_THAT(run.out, AllOf(HasSubstr("model bright-or-dark, 2 cores x 4 examples"),
                             EndsWith("\nvalidation accuracy 1.000\n")));
  EXPECT_EQ(run.err, "");  // No terminal, no bar.
  // 20 training steps and twice the 10 of the evaluation's epoch, of 52 bytes and two cores each.
  EXPECT_THAT(ReadWholeFile(report),
              AllOf(HasSubstr("\"validation_accuracy\":1"), HasSubstr("\"training_seconds\":"),
                    HasSubstr(absl::StrCat("\"bytes_received\":", 40 * 2 * 52))));
}

TEST_F(TrainCommandTest, NumericsAreChosenAndNamed) {
  const CommandRun fast =
      Train(Spec("a.textproto", 0), {"--epochs", "1", "--numerics", "fast", "--json"});
  EXPECT_EQ(fast.exit_code, 0) << fast.err;
  EXPECT_THAT(fast.out, HasSubstr("\"numerics\":\"fast\""));
  const CommandRun exact = Train(Spec("a.textproto", 0), {"--epochs", "1"});
  EXPECT_THAT(exact.out, HasSubstr("numerics exact"));
  const CommandRun neither = Train(Spec("a.textproto", 0), {"--numerics", "bf16"});
  EXPECT_EQ(neither.exit_code, 2);
  EXPECT_THAT(neither.err, HasSubstr("want exact or fast"));
}

TEST_F(TrainCommandTest, WithoutEvaluationThereIsNoSuchLine) {
  const CommandRun run = Train(Spec("a.textproto", 2), {"--epochs", "2"});
  EXPECT_EQ(run.exit_code, 0) << run.err;
  EXPECT_THAT(run.out, testing::Not(HasSubstr("validation accuracy")));
}

TEST_F(TrainCommandTest, JsonIsOneObject) {
  const CommandRun run = Train(Spec("a.textproto", 0),
                               {"--eval-spec", Spec("b.textproto", 1), "--epochs", "1", "--json"});
  EXPECT_EQ(run.exit_code, 0) << run.err;
  EXPECT_THAT(run.out, MatchesRegex("\\{\"mode\":\"functional\",\"model\":\"bright-or-dark\".*"
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

TEST_F(TrainCommandTest, ASpecWithTooFewEpochsIsRefused) {
  const CommandRun run = Train(Spec("a.textproto", 2), {"--epochs", "3"});
  EXPECT_EQ(run.exit_code, 2);
  EXPECT_THAT(run.err, AllOf(HasSubstr("a.textproto has epochs: 2"), HasSubstr("epochs: 0")));
}

TEST_F(TrainCommandTest, AnEvaluationForOtherCoresIsRefused) {
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

TEST_F(TrainCommandTest, AnEpochWithoutAStepIsRefused) {
  FakeFeed feed = BrightOrDark();
  feed.steps_per_epoch = feed.total_steps = 0;
  const CommandRun run = Train(Spec("a.textproto", 0), {}, feed);
  EXPECT_EQ(run.exit_code, 2);
  EXPECT_THAT(run.err, HasSubstr("global_batch smaller"));
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

TEST_F(TrainCommandTest, AReportThatCannotBeWrittenIsAnErrorAfterTheReport) {
  const CommandRun run =
      Train(Spec("a.textproto", 0), {"--epochs", "1", "--report-json", folder_ / "no/such/folder"});
  EXPECT_EQ(run.exit_code, 5);
  EXPECT_THAT(run.out, HasSubstr("model bright-or-dark"));
  const CommandRun page =
      Train(Spec("a.textproto", 0), {"--epochs", "1", "--report", folder_ / "no/such/page"});
  EXPECT_EQ(page.exit_code, 5);
  EXPECT_THAT(page.err, HasSubstr("no/such/page"));
}

// A shipped model is known by its name; this one's pictures are larger than the feed's.
TEST_F(TrainCommandTest, AModelIsANameOrAFile) {
  const FakeServer server(BrightOrDark());
  const auto train = [&](const std::string& model) {
    return RunCommand(MakeTrainCommand(), {"--server", server.address(), "--spec",
                                           Spec("a.textproto", 0), "--model", model});
  };
  EXPECT_THAT(train("flowers-cnn").err, HasSubstr("as model 'flowers-cnn' says"));
  const CommandRun unknown = train("vgg16");
  EXPECT_EQ(unknown.exit_code, 3);
  EXPECT_THAT(unknown.err, HasSubstr("flowers-cnn, mlp-784"));
}

TEST_F(TrainCommandTest, NoEpochIsWrongUsage) {
  EXPECT_EQ(Train(Spec("a.textproto", 0), {"--epochs", "0"}).exit_code, 2);
}

}  // namespace
}  // namespace systole
