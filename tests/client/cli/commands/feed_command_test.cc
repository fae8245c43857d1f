#include <csignal>
#include <memory>
#include <ostream>
#include <sstream>
#include <streambuf>
#include <string>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "client/cli/commands/commands.h"
#include "client/step/feed_metrics.h"
#include "gmock/gmock.h"
#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"
#include "tests/client/cli/command_run.h"
#include "tests/client/feed/fake_server.h"
#include "tests/core/storage/temp_folder.h"
#include "tests/dead_address.h"
#include "tests/status_matchers.h"

namespace systole {
namespace {

using testing::AllOf;
using testing::EndsWith;
using testing::HasSubstr;
using testing::MatchesRegex;
using testing::Not;
using testing::StartsWith;

class FeedCommandTest : public testing::Test {
 protected:
  CommandRun Feed(const std::string& server, std::vector<std::string> args,
                  const FakeFeed& feed = {}) const {
    std::string text;
    google::protobuf::TextFormat::PrintToString(SpecOf(feed), &text);
    args.insert(args.begin(),
                {"--server", server, "--spec", folder_.Write("spec.textproto", text)});
    return RunCommand(MakeFeedCommand(), args);
  }
  CommandRun Feed(const FakeServer& server, std::vector<std::string> args) const {
    return Feed(server.address(), std::move(args));
  }

  const TempFolder folder_;
};

// Drops the text that is written to it. Requests `interrupt` after `lines` lines.
class InterruptAfterLines final : public std::streambuf {
 public:
  InterruptAfterLines(int lines, Interrupt& interrupt) : lines_(lines), interrupt_(interrupt) {}

 private:
  int overflow(int c) override {
    if (c == '\n' && --lines_ == 0) interrupt_.Request(SIGINT);
    return c;
  }

