// `systole pace`, `replay` and `load` against a server without data. The tests check no measured
// times, so they do not depend on the speed of the machine.

#include <atomic>
#include <csignal>
#include <memory>
#include <set>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "client/cli/commands/commands.h"
#include "client/cli/pacing/load_level.h"
#include "client/cli/pacing/paced_feed.h"
#include "client/cli/pacing/saved_arrivals.h"
#include "gmock/gmock.h"
#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"
#include "tests/client/cli/command_run.h"
#include "tests/client/feed/fake_server.h"
#include "tests/core/storage/temp_folder.h"
#include "tests/dead_address.h"
#include "tests/status_matchers.h"
#include "tests/status_metrics.h"

namespace systole {
namespace {

using testing::AllOf;
using testing::ContainsRegex;
using testing::ElementsAre;
using testing::EndsWith;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;
using testing::StartsWith;

// An endless feed of 2 cores with 4 examples each.
FakeFeed Endless() { return {.epochs = 0}; }

class PaceCommandTest : public testing::Test {
 protected:
  std::string SpecFile(const FakeFeed& feed = Endless()) const {
    std::string text;
    google::protobuf::TextFormat::PrintToString(SpecOf(feed), &text);
    return folder_.Write("spec.textproto", text);
  }
  CommandRun Run(std::unique_ptr<Command> command, const std::string& server,
                 std::vector<std::string> args, const FakeFeed& feed = Endless()) const {
    args.insert(args.begin(), {"--server", server, "--spec", SpecFile(feed)});
    return RunCommand(std::move(command), args);
  }

