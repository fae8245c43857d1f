#include <atomic>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "client/cli/commands/commands.h"
#include "gmock/gmock.h"
#include "google/protobuf/descriptor.h"
#include "gtest/gtest.h"
#include "systole/v1/service.pb.h"
#include "tests/client/cli/command_run.h"
#include "tests/client/feed/fake_server.h"
#include "tests/core/storage/temp_folder.h"
#include "tests/dead_address.h"
#include "tests/status_metrics.h"

namespace systole {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

CommandRun Status(const std::string& servers, std::vector<std::string> args) {
  args.insert(args.begin(), {"--server", servers});
  return RunCommand(MakeStatusCommand(), args);
}

// Asks each server only once. So the text has no rates, which would be different in each run.
CommandRun StatusOnce(const std::string& servers, std::vector<std::string> args = {}) {
  args.insert(args.begin(), {"--interval", "0"});
  return Status(servers, args);
}

FakeFeed Answering(const v1::ServerStatusResponse& status) {
  return {.status = [status](v1::ServerStatusResponse& answer) {
    answer = status;
    return absl::OkStatus();
  }};
}

constexpr v1::Metric::Kind kGauge = v1::Metric::GAUGE;

// Some of these metrics do not exist, because the command must show whatever a server reports.
v1::ServerStatusResponse Healthy(double steps_served = 100, double cpu_seconds = 7.5) {
  v1::ServerStatusResponse status;
  status.set_version("1.2.3");
  status.set_content_version("4-libjpeg");
  AddMetric(status, "active_streams", 2, kGauge);
  AddMetric(status, "steps_served", steps_served);
  AddMetric(status, "payload_bytes", steps_served * 125'000);
  AddMetric(status, "retired_moons", 0);
  AddMetric(status, "memory_used_bytes", 31'000'000, kGauge);
  AddMetric(status, "cpu_seconds", cpu_seconds);
  AddMetricPart(status, "moon_phases", "full", 3);
  AddMetricPart(status, "moon_phases", "half_dark", 4);
  AddMetricPart(status, "moon_phases", "new", 0);
  status.add_datasets()->set_name("flowers");
  return status;
}

v1::ServerStatusResponse Damaged() {
  v1::ServerStatusResponse status = Healthy();
  v1::DatasetStatus& dataset = *status.add_datasets();
  dataset.set_name("photos");
  dataset.set_masked_examples(9);
  v1::DamagedRecord& record = *dataset.add_damaged_records();
  record.set_shard("photos-3.tfrecord");
  record.set_record(69);
  record.set_offset(4000);
  record.set_cause("the payload's CRC does not match");
  return status;
}

// The number after `"key":` in a JSON text.
double NumberOf(const std::string& json, const std::string& key) {
  const std::vector<std::string> parts = absl::StrSplit(json, absl::StrCat("\"", key, "\":"));
  double number = -1;
  EXPECT_EQ(parts.size(), 2u) << key << " in " << json;
  if (parts.size() != 2) return number;
  EXPECT_TRUE(absl::SimpleAtod(parts[1].substr(0, parts[1].find_first_of(",}")), &number));
  return number;
}

TEST(StatusCommandTest, ShowsWhateverAServerCounts) {
  const FakeServer server(Answering(Healthy()));
  const CommandRun run = StatusOnce(server.address());
  EXPECT_EQ(run.exit_code, 0) << run.err;
  EXPECT_EQ(run.err, "");
  EXPECT_EQ(run.out, absl::StrCat(server.address(),
                                  ": version 1.2.3, content version 4-libjpeg\n"
                                  "  active streams  2\n"
                                  "  steps served    100\n"
                                  "  payload         12.5 MB\n"
                                  "  memory used     31.0 MB\n"
                                  "  cpu             7.50 s\n"
                                  "  moon phases     3 full, 4 half dark\n"
                                  "  dataset flowers: no damage found or met\n"));
  EXPECT_THAT(StatusOnce(server.address(), {"--json"}).out,
              HasSubstr(R"("metrics":{"active_streams":2,"steps_served":100,)"
                        R"("payload_bytes":12500000,"retired_moons":0,)"
                        R"("memory_used_bytes":31000000,"cpu_seconds":7.5,)"
                        R"("moon_phases":{"full":3,"half_dark":4,"new":0}},)"
                        R"("streams":[],"streams_left_out":0,"datasets":[)"));
}

TEST(StatusCommandTest, SaysThatAServerDrainsAndWhatSlowsItDown) {
  v1::ServerStatusResponse status = Healthy();
  status.set_draining(true);
  status.set_jpeg_fallback("another libjpeg");
  const FakeServer server(Answering(status));
  EXPECT_THAT(StatusOnce(server.address()).out,
              AllOf(HasSubstr(", DRAINING\n"),
                    HasSubstr("note: JPEGs are decoded by libjpeg alone, at about half the speed: "
                              "another libjpeg\n")));
}

TEST(StatusCommandTest, AnOversizedStatusAnswerIsAnError) {
  v1::ServerStatusResponse status = Healthy();
  for (int i = 0; i < 5000; ++i) AddMetric(status, absl::StrCat("moon_", i), 1);
  const FakeServer server(Answering(status));
  const CommandRun run = StatusOnce(server.address());
  EXPECT_NE(run.exit_code, 0);
  EXPECT_THAT(run.err, HasSubstr(absl::StrCat("server ", server.address(), " sent more than")));
}

TEST(StatusCommandTest, DamageIsListedAndIsCode1) {
  const FakeServer server(Answering(Damaged()));
  const CommandRun run = StatusOnce(server.address());
  EXPECT_EQ(run.exit_code, 1);
  EXPECT_THAT(run.err, HasSubstr("1 dataset has damaged records"));
  EXPECT_THAT(run.out,
              HasSubstr("  dataset photos: met while reading: 9 examples masked; the damaged "
                        "record:\n"
                        "    shard 'photos-3.tfrecord', offset 4000 (record_id 69): the payload's "
                        "CRC does not match\n"));
}

TEST(StatusCommandTest, DamageFoundWhileIndexingIsReported) {
  FakeFeed feed = Answering(Healthy());
  feed.datasets = [](v1::ListDatasetsResponse& answer) {
    v1::DatasetSummary& dataset = *answer.add_datasets();
    dataset.set_name("flowers");
    dataset.set_num_damaged_records(1);
    return absl::OkStatus();
  };
  const FakeServer server(feed);
  const CommandRun run = StatusOnce(server.address());
  EXPECT_EQ(run.exit_code, 1);
  EXPECT_THAT(run.out, HasSubstr("  dataset flowers: 1 damaged stretch was found while indexing, "
                                 "of 1 record or more (`systole datasets` lists them)\n"));
  EXPECT_THAT(StatusOnce(server.address(), {"--json"}).out, HasSubstr("\"damaged\":1"));
}

TEST(StatusCommandTest, JsonHasEveryFieldOfTheMessage) {
  const FakeServer server(Answering(Damaged()));
  const CommandRun run = StatusOnce(server.address(), {"--json"});
  EXPECT_EQ(run.exit_code, 1);
  EXPECT_THAT(run.out, StartsWith("{\"servers\":[{\"address\":\"" + server.address()));
  for (const google::protobuf::Descriptor* message :
       {v1::ServerStatusResponse::descriptor(), v1::DatasetStatus::descriptor(),
        v1::DamagedRecord::descriptor()}) {
    for (int i = 0; i < message->field_count(); ++i) {
      EXPECT_THAT(run.out, HasSubstr(absl::StrCat("\"", message->field(i)->name(), "\":")));
    }
  }
  EXPECT_EQ(NumberOf(run.out, "offset"), 4000);
}

TEST(StatusCommandTest, EveryCounterHasARateBetweenTwoAnswers) {
  std::atomic<int> asked = 0;
  const FakeServer server({.status = [&asked](v1::ServerStatusResponse& answer) {
    const int before = asked++;
    answer = Healthy(100 + before * 10, 7.5 + before * 0.5);
    return absl::OkStatus();
  }});
  const CommandRun json = Status(server.address(), {"--interval", "0.01", "--json"});
  EXPECT_EQ(json.exit_code, 0) << json.err;
  EXPECT_EQ(asked, 2);
  const std::vector<std::string> parts = absl::StrSplit(json.out, "\"per_second\":");
  ASSERT_EQ(parts.size(), 2u) << json.out;
  EXPECT_EQ(NumberOf(parts[0], "steps_served"), 110);
  // All rates are over the time between the two answers. This time depends on the machine, so the
  // test compares only the rates with each other.
  const double steps = NumberOf(parts[1], "steps_served");
  EXPECT_GT(steps, 0);
  EXPECT_DOUBLE_EQ(NumberOf(parts[1], "payload_bytes"), steps * 125'000);
  EXPECT_DOUBLE_EQ(NumberOf(parts[1], "cpu_seconds"), steps * 0.05);
  EXPECT_THAT(parts[1], Not(HasSubstr("active_streams")));
  EXPECT_THAT(Status(server.address(), {"--interval", "0.01"}).out,
              testing::ContainsRegex("  steps served    [0-9]+ .[0-9.]+/s.\n"));
}

TEST(StatusCommandTest, AServerStartedAnewBetweenTheAnswersHasNoRates) {
  std::atomic<int> asked = 0;
  const FakeServer server({.status = [&asked](v1::ServerStatusResponse& answer) {
    answer = asked++ > 0 ? Healthy(3) : Healthy();
    return absl::OkStatus();
  }});
  const CommandRun run = Status(server.address(), {"--interval", "0.01"});
  EXPECT_EQ(run.exit_code, 0) << run.err;
  EXPECT_THAT(run.out, AllOf(HasSubstr("steps served    3\n"), Not(HasSubstr("/s"))));
}

TEST(StatusCommandTest, DatasetsAreAskedForOnce) {
  std::atomic<int> status_asked = 0;
  std::atomic<int> datasets_asked = 0;
  const FakeServer server({.status =
                               [&](v1::ServerStatusResponse& answer) {
                                 ++status_asked;
                                 answer = Healthy();
                                 return absl::OkStatus();
                               },
                           .datasets =
                               [&](v1::ListDatasetsResponse&) {
                                 ++datasets_asked;
                                 return absl::OkStatus();
                               }});
  EXPECT_EQ(Status(server.address(), {"--interval", "0.01"}).exit_code, 0);
  EXPECT_EQ(status_asked, 2);
  EXPECT_EQ(datasets_asked, 1);
}

TEST(StatusCommandTest, ServerAddressesAreResolvedFromDnsAndFiles) {
  const FakeServer one(Answering(Healthy()));
  const FakeServer other(Answering(Healthy()));
  const TempFolder folder;
  const std::string file = folder.Write("servers", absl::StrCat(other.address(), "  # one\n"));
  // The list has `one` twice. Each server is asked once, in the order of the list.
  const CommandRun run =
      StatusOnce(absl::StrCat("dns:///", one.address(), ",file:", file, ",", one.address()));
  EXPECT_EQ(run.exit_code, 0) << run.err;
  const std::vector<std::string> parts = absl::StrSplit(run.out, ": version");
  EXPECT_EQ(parts.size(), 3u) << run.out;
  EXPECT_THAT(run.out, AllOf(StartsWith(one.address() + ": version"),
                             HasSubstr("\n" + other.address() + ": version")));
  EXPECT_EQ(StatusOnce("dns:///no-such-host.invalid:1").exit_code, 4);
  EXPECT_EQ(StatusOnce("file:" + (folder / "none")).exit_code, 3);
}

TEST(StatusCommandTest, AServerThatDoesNotAnswerDoesNotHideTheOthers) {
  const FakeServer one(Answering(Healthy()));
  const FakeServer other(Answering(Damaged()));
  const std::string nobody = DeadAddress();
  const std::string servers = absl::StrCat(one.address(), ",", nobody, ",", other.address());
  const CommandRun run = StatusOnce(servers, {"--connect-timeout", "3"});
  EXPECT_EQ(run.exit_code, 4);
  EXPECT_THAT(run.err, HasSubstr(absl::StrCat("server ", nobody, ", asked for its status: ")));
  EXPECT_THAT(run.out, AllOf(StartsWith(one.address() + ": version"),
                             HasSubstr("\n" + other.address() + ": version")));
  const CommandRun json = StatusOnce(servers, {"--connect-timeout", "3", "--json"});
  EXPECT_THAT(json.out,
              HasSubstr(absl::StrCat("{\"address\":\"", nobody, "\",\"error\":\"server ", nobody)));
}

TEST(StatusCommandTest, WrongUsageIsCode2) {
  for (const auto& [args, message] : std::vector<std::pair<std::vector<std::string>, const char*>>{
           {{"--interval", "-1"}, "--interval is -1s, want 0 to 24h"},
           {{"--interval", "nan"}, "needs a time, such as 3s or 500ms, got 'nan'"},
           {{"--connect-timeout", "0ms"}, "--connect-timeout is 0, want 1ms to 24h"},
       }) {
    const CommandRun run = Status("127.0.0.1:1", args);
    EXPECT_EQ(run.exit_code, 2) << message;
    EXPECT_THAT(run.err, HasSubstr(message));
  }
  EXPECT_EQ(StatusOnce("nowhere").exit_code, 2);
}

}  // namespace
}  // namespace systole
