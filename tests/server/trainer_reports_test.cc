// Tests what a server shows of its streams and of their trainers, over real connections.
#include <grpc/grpc.h>

#include <atomic>
#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "core/access_token/token_file.h"
#include "gmock/gmock.h"
#include "grpcpp/create_channel.h"
#include "grpcpp/support/channel_arguments.h"
#include "gtest/gtest.h"
#include "server/server.h"
#include "server/streams/stream_snapshot.h"
#include "systole/v1/service.grpc.pb.h"
#include "tests/core/dataset/test_dataset.h"
#include "tests/core/storage/temp_folder.h"
#include "tests/server/listen_on.h"
#include "tests/server/rpc/test_catalogue.h"
#include "tests/status_matchers.h"
#include "tests/status_metrics.h"

namespace systole {
namespace {

using ::testing::AllOf;
using ::testing::Ge;
using ::testing::HasSubstr;
using ::testing::Le;
using ::testing::Not;
using ::testing::StartsWith;

// `a` may read cats, `b` may read dogs. `watcher` may see the status and list dogs. `tool` may see
// only the status.
constexpr char kAccess[] =
    "token_file: 'TOKENS' "
    "identities { name: 'a' token_names: 'a' may { read: 'cats' } } "
    "identities { name: 'b' token_names: 'b' may { read: 'dogs' } } "
    "identities { name: 'watcher' token_names: 'watcher' may { status: true list: 'dogs' } } "
    "identities { name: 'tool' token_names: 'tool' may { status: true } }";

v1::TrainerReport Report(uint64_t client, double waits,
                         v1::TrainerReport::Limit limit = v1::TrainerReport::STORAGE) {
  v1::TrainerReport report;
  report.set_client(client);
  report.set_wait_ratio(waits);
  report.set_limit(limit);
  return report;
}

// A server with the datasets `cats` and `dogs`.
class ServerTrainerReportsTest : public testing::Test {
 protected:
  struct Stream {
    grpc::ClientContext context;
    std::unique_ptr<grpc::ClientReader<v1::Chunk>> reader;
    ~Stream() { context.TryCancel(); }
  };

  void SetUp() override {
    folder_.Write("a.tfrecord", TestShards({12})[0]);
    for (const char* name : {"a", "b", "watcher", "tool"}) {
      secrets_[name] = *AddToken(folder_ / "tokens", name, std::nullopt);
    }
  }

  void Start(const std::string& access, FeedServiceOptions options = {}) {
    absl::StatusOr<std::shared_ptr<AccessControl>> control =
        TestAccess(access, folder_ / "tokens", {"cats", "dogs"});
    ASSERT_THAT(control, IsOk());
    options.access = *std::move(control);
    options.clock = [this] { return absl::Seconds(seconds_.load()); };
    absl::StatusOr<Catalogue> catalogue =
        OpenTestCatalogue(folder_ / "a.tfrecord", {"cats", "dogs"});
    ASSERT_THAT(catalogue, IsOk());
    absl::StatusOr<std::unique_ptr<Server>> server =
        Server::Start(*std::move(catalogue), ListenOn("127.0.0.1:0"), options);
    ASSERT_THAT(server, IsOk());
    server_ = *std::move(server);
    stub_ = NewStub();
  }

  std::unique_ptr<v1::Systole::Stub> NewStub() const {
    grpc::ChannelArguments args;
    args.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    // With a small window, a server sends hardly more than the client reads.
    args.SetInt(GRPC_ARG_HTTP2_STREAM_LOOKAHEAD_BYTES, 1024);
    args.SetInt(GRPC_ARG_HTTP2_BDP_PROBE, 0);
    return v1::Systole::NewStub(
        grpc::CreateCustomChannel(server_->address(), grpc::InsecureChannelCredentials(), args));
  }

  void Authorize(grpc::ClientContext& context, const std::string& who) const {
    const auto secret = secrets_.find(who);
    if (who.empty()) return;
    context.AddMetadata("authorization",
                        absl::StrCat("Bearer ", secret == secrets_.end() ? who : secret->second));
  }

  // Opens a stream of an endless feed, and reads the first chunk.
  std::unique_ptr<Stream> Open(const std::string& dataset, const std::string& who,
                               const v1::TrainerReport* report, v1::Systole::Stub& stub) {
    v1::StreamStepsRequest request;
    *request.mutable_spec() = SpecFromText(absl::StrCat(
        "dataset: '", dataset,
        "' global_batch: 8 num_cores: 1 outputs { name: 'id' feature: 'record_id' dtype: INT64 }"));
    request.set_count(int64_t{1} << 40);
    if (report != nullptr) *request.mutable_trainer() = *report;
    auto stream = std::make_unique<Stream>();
    Authorize(stream->context, who);
    stream->reader = stub.StreamSteps(&stream->context, request);
    v1::Chunk chunk;
    EXPECT_TRUE(stream->reader->Read(&chunk));
    return stream;
  }
  std::unique_ptr<Stream> Open(const std::string& dataset, const std::string& who,
                               const v1::TrainerReport& report) {
    return Open(dataset, who, &report, *stub_);
  }

