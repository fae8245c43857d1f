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
#include "tests/dead_address.h"

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

// Asked once, so that the same server always gives the same text.
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

v1::ServerStatusResponse Healthy() {
  v1::ServerStatusResponse status;
  status.set_version("1.2.3");
  status.set_content_version("4-libjpeg");
  status.set_active_streams(2);
  status.set_steps_served(100);
  status.set_examples_made(6400);
  status.set_payload_bytes_sent(12'500'000);
  status.set_payload_bytes_shared(2'500'000);
  status.set_slices_shared(70);
  status.set_memory_budget_bytes(512'000'000);
  status.set_memory_used_bytes(31'000'000);
  status.mutable_cache()->set_memory_hits(29);
  status.mutable_cache()->set_disk_hits(1);
  status.mutable_cache()->set_misses(10);
  status.mutable_cache()->set_memory_bytes(3'000'000);
  status.mutable_cache()->set_memory_budget_bytes(4'000'000);
  status.set_cpu_seconds(7.5);
  status.set_resident_bytes(91'000'000);
  status.set_cpus(4);
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

// The number behind `"key":` in a JSON text.
double NumberOf(const std::string& json, const std::string& key) {
  const std::vector<std::string> parts = absl::StrSplit(json, absl::StrCat("\"", key, "\":"));
  double number = -1;
  EXPECT_EQ(parts.size(), 2u) << key << " in " << json;
  if (parts.size() != 2) return number;
  EXPECT_TRUE(absl::SimpleAtod(parts[1].substr(0, parts[1].find_first_of(",}")), &number));
  return number;
}

TEST(StatusCommandTest, SaysWhatAServerIsDoing) {
  const FakeServer server(Answering(Healthy()));
  const CommandRun run = StatusOnce(server.address());
  EXPECT_EQ(run.exit_code, 0) << run.err;
  EXPECT_EQ(run.err, "");
  EXPECT_EQ(run.out,
            absl::StrCat(server.address(),
                         ": version 1.2.3, content version 4-libjpeg\n"
                         "  streams    2\n"
                         "  served     100 steps, 6400 examples made, 12.5 MB sent, 2.5 MB of it "
                         "through shared memory\n"
                         "  together   70 slices were made for another client of the same feed\n"
                         "  memory     31.0 of 512.0 MB; 91.0 MB of the process\n"
                         "  cache      75 % of 40 look-ups found; 3.0 of 4.0 MB memory\n"
                         "  processor  7.5 CPU-seconds since the start, 4 CPUs to use\n"
                         "  dataset    flowers: no damage found or met\n"));
}

TEST(StatusCommandTest, CountsTroubleByItsCause) {
  v1::ServerStatusResponse status = Healthy();
  status.set_streams_opened(9);
  status.mutable_stream_ends()->set_complete(4);
  status.mutable_stream_ends()->set_gave_place(2);
  status.mutable_stream_ends()->set_stalled(1);
  status.mutable_connections()->set_open(3);
  status.mutable_connections()->set_accepted(20);
  status.mutable_connections()->set_over_total(5);
  status.mutable_refusals()->set_unauthenticated(6);
  status.mutable_refusals()->set_no_place(7);
  status.set_masked_examples(8);
  const FakeServer server(Answering(status));
  const CommandRun run = StatusOnce(server.address());
  EXPECT_EQ(run.exit_code, 0) << run.err;
  EXPECT_THAT(
      run.out,
      HasSubstr("  streams    2, 9 opened since the start; ended: 4 complete, 2 gave place, "
                "1 stalled\n"
                "  connected  3 open, 20 accepted, 5 over total\n"
                "  refused    6 unauthenticated, 7 no place\n"
                "  masked     8 examples, of all datasets\n"));
  const std::string json = StatusOnce(server.address(), {"--json"}).out;
  EXPECT_THAT(json, AllOf(HasSubstr(R"("streams_opened":9)"),
                          HasSubstr(R"("stream_ends":{"complete":4,"drained":0,"client_gone":0,)"
                                    R"("gave_place":2,"stalled":1,"not_permitted":0,"failed":0})"),
                          HasSubstr(R"("connections":{"open":3,"accepted":20,"over_total":5,)"
                                    R"("over_peer":0,"no_descriptor":0,"no_call":0,)"
                                    R"("sent_too_much":0,"cost_most":0})"),
                          HasSubstr(R"("refusals":{"unauthenticated":6,"not_permitted":0,)"
                                    R"("no_place":7,"bad_request":0,"draining":0,"other":0})"),
                          HasSubstr(R"("masked_examples":8)")));
}

TEST(StatusCommandTest, SaysThatAServerDrainsAndWhatSlowsItDown) {
  v1::ServerStatusResponse status = Healthy();
  status.set_draining(true);
  status.set_jpeg_fallback("another libjpeg");
  status.set_threads_stuck(3);
  status.set_reads_timed_out(2);
  const FakeServer server(Answering(status));
  EXPECT_THAT(StatusOnce(server.address()).out,
              AllOf(HasSubstr(", DRAINING\n"),
                    HasSubstr("storage    3 threads wait for reads that hang, 2 steps failed for "
                              "such reads since the start\n"),
                    HasSubstr("note: libjpeg decodes JPEGs alone, at about half the speed: "
                              "another libjpeg\n")));
}

TEST(StatusCommandTest, DamageIsListedAndIsCode1) {
  const FakeServer server(Answering(Damaged()));
  const CommandRun run = StatusOnce(server.address());
  EXPECT_EQ(run.exit_code, 1);
  EXPECT_THAT(run.err, HasSubstr("1 dataset has damaged records"));
  EXPECT_THAT(run.out,
              HasSubstr("  dataset    photos: met while reading: 9 examples masked; the damaged "
                        "record:\n"
                        "    shard 'photos-3.tfrecord', offset 4000 (record_id 69): the payload's "
                        "CRC does not match\n"));
}

TEST(StatusCommandTest, DamageFoundWhileIndexingIsToldToo) {
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
  EXPECT_THAT(run.out,
              HasSubstr("  dataset    flowers: 1 damaged stretch was found while indexing, "
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
  EXPECT_EQ(NumberOf(run.out, "memory_used_bytes"), 31'000'000);
  EXPECT_EQ(NumberOf(run.out, "offset"), 4000);
}

TEST(StatusCommandTest, RatesAreTheDifferenceOfTwoAnswers) {
  std::atomic<int> asked = 0;
  const FakeServer server({.status = [&asked](v1::ServerStatusResponse& answer) {
    const int before = asked++;
    answer = Healthy();
    answer.set_steps_served(100 + before * 10);
    answer.set_examples_made(6400 + before * 640);
    answer.set_payload_bytes_sent(12'500'000 + before * 5'000'000);
    answer.set_cpu_seconds(7.5 + before * 0.5);
    return absl::OkStatus();
  }});
  const CommandRun json = Status(server.address(), {"--interval", "0.01", "--json"});
  EXPECT_EQ(json.exit_code, 0) << json.err;
  EXPECT_EQ(asked, 2);
  // How long it took between the answers is the machine's choice; it is the same for all.
  const double steps = NumberOf(json.out, "steps_per_second");
  EXPECT_GT(steps, 0);
  EXPECT_DOUBLE_EQ(NumberOf(json.out, "examples_per_second"), steps * 64);
  EXPECT_DOUBLE_EQ(NumberOf(json.out, "megabytes_per_second"), steps * 0.5);
  EXPECT_DOUBLE_EQ(NumberOf(json.out, "cpus_busy"), steps * 0.05);
  EXPECT_EQ(NumberOf(json.out, "steps_served"), 110);
  EXPECT_THAT(Status(server.address(), {"--interval", "0.01"}).out,
              testing::ContainsRegex("  now        [0-9.]+ steps/s, [0-9]+ examples/s, "
                                     "[0-9.]+ MB/s, [0-9.]+ CPUs busy\n"));
}

TEST(StatusCommandTest, AServerStartedAnewBetweenTheAnswersHasNoRates) {
  std::atomic<int> asked = 0;
  const FakeServer server({.status = [&asked](v1::ServerStatusResponse& answer) {
    answer = Healthy();
    if (asked++ > 0) answer.set_steps_served(3);
    return absl::OkStatus();
  }});
  const CommandRun run = Status(server.address(), {"--interval", "0.01"});
  EXPECT_EQ(run.exit_code, 0) << run.err;
  EXPECT_THAT(run.out, AllOf(HasSubstr("served     3 steps"), Not(HasSubstr("steps/s"))));
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
           {{"--interval", "nan"}, "wants a time, such as 3s or 500ms, got 'nan'"},
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
