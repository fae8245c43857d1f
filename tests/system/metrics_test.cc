// Tests metrics of a real server: each changes when the thing that it counts happens, and only
// then.
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/time.h"
#include "core/concurrency/monotonic_clock.h"
#include "core/concurrency/pace.h"
#include "core/example/example_builder.h"
#include "gmock/gmock.h"
#include "grpcpp/create_channel.h"
#include "gtest/gtest.h"
#include "systole/v1/service.grpc.pb.h"
#include "tests/core/dataset/test_dataset.h"
#include "tests/core/http/stub_objects.h"
#include "tests/core/metrics/exposition_parser.h"
#include "tests/core/record/tfrecord/shard_builder.h"
#include "tests/core/storage/temp_folder.h"
#include "tests/server/admin/http_client.h"
#include "tests/status_matchers.h"
#include "tests/system/process.h"
#include "tests/system/served_feed.h"
#include "tests/wait_until.h"

namespace systole {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;

constexpr char kClasses[] =
    " global_batch: 8 num_cores: 2 outputs { name: 'label' feature: 'cls' dtype: INT64 }";

std::string SmallShard(int first, int records) {
  ShardBuilder builder;
  for (int i = first; i < first + records; ++i) {
    builder.Add(ExampleBuilder().AddInt64s("cls", {i}).Serialize());
  }
  return builder.Build();
}

class MetricsTest : public testing::Test {
 protected:
  void Serve(std::vector<std::string> args) {
    for (const char* arg : {"--admin", "127.0.0.1:0", "--admin-port-file"}) args.push_back(arg);
    args.push_back(folder_ / "admin-port");
    absl::StatusOr<std::unique_ptr<ServerProcess>> server = ServerProcess::Start(args);
    ASSERT_THAT(server, IsOk());
    server_ = *std::move(server);
    ASSERT_TRUE(absl::SimpleAtoi(ReadWholeFile(folder_ / "admin-port"), &port_));
  }
  void ServeSmall(int records) {
    Serve({"--dataset", "small=" + folder_.Write("small.tfrecord", SmallShard(0, records))});
  }
  std::string Spec(const std::string& text) { return folder_.Write("spec.textproto", text); }
  void Feed(const std::string& spec) const {
    const Finished fed =
        RunSystole({"feed", "--server", server_->address(), "--spec", spec, "--steps", "0"});
    EXPECT_EQ(fed.exit_code, 0) << fed.err;
  }

  // All series of the server.
  std::map<std::string, double> Scrape() const {
    const absl::StatusOr<Exposition> metrics = ParseExposition(HttpGet(port_, "/metrics").body);
    EXPECT_THAT(metrics, IsOk());
    return metrics.value_or(Exposition()).series;
  }
  double Get(const std::string& series) const {
    const std::map<std::string, double> all = Scrape();
    const auto found = all.find("systole_server_" + series);
    EXPECT_NE(found, all.end()) << series;
    return found == all.end() ? 0 : found->second;
  }
  double Stage(const std::string& stage) const {
    return Get(absl::StrCat("stage_seconds_total{stage=\"", stage, "\"}"));
  }
  double Ready(const std::string& state) const {
    return Get(absl::StrCat("ready_slices{state=\"", state, "\"}"));
  }
  // The number of masked examples for each cause, without the causes that masked none.
  std::map<std::string, double> Masked() const {
    std::map<std::string, double> masked;
    for (const auto& [series, value] : Scrape()) {
      if (series.starts_with("systole_server_masked_examples_total{") && value > 0) {
        masked[series.substr(series.find('{'))] = value;
      }
    }
    return masked;
  }