  int lines_;
  Interrupt& interrupt_;
};

std::vector<std::string> Lines(const std::string& text) {
  return absl::StrSplit(text, '\n', absl::SkipEmpty());
}

TEST_F(FeedCommandTest, DrainsOneEpochAndReportsTheRate) {
  const FakeServer server((FakeFeed()));
  const CommandRun run = Feed(server, {});
  EXPECT_EQ(run.exit_code, 0) << run.err;
  EXPECT_THAT(run.out, AllOf(StartsWith("10 steps, "), HasSubstr(" steps/s, "),
                             HasSubstr(" examples/s, "), HasSubstr(" MB/s\n")));
  EXPECT_THAT(run.err, StartsWith("--resume systole2:"));
}

TEST_F(FeedCommandTest, DigestLinesAreAllThatStdoutHolds) {
  const FakeServer server((FakeFeed()));
  const CommandRun run = Feed(server, {"--digest", "--steps", "3"});
  EXPECT_EQ(run.exit_code, 0) << run.err;
  const std::vector<std::string> lines = Lines(run.out);
  ASSERT_EQ(lines.size(), 6u);
  for (size_t i = 0; i < lines.size(); ++i) {
    EXPECT_THAT(lines[i], MatchesRegex(absl::StrCat(i / 2, " ", i % 2, " [0-9a-f]+")));
  }
  const CommandRun examples = Feed(server, {"--digest=example", "--steps", "1"});
  EXPECT_THAT(Lines(examples.out)[5], MatchesRegex("0 1 1 [0-9a-f]+"));
  EXPECT_EQ(Lines(examples.out).size(), 8u);
}

TEST_F(FeedCommandTest, TheStepsAndCoresOptionsSelectAPartOfTheFeed) {
  const FakeServer server((FakeFeed()));
  const std::string whole = Feed(server, {"--digest", "--steps", "0"}).out;
  EXPECT_EQ(Lines(whole).size(), 40u);  // Reads to the end of the feed, which has two epochs.
  std::string parts;
  for (const char* range : {"0:1", "1:2"}) {
    for (const std::string& line :
         Lines(Feed(server, {"--digest", "--first-step", "4", "--steps", "1", "--cores", range})
                   .out)) {
      absl::StrAppend(&parts, line, "\n");
    }
  }
  EXPECT_THAT(whole, HasSubstr(parts));
  EXPECT_THAT(parts, StartsWith("4 0 "));
}

TEST_F(FeedCommandTest, AResumeTokenContinuesTheFeedWhereItEnded) {
  const FakeServer server((FakeFeed()));
  const CommandRun head = Feed(server, {"--digest", "--steps", "7"});
  const std::string token =
      std::string(absl::StripAsciiWhitespace(head.err.substr(head.err.find("--resume ") + 9)));
  const CommandRun tail = Feed(server, {"--digest", "--steps", "0", "--resume", token});
  EXPECT_EQ(tail.exit_code, 0) << tail.err;
  EXPECT_EQ(head.out + tail.out, Feed(server, {"--digest", "--steps", "0"}).out);
}

TEST_F(FeedCommandTest, PrintsTheValuesOfAnOutput) {
  const FakeServer server((FakeFeed()));
  const CommandRun run = Feed(server, {"--print", "valid", "--steps", "1"});
  EXPECT_EQ(run.exit_code, 0) << run.err;
  EXPECT_THAT(run.out, MatchesRegex("0 0( [0-9]+){4}\n0 1( [0-9]+){4}\n"));
}

TEST_F(FeedCommandTest, JsonIsOneObject) {
  const FakeServer server((FakeFeed()));
  const CommandRun run = Feed(server, {"--json", "--steps", "5"});
  EXPECT_EQ(run.exit_code, 0) << run.err;
  EXPECT_THAT(run.out, AllOf(StartsWith("{\"first_step\":0,\"steps\":5,"),
                             HasSubstr("\"megabytes_per_second\":"),
                             HasSubstr("\"token\":\"systole2:"), EndsWith("}\n")));
}

TEST_F(FeedCommandTest, JsonHasEveryMetric) {
  const FakeServer server((FakeFeed()));
  const std::string json = Feed(server, {"--json", "--steps", "5"}).out;
  for (const MetricReading& metric : ReadFeedMetrics({})) {
    EXPECT_THAT(json, HasSubstr(absl::StrCat("\"", metric.name, "\":")));
  }
  EXPECT_THAT(json, HasSubstr("\"metrics\":{\"steps_received\":5,"));
}

TEST_F(FeedCommandTest, TextHasEveryMetricThatIsNotZero) {
  const FakeServer server((FakeFeed()));
  EXPECT_THAT(Feed(server, {"--steps", "5"}).out,
              AllOf(HasSubstr("  steps received     5\n"),
                    HasSubstr("\n  payload            0.0 MB"), Not(HasSubstr("retries"))));
}

TEST_F(FeedCommandTest, ReportsDeliveredAndPayloadBytesAndCompactSteps) {
  const FakeFeed feed = {.pixels = true};
  const FakeServer server(feed);
  // 5 steps of 2 cores. In each step a core gets 96 + 4 bytes that travel unchanged, and 400 values
  // that travel as one byte each instead of four.
  for (const std::vector<std::string>& finish :
       {std::vector<std::string>{}, {"--finish", "client"}}) {
    std::vector<std::string> args = {"--json", "--steps", "5"};
    args.insert(args.end(), finish.begin(), finish.end());
    EXPECT_THAT(Feed(server.address(), args, feed).out,
                AllOf(HasSubstr("\"delivered_bytes\":17000,"), HasSubstr("\"payload_bytes\":5000,"),
                      HasSubstr("\"compact_steps\":5,")));
  }
  EXPECT_THAT(Feed(server.address(), {"--json", "--steps", "5", "--finish", "server"}, feed).out,
              AllOf(HasSubstr("\"payload_bytes\":17000,"), HasSubstr("\"compact_steps\":0,")));
}

// A core gets 4 examples of 2 pixels with 3 channels in bfloat16, which are 48 bytes. In tiles of 8
// channels and 128 places they take 4096 bytes. `valid` takes 4 bytes.
TEST_F(FeedCommandTest, SaysHowMuchOfTilesIsUseful) {
  const FakeFeed feed = {
      .tensors = {
          {.spec = {.name = "valid", .dtype = DType::kUint8, .shape = {4}}},
          {.spec = {.name = "x", .dtype = DType::kBfloat16, .shape = {1, 2, 1, 1, 4, 128, 2}},
           .untiled_shape = {1, 2, 3, 4}}}};
  const FakeServer server(feed);
  EXPECT_THAT(
      Feed(server.address(), {"--steps", "5"}, feed).out,
      HasSubstr("tiles (HWCN_TILED): 104 of 8200 bytes a step are examples, 1.3 %; the rest "
                "pads channels to 8 and places to 128\n"));
  EXPECT_THAT(Feed(server.address(), {"--steps", "5", "--json"}, feed).out,
              HasSubstr("\"bytes_per_step\":8200,\"useful_bytes_per_step\":104"));
  EXPECT_THAT(Feed(FakeServer(FakeFeed()), {"--steps", "5"}).out, Not(HasSubstr("tiles")));
}

TEST_F(FeedCommandTest, ATensorWhoseTilingDiffersFromTheSpecIsRefused) {
  const SliceTensor valid = {.spec = {.name = "valid", .dtype = DType::kUint8, .shape = {4}}};
  const FakeFeed plain = {
      .tensors = {valid,
                  {.spec = {.name = "x", .dtype = DType::kBfloat16, .shape = {1, 2, 3, 4}},
                   .batch_axis = 3}}};
  const FakeFeed tiled = {
      .tensors = {
          valid,
          {.spec = {.name = "x", .dtype = DType::kBfloat16, .shape = {1, 2, 1, 1, 4, 128, 2}},
           .untiled_shape = {1, 2, 3, 4}}}};
  EXPECT_THAT(Feed(FakeServer(tiled).address(), {"--steps", "5"}, plain).err,
              HasSubstr("tensor 'x' is in tiles, but the spec has layout: NHWC"));
  EXPECT_THAT(Feed(FakeServer(plain).address(), {"--steps", "5"}, tiled).err,
              HasSubstr("tensor 'x' is not in tiles, but the spec has layout: HWCN_TILED"));
}

TEST_F(FeedCommandTest, SaysWhatWasDamagedOnTheWay) {
  const FakeServer server({.spoil = [](int stream, int chunk, FakeChunk& piece) {
    if (stream % 3 == 0 && chunk == 2) piece.header.crc32c ^= 1;
    if (stream % 3 == 1 && chunk == 2) piece.end = absl::AbortedError("damaged");
  }});
  EXPECT_THAT(Feed(server, {"--steps", "5"}).out,
              AllOf(HasSubstr("\n  damaged chunks     1\n"),
                    HasSubstr("\n  damaged requests   1\n"), Not(HasSubstr("damaged answers"))));
  EXPECT_THAT(Feed(server, {"--steps", "5", "--json"}).out,
              HasSubstr("\"damaged_chunks\":1,\"damaged_requests\":1,\"damaged_answers\":0"));
  EXPECT_THAT(Feed(FakeServer(FakeFeed()), {"--steps", "5"}).out, Not(HasSubstr("damaged")));
}

TEST_F(FeedCommandTest, SaysIfFinishClientIsGivenButNoOutputCanTravelAsUint8) {
  const FakeServer server((FakeFeed()));
  const CommandRun run = Feed(server, {"--steps", "5", "--finish", "client"});
  EXPECT_EQ(run.exit_code, 0) << run.err;
  EXPECT_THAT(run.out, HasSubstr("--finish client: no output of this spec can travel as uint8"));
  EXPECT_THAT(Feed(server, {"--steps", "5"}).out, Not(HasSubstr("--finish")));
}

TEST_F(FeedCommandTest, AnUnknownFinishValueIsRefusedWithTheValidValues) {
  const CommandRun run = Feed(FakeServer(FakeFeed()), {"--finish", "both"});
  EXPECT_NE(run.exit_code, 0);
  EXPECT_THAT(run.err, HasSubstr("--finish is 'both', want auto, server or client"));
}

// A feed in which `valid` is 0 in the third place of core 1 in every step. An epoch has 10 steps of
// 8 places, but only 77 records. So with `tail: PAD` the last step ends with 3 places of padding.
FakeFeed OneMasked() {
  return {.byte =
              [](int64_t step, int core, int tensor, int64_t place) {
                const bool missing = core == 1 && (place == 2 || (step % 10 == 9 && place > 0));
                return tensor == 1 && missing ? uint8_t{0} : FakeByte(step, core, tensor, place);
              },
          .resolve =
              [](v1::ResolveFeedResponse& answer) {
                answer.set_num_records(77);
                return absl::OkStatus();
              }};
}

TEST_F(FeedCommandTest, TellsWhatIsMaskedAndWhatIsPadding) {
  const FakeFeed feed = OneMasked();
  const FakeServer server(feed);
  v1::FeedSpec spec = SpecOf(feed);
  spec.set_tail(v1::PAD);
  std::string text;
  google::protobuf::TextFormat::PrintToString(spec, &text);
  const std::vector<std::string> args = {"--server", server.address(), "--spec",
                                         folder_.Write("padded.textproto", text)};
  const CommandRun run = RunCommand(MakeFeedCommand(), args);
  EXPECT_EQ(run.exit_code, 0) << run.err;
  EXPECT_THAT(run.out,
              AllOf(HasSubstr("10 steps, 68 examples,"), HasSubstr("\n  padded examples    3\n"),
                    HasSubstr("note: 9 examples are masked: "),
                    HasSubstr("(record_id 6, 14, 22, 30, 38, 46, 54, 62, 70)")));
  std::vector<std::string> with_json = args;
  with_json.push_back("--json");
  EXPECT_THAT(RunCommand(MakeFeedCommand(), with_json).out,
              AllOf(HasSubstr("\"masked_examples\":9,\"padded_examples\":3,"),
                    HasSubstr("\"masked_records\":[6,14,")));
  // With --digest, only digests may go to stdout.
  std::vector<std::string> with_digest = args;
  with_digest.push_back("--digest");
  const CommandRun digests = RunCommand(MakeFeedCommand(), with_digest);
  EXPECT_THAT(digests.out, Not(HasSubstr("masked")));
  EXPECT_THAT(digests.err, HasSubstr("9 examples are masked"));
}

TEST_F(FeedCommandTest, AnInterruptedFeedPrintsTheResumeOption) {
  FakeFeed feed;
  feed.epochs = 0;
  const FakeServer server(feed);
  std::string text;
  google::protobuf::TextFormat::PrintToString(SpecOf(feed), &text);
  std::ostringstream err;
  Interrupt interrupt([](int) {});
  InterruptAfterLines lines(6, interrupt);
  std::vector<std::unique_ptr<Command>> commands;
  commands.push_back(MakeFeedCommand());
  std::ostream lines_out(&lines);
  const std::vector<std::string> args = {
      "feed",    "--server", server.address(), "--spec", folder_.Write("endless.textproto", text),
      "--steps", "0",        "--digest"};
  const int exit_code = RunCommandLine(args, commands, "test",
                                       {.out = lines_out, .err = err, .interrupt = &interrupt});
  EXPECT_EQ(exit_code, 130);
  EXPECT_THAT(err.str(),
              MatchesRegex("after [0-9]+ steps; to go on there, give --resume systole2:[^\n]*\n"
                           "systole feed: interrupted\n"));
}

TEST_F(FeedCommandTest, WrongUsageIsCode2) {
  const FakeServer server((FakeFeed()));
  const struct {
    std::vector<std::string> args;
    const char* message;
  } kCases[] = {
      {{"--digest", "--print", "x"}, "--digest does not go with --print"},
      {{"--digest", "--json"}, "--json does not go with"},
      {{"--digest=byte"}, "--digest=byte"},
      {{"--print", "y"}, "it has label, valid, x"},
      {{"--cores", "1"}, "--cores 1: want A:B"},
      {{"--cores", "1:1"}, "--cores 1:1: want A:B"},
      {{"--cores", "0:3"}, "0:2, the cores of the spec"},
      {{"--first-step", "-1"}, "--first-step -1: want 0 or more"},
      {{"--steps", "-1"}, "--steps -1: want 1 or more, or 0 for the rest"},
      {{"--prefetch-bytes", "-1"}, "--prefetch-bytes is -1, want 0 or more"},
      {{"--max-step-bytes", "0"}, "--max-step-bytes is 0, want 1 or more"},
      {{"--max-step-bytes", "10"}, "raise max_step_bytes (--max-step-bytes)"},
      {{"--first-step", "21"}, "the feed has 20 steps"},
      {{"--resume", "nonsense"}, "token"},
      {{"--resume", "nonsense", "--first-step", "2"}, "--resume does not go with"},
      {{"--retry-for", "0"}, "--retry-for is 0, want 1ns to 8760h"},
      {{"--connect-timeout", "nan"}, "--connect-timeout"},
  };
  for (const auto& test : kCases) {
    const CommandRun run = Feed(server, test.args);
    EXPECT_EQ(run.exit_code, 2) << run.err;
    EXPECT_THAT(run.err, HasSubstr(test.message));
    EXPECT_EQ(run.out, "");
  }
}

TEST_F(FeedCommandTest, ExitCodesTellWhatWentWrong) {
  const struct {
    absl::Status status;
    int exit_code;
  } kCases[] = {
      {absl::DataLossError("shard-3"), 1},   {absl::FailedPreconditionError("changed"), 1},
      {absl::InvalidArgumentError("no"), 2}, {absl::NotFoundError("no"), 3},
      {absl::UnimplementedError("no"), 5},
  };
  for (const auto& test : kCases) {
    const FakeServer server({.spoil = [&](int, int, FakeChunk& piece) {
      if (piece.header.step == 2) piece.end = test.status;
    }});
    const CommandRun run = Feed(server, {"--digest"});
    EXPECT_EQ(run.exit_code, test.exit_code) << run.err;
    // stdout has the steps before the error. stderr says how to go on.
    EXPECT_EQ(Lines(run.out).size(), 4u);
    EXPECT_THAT(run.err, AllOf(HasSubstr("after 2 steps; to go on there, give --resume systole2:"),
                               HasSubstr(std::string(test.status.message()))));
  }
}

TEST_F(FeedCommandTest, AnUnreachableServerIsCode4) {
  const CommandRun run = Feed(DeadAddress(), {"--connect-timeout", "0.2"});
  EXPECT_EQ(run.exit_code, 4);
  EXPECT_THAT(run.err, HasSubstr("Is systole-server running there"));
}

TEST_F(FeedCommandTest, AMissingSpecIsCode3) {
  const CommandRun run = RunCommand(
      MakeFeedCommand(), {"--server", "127.0.0.1:1", "--spec", folder_ / "none.textproto"});
  EXPECT_EQ(run.exit_code, 3);
  EXPECT_THAT(run.err, HasSubstr("none.textproto"));
}

}  // namespace
}  // namespace systole