  const TempFolder folder_;
};

TEST_F(PaceCommandTest, TakesStepsAtTheGivenPace) {
  const FakeServer server(Endless());
  const CommandRun run =
      Run(MakePaceCommand(), server.address(), {"--step-time-us", "500", "--steps", "7"});
  EXPECT_EQ(run.exit_code, 0) << run.err;
  EXPECT_THAT(run.out,
              AllOf(StartsWith("mode            paced\ncores           2 x 4 examples, steps of "
                               "0.500 ms, infeed of 2 steps\n"),
                    HasSubstr(" 6 steps, the first left out\n"), HasSubstr("emulator        "),
                    HasSubstr("note: a server runs on this machine")));
}

// Endless(), but in every step the example in the third place of core 1 is masked.
FakeFeed EndlessWithMasked() {
  FakeFeed feed = Endless();
  feed.byte = [](int64_t step, int core, int tensor, int64_t place) {
    return tensor == 1 && core == 1 && place == 2 ? uint8_t{0}
                                                  : FakeByte(step, core, tensor, place);
  };
  feed.resolve = [](v1::ResolveFeedResponse& answer) {
    answer.set_num_records(80);
    return absl::OkStatus();
  };
  return feed;
}

TEST_F(PaceCommandTest, PaceLoadAndRecordingReportMaskedExamples) {
  const FakeServer server(EndlessWithMasked());
  const CommandRun pace =
      Run(MakePaceCommand(), server.address(), {"--step-time-us", "500", "--steps", "7"});
  EXPECT_THAT(pace.out, HasSubstr(" examples are masked: zeros stand in the place"));
  const CommandRun json =
      Run(MakePaceCommand(), server.address(), {"--step-time-us", "500", "--steps", "7", "--json"});
  EXPECT_THAT(json.out,
              AllOf(HasSubstr("\"masked_examples\":"), HasSubstr("\"padded_examples\":0")));
  const CommandRun load = Run(MakeLoadCommand(), server.address(),
                              {"--step-time-us", "1000", "--duration", "20ms", "--json"});
  EXPECT_THAT(load.out,
              AllOf(HasSubstr("\"masked_examples\":"), HasSubstr("\"masked_records\":[6,")));
  const CommandRun record = Run(MakeReplayCommand(), server.address(),
                                {"--steps", "3", "--save-arrivals", folder_ / "a"});
  EXPECT_THAT(record.out, HasSubstr("note: 3 examples are masked"));
}

TEST_F(PaceCommandTest, InterruptedItReportsWhatItHasMeasured) {
  Interrupt interrupt([](int) {});
  FakeFeed feed = Endless();
  feed.spoil = [&interrupt](int, int, FakeChunk& piece) {
    if (piece.header.step < 20) return;
    piece.hang = true;
    interrupt.Request(SIGINT);
  };
  const FakeServer server(feed);
  std::vector<std::unique_ptr<Command>> commands;
  commands.push_back(MakePaceCommand());
  std::ostringstream out, err;
  const std::vector<std::string> args = {"pace",   "--server", server.address(),
                                         "--spec", SpecFile(), "--step-time-us",
                                         "500",    "--steps",  "1000000"};
  EXPECT_EQ(
      RunCommandLine(args, commands, "test", {.out = out, .err = err, .interrupt = &interrupt}),
      130);
  EXPECT_THAT(err.str(), HasSubstr("systole pace: interrupted "));
  EXPECT_EQ(out.str().empty(), err.str().find("before the first step") != std::string::npos);
}

TEST_F(PaceCommandTest, JsonIsOneObjectThatNamesTheMode) {
  const FakeServer server(Endless());
  const CommandRun run = Run(MakePaceCommand(), server.address(),
                             {"--step-time-us", "1000", "--steps", "7", "--json"});
  EXPECT_EQ(run.exit_code, 0) << run.err;
  EXPECT_THAT(run.out, AllOf(StartsWith("{\"mode\":\"paced\","), HasSubstr("\"steps\":7,"),
                             HasSubstr("\"step_seconds\":0.001,"), EndsWith("}\n")));
}

TEST_F(PaceCommandTest, TheDurationOptionEndsTheRun) {
  const FakeServer server(Endless());
  const CommandRun run = Run(MakePaceCommand(), server.address(),
                             {"--step-time-us", "1000", "--duration", "5ms", "--json"});
  EXPECT_EQ(run.exit_code, 0) << run.err;
  EXPECT_THAT(run.out, StartsWith("{\"mode\":\"paced\","));
}

TEST_F(PaceCommandTest, SavesArrivalsThatSayTheyWerePaced) {
  const FakeServer server(Endless());
  const std::string path = folder_ / "paced.arrivals";
  ASSERT_EQ(Run(MakePaceCommand(), server.address(),
                {"--step-time-us", "500", "--steps", "7", "--save-arrivals", path})
                .exit_code,
            0);
  const absl::StatusOr<emulator::Arrivals> arrivals = LoadArrivals(path);
  ASSERT_THAT(arrivals, IsOk());
  EXPECT_EQ(arrivals->recorded_by, emulator::RecordedBy::kPaced);
  EXPECT_EQ(arrivals->steps(), 7);
  const CommandRun replay =
      RunCommand(MakeReplayCommand(), {"--arrivals", path, "--step-time-us", "500"});
  EXPECT_THAT(replay.out, HasSubstr("note: the arrivals were recorded in a paced run"));
}

// Checks two reports: that of a paced run, and that of a replay of the arrivals that the paced run
// has saved.
TEST_F(PaceCommandTest, ReportsNameTheFeedAndTheDateOfTheRun) {
  const FakeServer server(Endless());
  const std::string path = folder_ / "paced.arrivals";
  const CommandRun pace =
      Run(MakePaceCommand(), server.address(),
          {"--step-time-us", "500", "--steps", "7", "--save-arrivals", path, "--json"});
  ASSERT_EQ(pace.exit_code, 0) << pace.err;
  const CommandRun replay =
      RunCommand(MakeReplayCommand(), {"--arrivals", path, "--step-time-us", "500", "--json"});
  ASSERT_EQ(replay.exit_code, 0) << replay.err;
  for (const std::string& json : {pace.out, replay.out}) {
    EXPECT_THAT(json, AllOf(HasSubstr("\"verdict\":\""), HasSubstr("\"dataset\":\"fake\""),
                            HasSubstr("\"spec\":\"spec.textproto\""),
                            ContainsRegex("\"spec_fingerprint\":\"[0-9a-f]+\""),
                            HasSubstr("\"servers\":\"" + server.address() + "\""),
                            HasSubstr("\"systole_version\":\"test\""),
                            ContainsRegex("\"date\":\"20[0-9-]+T[0-9:]+Z\"")));
  }
  EXPECT_EQ(
      replay.out,
      RunCommand(MakeReplayCommand(), {"--arrivals", path, "--step-time-us", "500", "--json"}).out);
}

TEST_F(PaceCommandTest, AFeedErrorFailsTheCommandWithItsExitCode) {
  FakeFeed feed = Endless();
  feed.spoil = [](int, int, FakeChunk& piece) {
    if (piece.header.step == 3) piece.end = absl::DataLossError("shard-3");
  };
  const FakeServer server(feed);
  const CommandRun run =
      Run(MakePaceCommand(), server.address(), {"--step-time-us", "500", "--steps", "7"});
  EXPECT_EQ(run.exit_code, 1);
  EXPECT_THAT(run.err, HasSubstr("shard-3"));
  const CommandRun load = Run(MakeLoadCommand(), server.address(),
                              {"--step-time-us", "500", "--duration", "60s", "--trainers", "2"});
  EXPECT_EQ(load.exit_code, 1);
  EXPECT_THAT(load.err, HasSubstr("shard-3"));
  EXPECT_EQ(
      Run(MakePaceCommand(), DeadAddress(), {"--step-time-us", "500", "--connect-timeout", "0.2"})
          .exit_code,
      4);
}

TEST_F(PaceCommandTest, WrongUsageIsCode2) {
  const FakeServer server(Endless());
  for (const std::vector<std::string>& args : std::vector<std::vector<std::string>>{
           {},
           {"--step-time-us", "500", "--steps", "0"},
           {"--step-time-us", "500", "--duration", "0"},
           {"--step-time-us", "500", "--duration", "20000h"},
           {"--step-time-us", "500", "--rate", "5"},
           {"--model", "resnet50", "--slice", "v3-8"}}) {  // The model needs an output `image`.
    EXPECT_EQ(Run(MakePaceCommand(), server.address(), args).exit_code, 2);
  }
  for (const std::vector<std::string>& args :
       std::vector<std::vector<std::string>>{{"--step-time-us", "500", "--trainers", "0"},
                                             {"--step-time-us", "500", "--trainers", "1025"},
                                             {"--step-time-us", "500000", "--duration", "4s"}}) {
    EXPECT_EQ(Run(MakeLoadCommand(), server.address(), args).exit_code, 2);
  }
}

TEST_F(PaceCommandTest, ARecordingReplaysToTheSameNumbersEachTime) {
  const FakeServer server(Endless());
  const std::string path = folder_ / "fake.arrivals";
  const CommandRun record = Run(MakeReplayCommand(), server.address(),
                                {"--steps", "12", "--save-arrivals", path, "--json"});
  EXPECT_EQ(record.exit_code, 0) << record.err;
  EXPECT_THAT(record.out, StartsWith("{\"mode\":\"replay\",\"recorded_steps\":12,\"cores\":2,"
                                     "\"per_core_batch\":4,"));
  const absl::StatusOr<emulator::Arrivals> arrivals = LoadArrivals(path);
  ASSERT_THAT(arrivals, IsOk());
  EXPECT_EQ(arrivals->steps(), 12);
  ASSERT_THAT(arrivals->tensors, SizeIs(3));  // These are label, valid and x.
  EXPECT_EQ(arrivals->tensors[2].name, "x");
  EXPECT_EQ(arrivals->tensors[0].batch_axis, 1);
  EXPECT_THAT(arrivals->tensors[2].shape, ElementsAre(4, 100));
  const auto replay = [&path](const char* step_time_us) {
    return RunCommand(MakeReplayCommand(),
                      {"--arrivals", path, "--step-time-us", step_time_us, "--json"});
  };
  const CommandRun slow = replay("3600000000");
  EXPECT_EQ(slow.exit_code, 0) << slow.err;
  EXPECT_THAT(slow.out, AllOf(StartsWith("{\"mode\":\"replay\","), HasSubstr("\"au\":1,"),
                              HasSubstr("by a reader that never waits")));
  EXPECT_EQ(slow.out, replay("3600000000").out);
  EXPECT_EQ(replay("20").out, replay("20").out);
}

TEST_F(PaceCommandTest, ARecordingReplaysOnSeveralChipsToTheSameNumbersEachTime) {
  FakeFeed feed = Endless();
  feed.num_cores = 8;
  feed.tensors = {{.spec = {.name = "image", .dtype = DType::kUint8, .shape = {4, 28, 28}}},
                  {.spec = {.name = "valid", .dtype = DType::kUint8, .shape = {4}}}};
  const FakeServer server(feed);
  const std::string path = folder_ / "images.arrivals";
  const CommandRun record =
      Run(MakeReplayCommand(), server.address(), {"--steps", "12", "--save-arrivals", path}, feed);
  ASSERT_EQ(record.exit_code, 0) << record.err;
  for (const std::string slice : {"v2-8", "v3-8", "v5e-8"}) {
    SCOPED_TRACE(slice);
    const auto replay = [&] {
      return RunCommand(MakeReplayCommand(),
                        {"--arrivals", path, "--model", "mlp-784", "--slice", slice, "--json"});
    };
    const CommandRun run = replay();
    EXPECT_EQ(run.exit_code, 0) << run.err;
    EXPECT_THAT(run.out, AllOf(HasSubstr("\"model\":\"mlp-784\""),
                               HasSubstr("\"slice\":\"" + slice + "\"")));
    EXPECT_EQ(run.out, replay().out);
  }
}

TEST_F(PaceCommandTest, ReportFilesHoldTheSameJsonAsStdout) {
  const std::string arrivals = folder_ / "two.arrivals";
  emulator::Arrivals two_cores;
  two_cores.tensors = {{.name = "valid", .shape = {4}}};
  two_cores.num_cores = 2;
  two_cores.ns = {0, 0, 1'000'000, 2'000'000, 3'000'000, 3'000'000};
  ASSERT_THAT(SaveArrivals(arrivals, two_cores, "test"), IsOk());
  const std::string html = folder_ / "run.html";
  const std::string json = folder_ / "run.json";
  const CommandRun run =
      RunCommand(MakeReplayCommand(), {"--arrivals", arrivals, "--step-time-us", "1000", "--json",
                                       "--report", html, "--report-json", json});
  ASSERT_EQ(run.exit_code, 0) << run.err;
  // A step computes for 1 ms. Step 0 starts at 0 ms, and does not count. Step 1 could start at 1
  // ms, but core 1's slice comes at 2 ms, so core 1 stalls for 1 ms, and core 0 waits for core 1.
  // Step 2 starts at 3 ms.
  EXPECT_THAT(run.out, AllOf(HasSubstr("\"infeed_stall_seconds\":[0,0.001],"),
                             HasSubstr("\"barrier_seconds\":[0.001,0],"),
                             HasSubstr("\"history\":{\"first_step\":1,\"steps\":2,")));
  EXPECT_EQ(ReadWholeFile(json), run.out);
  EXPECT_THAT(ReadWholeFile(html), HasSubstr(run.out.substr(0, run.out.size() - 1)));
}

TEST_F(PaceCommandTest, PaceLoadAndReplayRefuseAFeedThatDoesNotFitTheModel) {
  FakeFeed feed = Endless();
  feed.tensors = {{.spec = {.name = "image", .dtype = DType::kBfloat16, .shape = {4, 64, 64, 3}}},
                  {.spec = {.name = "valid", .dtype = DType::kUint8, .shape = {4}}}};
  const FakeServer server(feed);
  const std::string path = folder_ / "small.arrivals";
  ASSERT_EQ(
      Run(MakeReplayCommand(), server.address(), {"--steps", "2", "--save-arrivals", path}, feed)
          .exit_code,
      0);
  const std::vector<std::string> resnet = {"--model", "resnet50", "--slice", "v3-8"};
  const auto expect_refusal = [](const CommandRun& run) {
    EXPECT_EQ(run.exit_code, 2);
    EXPECT_THAT(run.err, HasSubstr("output 'image' gives examples of bfloat16[64,64,3], but model "
                                   "resnet50 takes [224,224,3]"));
  };
  expect_refusal(Run(MakePaceCommand(), server.address(), resnet, feed));
  expect_refusal(Run(MakeLoadCommand(), server.address(), resnet, feed));
  expect_refusal(RunCommand(MakeReplayCommand(),
                            {"--arrivals", path, "--model", "resnet50", "--slice", "v3-8"}));
}

TEST_F(PaceCommandTest, AnUnwritableOutputFileIsReportedBeforeConnecting) {
  const std::string lost = folder_ / "none/file";
  for (const char* option : {"--report", "--report-json", "--save-arrivals"}) {
    const CommandRun run = Run(MakePaceCommand(), DeadAddress(),
                               {"--step-time-us", "500", "--connect-timeout", "0.2", option, lost});
    EXPECT_EQ(run.exit_code, 3) << option;
    EXPECT_THAT(run.err, HasSubstr(lost));
  }
  EXPECT_EQ(
      Run(MakeReplayCommand(), DeadAddress(), {"--connect-timeout", "0.2", "--save-arrivals", lost})
          .exit_code,
      3);
  EXPECT_EQ(Run(MakeReplayCommand(), DeadAddress(),
                {"--connect-timeout", "0.2", "--save-arrivals", folder_ / "."})
                .exit_code,
            2);
}

// Nobody listens on DeadAddress(). If a command connected before these checks, it would wait, and
// fail with code 4.
TEST_F(PaceCommandTest, AnUnknownSliceIsReportedBeforeConnecting) {
  for (const char* slice : {"v3-9", "v9-8"}) {
    const std::vector<std::string> args = {"--model", "resnet50",          "--slice",
                                           slice,     "--connect-timeout", "0.2"};
    EXPECT_EQ(Run(MakePaceCommand(), DeadAddress(), args).exit_code, 3) << slice;
    EXPECT_EQ(Run(MakeLoadCommand(), DeadAddress(), args).exit_code, 3) << slice;
  }
}

TEST_F(PaceCommandTest, ReplayEitherRecordsOrReplays) {
  const std::string path = folder_.Write("other.arrivals", "something else, and long enough");
  const std::string spec = SpecFile();
  for (const std::vector<std::string>& args : std::vector<std::vector<std::string>>{
           {},
           {"--spec", spec, "--save-arrivals", path},
           {"--server", "127.0.0.1:1", "--spec", spec},
           {"--arrivals", path, "--steps", "5", "--step-time-us", "5"},
           {"--arrivals", path, "--server", "127.0.0.1:1", "--spec", spec, "--save-arrivals", path},
           {"--server", "127.0.0.1:1", "--spec", spec, "--save-arrivals", path, "--steps", "0"},
           {"--server", "127.0.0.1:1", "--spec", spec, "--save-arrivals", path, "--model", "m"},
           {"--server", "127.0.0.1:1", "--spec", spec, "--save-arrivals", path, "--step-time-us",
            "5"},
           {"--server", "127.0.0.1:1", "--spec", spec, "--save-arrivals", path, "--report",
            folder_ / "r.html"}}) {
    EXPECT_EQ(RunCommand(MakeReplayCommand(), args).exit_code, 2);
  }
  const CommandRun other =
      RunCommand(MakeReplayCommand(), {"--arrivals", path, "--step-time-us", "5"});
  EXPECT_EQ(other.exit_code, 2);
  EXPECT_THAT(other.err, AllOf(HasSubstr(path), HasSubstr("no recording of arrivals: ")));
  EXPECT_EQ(RunCommand(MakeReplayCommand(), {"--arrivals", folder_ / "none", "--step-time-us", "5"})
                .exit_code,
            3);
}

TEST_F(PaceCommandTest, LoadReportsTheCpuTimeThatTheServersSpent) {
  FakeFeed feed = Endless();
  std::atomic<int> asked = 0;
  feed.status = [&asked](v1::ServerStatusResponse& answer) {
    AddMetric(answer, "cpus", 4, v1::Metric::GAUGE);
    // `asked` counts the calls to both servers. Before the level, each server reports 10 s of CPU
    // time, and after the level 11 s.
    AddMetric(answer, "cpu_seconds", 10 + asked++ / 2);
    return absl::OkStatus();
  };
  const FakeServer server(feed);
  const FakeServer other(feed);
  const CommandRun run =
      Run(MakeLoadCommand(), server.address() + "," + other.address(),
          {"--step-time-us", "1000", "--trainers", "1", "--duration", "20ms", "--json", "--report",
           folder_ / "load.html", "--report-json", folder_ / "load.json"});
  EXPECT_EQ(run.exit_code, 0) << run.err;
  EXPECT_THAT(
      run.out,
      AllOf(StartsWith("{\"mode\":\"load\",\"verdict\":"), HasSubstr("\"most_trainers\":1,"),
            HasSubstr("\"levels\":[{\"trainers\":1,"), HasSubstr("\"server_cpu_seconds\":2,"),
            HasSubstr("\"server_cpus\":8,"), EndsWith("]}\n")));
  EXPECT_EQ(asked, 4);
  EXPECT_EQ(ReadWholeFile(folder_ / "load.json"), run.out);
  EXPECT_THAT(ReadWholeFile(folder_ / "load.html"),
              AllOf(HasSubstr("<h1>Load test</h1>"), HasSubstr("id=\"plot-waits\"")));
}

// `load` counts the servers' CPU time from the moment when every trainer has its first step. If no
// first step comes, `load` does not ask the servers for their CPU time.
TEST_F(PaceCommandTest, LoadAsksForServerCpuTimeOnlyAfterTheFirstSteps) {
  FakeFeed feed = Endless();
  std::atomic<int> asked = 0;
  feed.status = [&asked](v1::ServerStatusResponse& answer) {
    ++asked;
    AddMetric(answer, "cpus", 1, v1::Metric::GAUGE);
    return absl::OkStatus();
  };
  const std::vector<std::string> args = {"--step-time-us", "1000", "--duration", "20ms"};
  {
    const FakeServer server(feed);
    EXPECT_EQ(Run(MakeLoadCommand(), server.address(), args).exit_code, 0);
    EXPECT_EQ(asked, 2);
  }
  asked = 0;
  feed.spoil = [](int, int, FakeChunk& piece) { piece.end = absl::DataLossError("shard-3"); };
  const FakeServer server(feed);
  EXPECT_EQ(Run(MakeLoadCommand(), server.address(), args).exit_code, 1);
  EXPECT_EQ(asked, 0);
}

TEST_F(PaceCommandTest, TheSpecsEpochsDoNotEndTheFeed) {
  v1::FeedSpec spec = SpecOf(Endless());
  spec.set_epochs(1);
  std::string text;
  google::protobuf::TextFormat::PrintToString(spec, &text);
  const std::string path = folder_.Write("one-epoch.textproto", text);
  const FakeServer server(Endless());
  const auto run = [&](std::unique_ptr<Command> command, std::vector<std::string> args) {
    args.insert(args.begin(), {"--server", server.address(), "--spec", path});
    EXPECT_EQ(RunCommand(std::move(command), args).exit_code, 0);
  };
  run(MakePaceCommand(), {"--step-time-us", "500", "--steps", "2"});
  run(MakeReplayCommand(), {"--steps", "2", "--save-arrivals", folder_ / "a"});
  run(MakeLoadCommand(), {"--step-time-us", "500", "--duration", "5ms"});
  EXPECT_FALSE(server.requests().empty());
  for (const v1::StreamStepsRequest& request : server.requests()) {
    EXPECT_EQ(request.spec().epochs(), 0);
  }
}

TEST_F(PaceCommandTest, LoadWithoutServerCpuTimeReportsCoresPerCpuAsNotKnown) {
  const FakeServer server(Endless());  // This server reports no metrics.
  const CommandRun run = Run(MakeLoadCommand(), server.address(),
                             {"--step-time-us", "1000", "--trainers", "2", "--duration", "20ms"});
  EXPECT_EQ(run.exit_code, 0) << run.err;
  EXPECT_THAT(run.out, HasSubstr("cores fed per server CPU not known"));
}

TEST(RunLoadLevelTest, TrainersHaveFeedsOfTheirOwnAndAllAreMeasured) {
  const FakeServer server(Endless());
  LoadOptions options = {.spec = SpecOf(Endless()),
                         .client = {.servers = {server.address()}},
                         .cores = {.infeed = {.num_cores = 2, .step_time = absl::Milliseconds(1)},
                                   .per_core_batch = 4,
                                   .slice_bytes = 500},
                         .duration = absl::Milliseconds(20)};
  options.spec.set_seed(40);
  // On a busy machine, perhaps no step comes in a short window. In this case the test repeats the
  // level with a longer window.
  for (int64_t steps = 0; steps == 0; options.duration *= 2) {
    absl::Duration last;
    const absl::StatusOr<LoadLevel> level =
        RunLoadLevel(options, 3, [&last](absl::Duration passed) {
          EXPECT_GE(passed, last);
          last = passed;
        });
    ASSERT_THAT(level, IsOk());
    EXPECT_EQ(last, options.duration);
    EXPECT_EQ(level->trainers.size(), 3u);
    EXPECT_GE(level->window, options.duration);
    EXPECT_FALSE(level->server_cpu_seconds.has_value());
    steps = level->steps;
  }
  std::set<uint64_t> seeds;
  for (const v1::StreamStepsRequest& request : server.requests()) {
    seeds.insert(request.spec().seed());
  }
  EXPECT_THAT(seeds, ElementsAre(40, 41, 42));
}

// The server sends nothing after step 0. Each trainer gets step 0 before the window opens.
TEST(RunLoadLevelTest, WhatCameBeforeTheWindowDoesNotCount) {
  FakeFeed feed = Endless();
  feed.spoil = [](int, int, FakeChunk& piece) { piece.hang = piece.header.step == 1; };
  const FakeServer server(feed);
  const LoadOptions options = {
      .spec = SpecOf(Endless()),
      .client = {.servers = {server.address()}},
      .cores = {.infeed = {.num_cores = 2, .step_time = absl::Milliseconds(1)},
                .per_core_batch = 4,
                .slice_bytes = 500},
      .duration = absl::Milliseconds(20)};
  const absl::StatusOr<LoadLevel> level = RunLoadLevel(options, 2, nullptr);
  ASSERT_THAT(level, IsOk());
  EXPECT_EQ(level->steps, 0);
  EXPECT_EQ(level->lowest_au(), 0);
}

TEST(RunLoadLevelTest, ALevelFailsIfAFeedEnds) {
  const FakeFeed feed = {.epochs = 1, .steps_per_epoch = 3};
  const FakeServer server(feed);
  const LoadOptions options = {
      .spec = SpecOf(feed),
      .client = {.servers = {server.address()}},
      .cores = {.infeed = {.num_cores = 2, .step_time = absl::Milliseconds(1)},
                .per_core_batch = 4,
                .slice_bytes = 500},
      .duration = absl::Hours(1)};
  EXPECT_THAT(RunLoadLevel(options, 2, nullptr).status(),
              StatusIs(absl::StatusCode::kUnavailable, HasSubstr("feed ended")));
}

TEST(PacingNotesTest, NotesNameALocalServerAndASlowEmulator) {
  emulator::PacedResult result;
  result.books.Add({.compute = absl::Milliseconds(1), .infeed_stall = {absl::ZeroDuration()}});
  result.books.Add({.compute = absl::Milliseconds(1), .infeed_stall = {absl::ZeroDuration()}});
  result.wall_au = 0.995;
  EXPECT_THAT(PacingNotes({"feeds.example:8470"}, {result}), IsEmpty());
  EXPECT_THAT(PacingNotes({"feeds.example:8470", "unix:/tmp/s"}, {result}),
              ElementsAre(HasSubstr("a server runs on this machine")));
  result.wall_au = 0.95;
  EXPECT_THAT(PacingNotes({"feeds.example:8470"}, {result}),
              ElementsAre(HasSubstr("the emulator itself took up to 5.0 % of the time")));
}

}  // namespace
}  // namespace systole
