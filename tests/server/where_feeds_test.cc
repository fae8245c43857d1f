// Tests feeds with a condition (`where`). The storage gives the condition's column late, or never.
#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "core/access_token/token_file.h"
#include "gmock/gmock.h"
#include "grpcpp/create_channel.h"
#include "gtest/gtest.h"
#include "server/access/access_control.h"
#include "server/rpc/catalogue.h"
#include "server/rpc/feed_makers.h"
#include "server/server.h"
#include "systole/v1/service.grpc.pb.h"
#include "tests/core/dataset/test_dataset.h"
#include "tests/core/http/stub_objects.h"
#include "tests/core/storage/temp_folder.h"
#include "tests/server/listen_on.h"
#include "tests/server/rpc/test_catalogue.h"
#include "tests/status_matchers.h"
#include "tests/status_metrics.h"
#include "tests/wait_until.h"

namespace systole {
namespace {

using ::testing::HasSubstr;

class WhereFeedsTest : public testing::Test {
 protected:
  // An asynchronous call of ResolveFeed.
  struct Call {
    grpc::ClientContext context;
    v1::ResolveFeedRequest request;
    v1::ResolveFeedResponse response;
    grpc::Status status;
    std::atomic<bool> ended = false;
  };

  // Serves two datasets: `other`, and `far`, whose shard and columns are on a web server.
  void SetUp() override {
    const std::string shard = TestShards({40})[0];
    const std::string glob = folder_.Write("a.tfrecord", shard);
    const absl::StatusOr<std::shared_ptr<Dataset>> near = Dataset::Open("near", {glob});
    ASSERT_THAT(near, IsOk());
    ASSERT_THAT((*near)->NoteColumns({"label"}), IsOk());
    for (const std::string& name : folder_.List()) {
      objects_.Put(absl::StrCat("/d/", name), ReadWholeFile(folder_ / name));
    }
    objects_.SetFault([this](const StubRequest& request) -> std::optional<StubAnswer> {
      if (absl::StrContains(request.target, ".column") && hangs_) {
        ++asked_;
        EXPECT_TRUE(WaitUntil([this] { return released_.load(); }));
      }
      return std::nullopt;
    });
    Serve({});
  }
  // Opens both datasets.
  Catalogue Open() {
    v1::ServerConfig config;
    v1::DatasetConfig& far = *config.add_datasets();
    far.set_name("far");
    far.add_shards(objects_.server().Url("/d/a.tfrecord"));
    v1::DatasetConfig& other = *config.add_datasets();
    other.set_name("other");
    other.add_shards(folder_ / "a.tfrecord");
    absl::StatusOr<Catalogue> catalogue = Catalogue::Open(config, {});
    EXPECT_THAT(catalogue, IsOk());
    return *std::move(catalogue);
  }
  void Serve(const FeedServiceOptions& options) {
    Catalogue catalogue = Open();
    hangs_ = true;
    absl::StatusOr<std::unique_ptr<Server>> server =
        Server::Start(std::move(catalogue), ListenOn("127.0.0.1:0"), options);
    ASSERT_THAT(server, IsOk());
    server_ = *std::move(server);
    stub_ = v1::Systole::NewStub(
        grpc::CreateChannel(server_->address(), grpc::InsecureChannelCredentials()));
  }
  void TearDown() override {
    released_ = true;
    server_ = nullptr;
  }

  static v1::FeedSpec Spec(int label) {
    return SpecFromText(
        absl::StrCat("dataset: 'far' global_batch: 4 outputs { name: 'label' feature: 'label' } ",
                     "select { where { feature: 'label' not_in: ", label, " } }"));
  }

  std::unique_ptr<Call> Ask(int label, const std::string& token = "") {
    return Ask(Spec(label), token);
  }
  std::unique_ptr<Call> Ask(const v1::FeedSpec& spec, const std::string& token) {
    auto call = std::make_unique<Call>();
    if (!token.empty()) call->context.AddMetadata("authorization", absl::StrCat("Bearer ", token));
    *call->request.mutable_spec() = spec;
    stub_->async()->ResolveFeed(&call->context, &call->request, &call->response,
                                [call = call.get()](grpc::Status status) {
                                  call->status = std::move(status);
                                  call->ended = true;
                                });
    return call;
  }
  static grpc::Status EndOf(const Call& call) {
    EXPECT_TRUE(WaitUntil([&] { return call.ended.load(); }));
    return call.status;
  }