  const TempFolder folder_;
  std::unique_ptr<ServerProcess> server_;
  int port_ = 0;
};

TEST_F(MetricsTest, AServerThatServesNothingCountsNoTimes) {
  ServeSmall(8);
  for (const char* stage : {"read", "make", "wait", "send"}) EXPECT_EQ(Stage(stage), 0) << stage;
  for (const char* state : {"waiting", "kept"}) EXPECT_EQ(Ready(state), 0) << state;
  EXPECT_EQ(Get("step_wait_seconds_count"), 0);
  EXPECT_THAT(Masked(), IsEmpty());
}

TEST_F(MetricsTest, EachStepCountsOnceAndStageTimesFitTheWallTime) {
  ServeSmall(800);
  const MonotonicClock clock = SteadyClock();
  const absl::Duration begin = clock();
  Feed(Spec(absl::StrCat("dataset: 'small' epochs: 2", kClasses)));
  const double wall = absl::ToDoubleSeconds(clock() - begin);
  EXPECT_EQ(Get("step_wait_seconds_count"), 200);
  EXPECT_EQ(Get("step_wait_seconds_count"), Get("steps_served_total"));
  // A stream waits for a slice, then sends the slice, and never does both at a time.
  const double waited = Get("step_wait_seconds_sum");
  EXPECT_GT(Stage("send"), 0);
  EXPECT_LE(waited + Stage("send"), wall);
  // A stream waits only while its slice is read and made.
  EXPECT_LE(waited, Stage("read") + Stage("make") + 1e-6);
  EXPECT_GT(Stage("make"), 0);
  // At most four slices are begun ahead for each thread, and there are at most seven threads for
  // each processor. So at any time the three stages together have at most 4 * 7 slices for each
  // processor.
  EXPECT_LE(Stage("read") + Stage("make") + Stage("wait"), wall * 4 * Get("cpus") * 7);
  EXPECT_EQ(Ready("waiting"), 0);
}

TEST_F(MetricsTest, TimeOfSlowStorageCountsInTheReadStage) {
  StubObjects objects;
  constexpr int kSteps = 12;
  static constexpr absl::Duration kLate = absl::Milliseconds(150);
  std::vector<std::string> args;
  for (int i = 0; i < kSteps; ++i) {
    args.push_back("--dataset");
    args.push_back(absl::StrCat(
        "web=", objects.Put(absl::StrFormat("/shard-%02d.tfrecord", i), SmallShard(8 * i, 8))));
  }
  Serve(args);
  objects.SetFault([](const StubRequest&) -> std::optional<StubAnswer> {
    PaceUntil(SteadyClock()() + kLate, {});
    return std::nullopt;
  });
  Feed(Spec(absl::StrCat("dataset: 'web' epochs: 1", kClasses)));
  EXPECT_GE(Stage("read"), absl::ToDoubleSeconds(kLate));
  EXPECT_GT(Stage("read"), Stage("make"));
  // The stream had to wait at least for its first step.
  EXPECT_GE(Get("step_wait_seconds_sum"), absl::ToDoubleSeconds(kLate) / 2);
  EXPECT_LT(Get("step_wait_seconds_bucket{le=\"0.01\"}"), kSteps);
  EXPECT_THAT(Masked(), IsEmpty());
}

TEST_F(MetricsTest, TimeOfACostlyOutputCountsInTheMakeStage) {
  PackFlowers(folder_, /*images=*/12, /*shards=*/1);
  Serve({"--dataset", absl::StrCat("flowers=", folder_.path(), "/flowers-train-*")});
  Feed(
      Spec("dataset: 'flowers' epochs: 1 global_batch: 2 num_cores: 2 "
           "outputs { name: 'picture' feature: 'image' dtype: FLOAT32 "
           "  transforms { decode_jpeg {} } transforms { resize { height: 2048 width: 2048 } } "
           "  transforms { resize { height: 8 width: 8 } } }"));
  EXPECT_GT(Stage("make"), 10 * Stage("read"));
  EXPECT_GT(Stage("make"), Stage("send"));
}

TEST_F(MetricsTest, WaitingSlicesAreCountedUntilTheirClientCancels) {
  constexpr int kRecordBytes = 64 << 10;
  Serve({"--dataset", "raw=" + folder_.Write("raw.tfrecord", RawShard(0, 64, kRecordBytes))});
  v1::StreamStepsRequest request;
  *request.mutable_spec() = SpecFromText(RawSpec(kRecordBytes, /*epochs=*/0));
  request.set_count(int64_t{1} << 40);
  const auto stub = v1::Systole::NewStub(
      grpc::CreateChannel(server_->address(), grpc::InsecureChannelCredentials()));
  grpc::ClientContext context;
  const auto stream = stub->StreamSteps(&context, request);
  v1::Chunk chunk;
  ASSERT_TRUE(stream->Read(&chunk));
  // From here on the client reads nothing.
  EXPECT_TRUE(WaitUntil([&] { return Ready("waiting") >= 2; }));
  EXPECT_EQ(Ready("kept"), 0);
  const double sent = Stage("send");
  context.TryCancel();
  EXPECT_TRUE(WaitUntil([&] { return Ready("waiting") == 0; }));
  // While the client read nothing, the stream was sending.
  EXPECT_TRUE(WaitUntil([&] { return Stage("send") > sent; }));
}

TEST_F(MetricsTest, MaskedExamplesCountUnderTheirCause) {
  const std::string good = SmallShard(0, 8);
  const std::string whole = good + SmallShard(8, 8);
  folder_.Write("a.tfrecord", WithFlippedBit(whole, 8 * (good.size() - 6)));  // Payload.
  folder_.Write("b.tfrecord", WithFlippedBit(whole, 8 * (good.size() + 3)));  // Header.
  folder_.Write("c.tfrecord",
                good +
                    ShardBuilder().Add(ExampleBuilder().AddFloats("w", {1}).Serialize()).Build() +
                    SmallShard(9, 7));
  Serve({"--dataset", absl::StrCat("small=", folder_.path(), "/?.tfrecord")});
  EXPECT_THAT(Masked(), IsEmpty());
  Feed(Spec(absl::StrCat("dataset: 'small' epochs: 3 on_corrupt: MASK", kClasses)));
  EXPECT_THAT(Masked(), ElementsAre(Pair("{cause=\"checksum\"}", 3), Pair("{cause=\"feature\"}", 3),
                                    Pair("{cause=\"record\"}", 3)));
  EXPECT_EQ(Get("dataset_masked_examples_total{dataset=\"small\"}"), 9);
  EXPECT_EQ(Get("dataset_damaged_stretches{dataset=\"small\"}"), 1);
  const Finished status = RunSystole({"status", "--server", server_->address()});
  EXPECT_THAT(status.out, testing::HasSubstr("3 checksum"));
  EXPECT_THAT(status.out, testing::HasSubstr("stage"));
}

}  // namespace
}  // namespace systole
