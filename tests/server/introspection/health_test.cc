// Tests gRPC's health service over a real connection.
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/access_token/token_file.h"
#include "gmock/gmock.h"
#include "grpcpp/create_channel.h"
#include "gtest/gtest.h"
#include "server/introspection/health_service.h"
#include "server/server.h"
#include "tests/core/dataset/test_dataset.h"
#include "tests/core/storage/temp_folder.h"
#include "tests/server/listen_on.h"
#include "tests/server/rpc/test_catalogue.h"
#include "tests/status_matchers.h"

namespace systole {
namespace {

using grpc::health::v1::Health;
using grpc::health::v1::HealthCheckRequest;
using grpc::health::v1::HealthCheckResponse;
using ::testing::HasSubstr;

class HealthTest : public testing::Test {
 protected:
  void SetUp() override { Start(""); }

  // `access` is the config's block `access` as text. "" means no block.
  void Start(const std::string& access) {
    server_ = nullptr;
    folder_.Write("a.tfrecord", TestShards({12})[0]);
    FeedServiceOptions service;
    service.events = &events_;
    absl::StatusOr<std::shared_ptr<AccessControl>> access_control =
        TestAccess(access, folder_ / "tokens");
    ASSERT_THAT(access_control, IsOk());
    service.access = *std::move(access_control);
    absl::StatusOr<Catalogue> catalogue = OpenTestCatalogue(folder_ / "a.tfrecord");
    ASSERT_THAT(catalogue, IsOk());
    absl::StatusOr<std::unique_ptr<Server>> server =
        Server::Start(*std::move(catalogue), ListenOn("127.0.0.1:0"), service);
    ASSERT_THAT(server, IsOk());
    server_ = *std::move(server);
  }

  // Each stub has a connection of its own.
  std::unique_ptr<Health::Stub> Dial() const {
    grpc::ChannelArguments own_connection;
    own_connection.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    return Health::NewStub(grpc::CreateCustomChannel(
        server_->address(), grpc::InsecureChannelCredentials(), own_connection));
  }

  grpc::Status Check(const std::string& service, HealthCheckResponse& response,
                     const std::string& token = "") const {
    grpc::ClientContext context;
    if (!token.empty()) context.AddMetadata("authorization", absl::StrCat("Bearer ", token));
    HealthCheckRequest request;
    request.set_service(service);
    return Dial()->Check(&context, request, &response);
  }

  struct Watcher {
    grpc::ClientContext context;
    std::unique_ptr<grpc::ClientReader<HealthCheckResponse>> reader;

    // UNKNOWN means that the call is over.
    HealthCheckResponse::ServingStatus Next() {
      HealthCheckResponse response;
      return reader->Read(&response) ? response.status() : HealthCheckResponse::UNKNOWN;
    }
    ~Watcher() { context.TryCancel(); }
  };
  static std::unique_ptr<Watcher> Watch(Health::Stub& stub, const std::string& service = "") {
    auto watcher = std::make_unique<Watcher>();
    HealthCheckRequest request;
    request.set_service(service);
    watcher->reader = stub.Watch(&watcher->context, request);
    return watcher;
  }

  const TempFolder folder_;
  EventLog events_{[](LogLevel, const std::string&) {}};
  std::unique_ptr<Server> server_;
};

TEST_F(HealthTest, KnownServicesAreServingAndAnUnknownServiceIsReported) {
  HealthCheckResponse response;
  for (const char* service : {"", "systole.v1.Systole"}) {
    response.Clear();
    EXPECT_TRUE(Check(service, response).ok()) << service;
    EXPECT_EQ(response.status(), HealthCheckResponse::SERVING) << service;
  }
  const grpc::Status status = Check("no.Such\n", response);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::NOT_FOUND);
  EXPECT_THAT(status.error_message(), HasSubstr("no service 'no.Such\\n' here"));
  EXPECT_EQ(Watch(*Dial(), "no.Such")->Next(), HealthCheckResponse::SERVICE_UNKNOWN);
}

TEST_F(HealthTest, ADrainSendsNotServingToWatchersAndEndsTheirCalls) {
  const std::unique_ptr<Health::Stub> stub = Dial();
  const std::unique_ptr<Watcher> gone = Watch(*stub);
  EXPECT_EQ(gone->Next(), HealthCheckResponse::SERVING);
  gone->context.TryCancel();
  EXPECT_EQ(gone->reader->Finish().error_code(), grpc::StatusCode::CANCELLED);
  const std::unique_ptr<Watcher> watcher = Watch(*stub);
  EXPECT_EQ(watcher->Next(), HealthCheckResponse::SERVING);
  // Drain() waits for all calls, also for this watch. Drain() returns true because the server ends
  // the watch.
  EXPECT_TRUE(server_->Drain(absl::Seconds(100)));
  EXPECT_EQ(watcher->Next(), HealthCheckResponse::NOT_SERVING);
  EXPECT_EQ(watcher->Next(), HealthCheckResponse::UNKNOWN);
  EXPECT_EQ(watcher->reader->Finish().error_code(), grpc::StatusCode::UNAVAILABLE);
}

TEST_F(HealthTest, CheckAndWatchRequireTheHealthPermission) {
  const std::string token = *AddToken(folder_ / "tokens", "probe", std::nullopt);
  const std::string other = *AddToken(folder_ / "tokens", "trainer", std::nullopt);
  Start(
      "token_file: 'TOKENS' identities { name: 'probe' token_names: 'probe' may { health: true } }"
      " identities { name: 'trainer' token_names: 'trainer' may { read: '*' } }");
  HealthCheckResponse response;
  EXPECT_TRUE(Check("", response, token).ok());
  EXPECT_EQ(Check("", response, other).error_code(), grpc::StatusCode::PERMISSION_DENIED);
  EXPECT_EQ(Check("", response).error_code(), grpc::StatusCode::UNAUTHENTICATED);
  // The answer does not say whether a service exists.
  EXPECT_EQ(Check("no.Such", response).error_code(), grpc::StatusCode::UNAUTHENTICATED);
  const std::unique_ptr<Watcher> watcher = Watch(*Dial());
  EXPECT_EQ(watcher->Next(), HealthCheckResponse::UNKNOWN);
  EXPECT_EQ(watcher->reader->Finish().error_code(), grpc::StatusCode::UNAUTHENTICATED);

  Start("anonymous { health: true }");
  EXPECT_TRUE(Check("", response).ok());
  EXPECT_EQ(Watch(*Dial())->Next(), HealthCheckResponse::SERVING);
}

TEST_F(HealthTest, ConcurrentWatchesAreLimited) {
  // The server also limits the calls of one connection. So the test opens only kOnOne watches on
  // each connection.
  constexpr int kOnOne = 32;
  std::vector<std::unique_ptr<Health::Stub>> stubs;
  std::vector<std::unique_ptr<Watcher>> watchers;
  for (int i = 0; i < kMaxHealthWatches; ++i) {
    if (i % kOnOne == 0) stubs.push_back(Dial());
    watchers.push_back(Watch(*stubs.back()));
    ASSERT_EQ(watchers.back()->Next(), HealthCheckResponse::SERVING) << i;
  }
  const std::unique_ptr<Watcher> more = Watch(*Dial());
  EXPECT_EQ(more->Next(), HealthCheckResponse::UNKNOWN);
  EXPECT_EQ(more->reader->Finish().error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
}

}  // namespace
}  // namespace systole