  grpc::Status Tell(const std::string& who, const v1::TrainerReport& report) {
    grpc::ClientContext context;
    Authorize(context, who);
    v1::ReportTrainerRequest request;
    *request.mutable_trainer() = report;
    v1::ReportTrainerResponse response;
    return stub_->ReportTrainer(&context, request, &response);
  }

  v1::ServerStatusResponse Status(const std::string& who = "") {
    grpc::ClientContext context;
    Authorize(context, who);
    v1::ServerStatusResponse status;
    EXPECT_TRUE(stub_->ServerStatus(&context, {}, &status).ok());
    for (const auto& [name, secret] : secrets_) {
      EXPECT_THAT(status.DebugString(), Not(HasSubstr(secret)));
    }
    return status;
  }

  TempFolder folder_;
  std::map<std::string, std::string> secrets_;  // Tokens, by identity.
  std::atomic<int64_t> seconds_ = 1000;         // The time on the server's clock.
  std::unique_ptr<Server> server_;
  std::unique_ptr<v1::Systole::Stub> stub_;
};

TEST_F(ServerTrainerReportsTest, TheStatusShowsAStreamWithItsClientsReport) {
  Start("");
  v1::TrainerReport report = Report(7, 0.25, v1::TrainerReport::DECODE);
  report.set_steps_per_second(12.5);
  report.set_costliest_output(1);
  const std::unique_ptr<Stream> stream = Open("cats", "", report);
  seconds_ += 3;
  v1::ServerStatusResponse status = Status();
  ASSERT_EQ(status.streams_size(), 1);
  const v1::StreamStatus& shown = status.streams(0);
  EXPECT_EQ(shown.stream(), 1);
  EXPECT_THAT(shown.client(), StartsWith("ipv4:127.0.0.1:"));
  EXPECT_EQ(shown.dataset(), "cats");
  EXPECT_NE(shown.feed(), 0u);
  EXPECT_EQ(shown.seconds(), 3);
  EXPECT_GT(shown.payload_bytes(), 0);
  EXPECT_EQ(shown.trainer().wait_ratio(), 0.25);
  EXPECT_EQ(shown.trainer().steps_per_second(), 12.5);
  EXPECT_EQ(shown.trainer().limit(), v1::TrainerReport::DECODE);
  EXPECT_EQ(shown.trainer().client(), 0u);  // Nobody learns the number of another client.
  EXPECT_EQ(shown.output(), "id");
  EXPECT_EQ(status.streams_left_out(), 0);
  EXPECT_EQ(MetricOf(status, "trainer_wait_ratio", "mean"), 0.25);
  EXPECT_EQ(MetricOf(status, "trainer_wait_ratio", "max"), 0.25);
  EXPECT_EQ(MetricOf(status, "trainers_reporting"), 1);
  EXPECT_EQ(MetricOf(status, "trainer_limits", "decode"), 1);
}

TEST_F(ServerTrainerReportsTest, AReportReplacesTheLastOneAndExpiresAfter30Seconds) {
  Start("");
  const std::unique_ptr<Stream> stream = Open("cats", "", Report(7, 0.25));
  seconds_ += 10;
  EXPECT_TRUE(Tell("", Report(7, 0.75)).ok());
  EXPECT_EQ(Status().streams(0).trainer().wait_ratio(), 0.75);
  seconds_ += 29;
  EXPECT_EQ(MetricOf(Status(), "trainers_reporting"), 1);
  seconds_ += 1;
  const v1::ServerStatusResponse status = Status();
  ASSERT_EQ(status.streams_size(), 1);
  EXPECT_FALSE(status.streams(0).trainer().has_wait_ratio());
  EXPECT_EQ(MetricOf(status, "trainers_reporting"), 0);
  EXPECT_EQ(MetricOf(status, "trainer_wait_ratio", "max"), 0);
  // The stream is still open, so its client may report again.
  EXPECT_TRUE(Tell("", Report(7, 0.5)).ok());
  EXPECT_EQ(Status().streams(0).trainer().wait_ratio(), 0.5);
}

TEST_F(ServerTrainerReportsTest, AReportWithoutAStreamIsIgnored) {
  Start("");
  EXPECT_TRUE(Tell("", Report(7, 1)).ok());
  const std::unique_ptr<Stream> silent = Open("cats", "", nullptr, *stub_);
  EXPECT_TRUE(Tell("", Report(7, 1)).ok());
  EXPECT_TRUE(Tell("", Report(0, 1)).ok());
  const v1::ServerStatusResponse status = Status();
  EXPECT_EQ(MetricOf(status, "trainers_reporting"), 0);
  ASSERT_EQ(status.streams_size(), 1);
  EXPECT_FALSE(status.streams(0).trainer().has_wait_ratio());
}

TEST_F(ServerTrainerReportsTest, InvalidReportsStillGiveWaitRatiosFrom0To1) {
  Start("");
  const std::unique_ptr<Stream> stream = Open("cats", "", Report(7, 1e300));
  for (const double waits : {-1.0, 1e300, std::numeric_limits<double>::quiet_NaN(),
                             std::numeric_limits<double>::infinity()}) {
    seconds_ += 5;
    v1::TrainerReport report = Report(7, waits);
    report.set_costliest_output(std::numeric_limits<int32_t>::max());
    report.set_steps_per_second(std::numeric_limits<double>::quiet_NaN());
    report.set_limit(static_cast<v1::TrainerReport::Limit>(99));
    EXPECT_TRUE(Tell("", report).ok());
    const v1::ServerStatusResponse status = Status();
    for (const char* statistic : {"mean", "max"}) {
      EXPECT_THAT(MetricOf(status, "trainer_wait_ratio", statistic), AllOf(Ge(0.0), Le(1.0)));
    }
    EXPECT_THAT(status.streams(0).trainer().wait_ratio(), AllOf(Ge(0.0), Le(1.0)));
    EXPECT_EQ(status.streams(0).output(), "");
  }
}

TEST_F(ServerTrainerReportsTest, ClientsWithoutReadPermissionMayNotReport) {
  Start(kAccess);
  const std::unique_ptr<Stream> stream = Open("cats", "a", Report(7, 0.25));
  seconds_ += 10;
  EXPECT_EQ(Tell("", Report(7, 1)).error_code(), grpc::StatusCode::UNAUTHENTICATED);
  EXPECT_EQ(Tell("wrong", Report(7, 1)).error_code(), grpc::StatusCode::UNAUTHENTICATED);
  EXPECT_EQ(Tell("tool", Report(7, 1)).error_code(), grpc::StatusCode::PERMISSION_DENIED);
  EXPECT_TRUE(Tell("b", Report(7, 1)).ok());  // Ignored: client 7 belongs to "a".
  EXPECT_EQ(MetricOf(Status("tool"), "trainer_wait_ratio", "max"), 0.25);
  EXPECT_TRUE(Tell("a", Report(7, 0.5)).ok());
  EXPECT_EQ(MetricOf(Status("tool"), "trainer_wait_ratio", "max"), 0.5);
}

TEST_F(ServerTrainerReportsTest, StreamsOfDatasetsThatTheCallerMayNotListAreNotShown) {
  Start(kAccess);
  const std::unique_ptr<Stream> of_a = Open("cats", "a", Report(7, 0.25));
  const std::unique_ptr<Stream> of_b = Open("dogs", "b", Report(7, 0.5));
  const v1::ServerStatusResponse status = Status("watcher");
  ASSERT_EQ(status.streams_size(), 1);
  EXPECT_EQ(status.streams(0).dataset(), "dogs");
  EXPECT_THAT(status.streams(0).client(), StartsWith("identity 'b' at ipv4:127.0.0.1:"));
  EXPECT_EQ(Status("tool").streams_size(), 0);
  // The metrics name no dataset and no client, so they count all trainers.
  EXPECT_EQ(MetricOf(Status("tool"), "trainers_reporting"), 2);
}

TEST_F(ServerTrainerReportsTest, AtMost256StreamsAreShownAndTheLongestWaitComesFirst) {
  constexpr int kStreams = 261;
  Start("", {.max_streams = 300});
  std::vector<std::unique_ptr<v1::Systole::Stub>> stubs;
  std::vector<std::unique_ptr<Stream>> streams;
  for (int i = 0; i < kStreams; ++i) {
    if (i % 50 == 0) stubs.push_back(NewStub());
    // Only the first 250 trainers report. Each of them reports a longer wait than the previous one.
    const v1::TrainerReport report = Report(static_cast<uint64_t>(i) + 1, 0.001 * i);
    streams.push_back(Open("cats", "", i < 250 ? &report : nullptr, *stubs.back()));
  }
  const v1::ServerStatusResponse status = Status();
  ASSERT_EQ(status.streams_size(), static_cast<int>(kMaxStreamsShown));
  EXPECT_EQ(status.streams_left_out(), kStreams - static_cast<int>(kMaxStreamsShown));
  for (int i = 0; i < 250; ++i) {
    EXPECT_DOUBLE_EQ(status.streams(i).trainer().wait_ratio(), 0.001 * (249 - i));
  }
  for (int i = 250; i < 256; ++i) EXPECT_EQ(status.streams(i).stream(), i + 1);
  EXPECT_EQ(MetricOf(status, "trainers_reporting"), 250);
}

}  // namespace
}  // namespace systole