  // Reads a stream of one step.
  grpc::Status Stream(int label) {
    v1::StreamStepsRequest request;
    *request.mutable_spec() = Spec(label);
    request.set_count(1);
    grpc::ClientContext context;
    const auto reader = stub_->StreamSteps(&context, request);
    v1::Chunk chunk;
    while (reader->Read(&chunk)) {
    }
    return reader->Finish();
  }

  // The value of a metric.
  double Counted(const std::string& name, const std::string& label = "") {
    grpc::ClientContext context;
    v1::ServerStatusResponse status;
    EXPECT_TRUE(stub_->ServerStatus(&context, {}, &status).ok());
    return MetricOf(status, name, label);
  }

  const TempFolder folder_;
  std::atomic<bool> hangs_ = false;  // Whether requests for columns wait until released_.
  std::atomic<bool> released_ = false;
  std::atomic<int> asked_ = 0;  // How many requests for columns have waited.
  StubObjects objects_;
  std::unique_ptr<Server> server_;
  std::unique_ptr<v1::Systole::Stub> stub_;
};

TEST_F(WhereFeedsTest, RequestsThatWaitForWhereLookUpsDoNotBlockOtherCalls) {
  std::vector<std::unique_ptr<Call>> calls;
  // These are more calls than the server has threads for answers (a few for each processor).
  for (int i = 0; i < 32; ++i) calls.push_back(Ask(i % 5));
  ASSERT_TRUE(WaitUntil([&] { return asked_ > 0; }));
  grpc::ClientContext context;
  v1::ListDatasetsResponse datasets;
  EXPECT_TRUE(stub_->ListDatasets(&context, {}, &datasets).ok());
  for (const auto& call : calls) EXPECT_FALSE(call->ended);
  released_ = true;
  for (size_t i = 0; i < calls.size(); ++i) {
    const grpc::Status status = EndOf(*calls[i]);
    EXPECT_TRUE(status.ok()) << status.error_message();
    ASSERT_EQ(calls[i]->response.where_records_size(), 1);
    EXPECT_EQ(calls[i]->response.where_records(0), 32);
  }
}

TEST_F(WhereFeedsTest, AStreamBeginsOnceResolveFeedHasMadeItsFeed) {
  released_ = true;
  const grpc::Status refused = Stream(1);
  EXPECT_EQ(refused.error_code(), grpc::StatusCode::UNAVAILABLE);
  EXPECT_THAT(refused.error_message(), HasSubstr("call ResolveFeed"));
  EXPECT_EQ(asked_, 0);
  EXPECT_TRUE(EndOf(*Ask(1)).ok());
  EXPECT_TRUE(Stream(1).ok());
}

TEST_F(WhereFeedsTest, ALookUpInAReplacedDatasetDoesNotDelayNewRequests) {
  const auto old = Ask(1);
  ASSERT_TRUE(WaitUntil([&] { return asked_ > 0; }));
  hangs_ = false;
  server_->Change({"far"}, Open());
  for (int i = 0; i < FeedMakers::kSlowTicks; ++i) server_->Tick();
  EXPECT_TRUE(EndOf(*Ask(1)).ok());
  EXPECT_FALSE(old->ended);
  released_ = true;
  EndOf(*old);
}

// A new config may remove another dataset while a look-up runs.
TEST_F(WhereFeedsTest, AFeedIsKeptIfOnlyAnotherDatasetWasRemovedMeanwhile) {
  const auto before = Ask(1);
  ASSERT_TRUE(WaitUntil([&] { return asked_ > 0; }));
  server_->Change({"other"}, Catalogue());
  const auto after = Ask(1);
  ASSERT_TRUE(WaitUntil([&] { return Counted("where_requests_waiting") == 2; }));
  released_ = true;
  EXPECT_TRUE(EndOf(*before).ok());
  EXPECT_TRUE(EndOf(*after).ok());
  EXPECT_EQ(Counted("where_look_ups", "made"), 1);
  const int asked = asked_;
  EXPECT_TRUE(Stream(1).ok());
  EXPECT_EQ(asked_, asked);
}

TEST_F(WhereFeedsTest, AFeedIsNotKeptIfItsDatasetWasReplacedWhileItWasMade) {
  const auto old = Ask(1);
  ASSERT_TRUE(WaitUntil([&] { return asked_ > 0; }));
  hangs_ = false;
  server_->Change({"far"}, Open());
  released_ = true;
  EXPECT_TRUE(EndOf(*old).ok());
  EXPECT_EQ(Stream(1).error_code(), grpc::StatusCode::UNAVAILABLE);
}

TEST_F(WhereFeedsTest, AWaitingRequestForARemovedDatasetEndsWithNotFound) {
  const auto in_making = Ask(1);
  ASSERT_TRUE(WaitUntil([&] { return asked_ > 0; }));
  const auto in_line = Ask(2);
  ASSERT_TRUE(WaitUntil([&] { return Counted("where_requests_waiting") == 2; }));
  server_->Change({"far"}, Catalogue());
  released_ = true;
  const grpc::Status removed = EndOf(*in_line);
  EXPECT_EQ(removed.error_code(), grpc::StatusCode::NOT_FOUND);
  EXPECT_EQ(removed.error_message(), "the dataset 'far' was removed from this server");
  EXPECT_EQ(Counted("requests_refused", "bad_request"), 1);
  EndOf(*in_making);
}

TEST_F(WhereFeedsTest, LookUpsAreCountedByTheirResult) {
  EXPECT_EQ(Counted("where_requests_waiting"), 0);
  const auto first = Ask(1);
  const auto second = Ask(1);
  ASSERT_TRUE(WaitUntil([&] { return Counted("where_requests_waiting") == 2; }));
  released_ = true;
  EXPECT_TRUE(EndOf(*first).ok());
  EXPECT_TRUE(EndOf(*second).ok());
  Call refused;
  *refused.request.mutable_spec() = Spec(1);
  refused.request.mutable_spec()->mutable_select(0)->mutable_where()->set_feature("lable");
  EXPECT_FALSE(stub_->ResolveFeed(&refused.context, refused.request, &refused.response).ok());
  EXPECT_EQ(Counted("where_requests_waiting"), 0);
  EXPECT_EQ(Counted("where_look_ups", "made"), 1);
  EXPECT_EQ(Counted("where_look_ups", "failed"), 1);
}

TEST_F(WhereFeedsTest, AWaitingCallWhoseTokenIsRevokedIsRefusedAsUnauthenticated) {
  const std::string tokens = folder_ / "tokens";
  // The error for a column that is missing names a shard. So a caller without the permission must
  // not get this error.
  for (const char* const feature : {"label", "lable"}) {
    const absl::StatusOr<std::string> token = AddToken(tokens, "a", std::nullopt);
    ASSERT_THAT(token, IsOk());
    absl::StatusOr<std::shared_ptr<AccessControl>> access = TestAccess(
        "token_file: 'TOKENS' identities { name: 'a' token_names: 'a' may { read: 'far' } }",
        tokens, {"far"});
    ASSERT_THAT(access, IsOk());
    hangs_ = false;
    released_ = false;
    asked_ = 0;
    Serve({.access = *access});
    v1::FeedSpec spec = Spec(1);
    spec.mutable_select(0)->mutable_where()->set_feature(feature);
    const auto call = Ask(spec, *token);
    ASSERT_TRUE(WaitUntil([&] { return asked_ > 0; }));
    folder_.Write("tokens", TokenLine({.name = "a", .hash = HashOfToken("another")}));
    server_->Tick();
    released_ = true;
    EXPECT_EQ(EndOf(*call).error_code(), grpc::StatusCode::UNAUTHENTICATED) << feature;
  }
}

TEST_F(WhereFeedsTest, WaitingCallsEndWhenTheirClientCancelsOrTheServerDrains) {
  const auto gone = Ask(1);
  const auto in_making = Ask(1);
  const auto in_line = Ask(2);
  ASSERT_TRUE(WaitUntil([&] { return asked_ > 0; }));
  gone->context.TryCancel();
  EXPECT_EQ(EndOf(*gone).error_code(), grpc::StatusCode::CANCELLED);
  EXPECT_FALSE(in_making->ended);
  EXPECT_TRUE(server_->Drain(absl::FromChrono(kLongestWait)));
  for (const auto* const call : {in_making.get(), in_line.get()}) {
    EXPECT_EQ(EndOf(*call).error_code(), grpc::StatusCode::UNAVAILABLE);
    EXPECT_THAT(call->status.error_message(), HasSubstr("draining"));
  }
  released_ = true;
  EXPECT_TRUE(WaitUntil([&] { return server_->StopWork(absl::ZeroDuration()); }));
}

}  // namespace
}  // namespace systole
