// The admin port of a real server: its pages show what the server does, whatever clients send.
#include <cstdint>
#include <memory>
#include <regex>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "grpcpp/create_channel.h"
#include "grpcpp/generic/generic_stub.h"
#include "grpcpp/support/byte_buffer.h"
#include "gtest/gtest.h"
#include "server/metrics/server_metrics.h"
#include "server/server.h"
#include "systole/v1/service.grpc.pb.h"
#include "tests/core/dataset/test_dataset.h"
#include "tests/core/metrics/exposition_parser.h"
#include "tests/core/storage/temp_folder.h"
#include "tests/server/admin/http_client.h"
#include "tests/server/listen_on.h"
#include "tests/server/rpc/test_catalogue.h"
#include "tests/status_matchers.h"
#include "tests/wait_until.h"

namespace systole {
namespace {

class AdminTest : public testing::Test {
 protected:
  void SetUp() override {
    folder_.Write("a.tfrecord", TestShards({12})[0]);
    config_ = ListenOn("127.0.0.1:0");
    config_.set_admin("127.0.0.1:0");
    absl::StatusOr<std::unique_ptr<AdminPort>> admin =
        Server::OpenAdmin(config_, /*access=*/nullptr, /*events=*/nullptr);
    ASSERT_THAT(admin, IsOk());
    admin_ = *std::move(admin);
    port_ = admin_->port();
  }
  void Serve() {
    absl::StatusOr<Catalogue> catalogue = OpenTestCatalogue(folder_ / "a.tfrecord");
    ASSERT_THAT(catalogue, IsOk());
    absl::StatusOr<std::unique_ptr<Server>> server =
        Server::Start(*std::move(catalogue), config_, {}, std::move(admin_));
    ASSERT_THAT(server, IsOk());
    server_ = *std::move(server);
    channel_ = grpc::CreateChannel(server_->address(), grpc::InsecureChannelCredentials());
    stub_ = v1::Systole::NewStub(channel_);
  }
  TestHttpAnswer Get(const std::string& path) const { return HttpGet(port_, path); }
  Exposition Scrape() const {
    const absl::StatusOr<Exposition> metrics = ParseExposition(Get("/metrics").body);
    EXPECT_THAT(metrics, IsOk());
    return metrics.value_or(Exposition());
  }
  // gRPC may count a call a moment after the client has got the answer.
  void ExpectSeries(const std::string& series, double value) const {
    EXPECT_TRUE(WaitUntil([&] {
      const Exposition metrics = Scrape();
      const auto found = metrics.series.find(series);
      return found != metrics.series.end() && found->second == value;
    })) << series;
  }
  grpc::StatusCode Call(const std::string& method) {
    grpc::GenericStub stub(channel_);
    grpc::ClientContext context;
    grpc::CompletionQueue queue;
    const auto call = stub.PrepareUnaryCall(&context, method, grpc::ByteBuffer(), &queue);
    call->StartCall();
    grpc::ByteBuffer reply;
    grpc::Status status;
    call->Finish(&reply, &status, this);
    void* tag = nullptr;
    bool ok = false;
    queue.Next(&tag, &ok);
    return status.error_code();
  }
  grpc::Status Describe(const std::string& dataset, const std::string& token) {
    grpc::ClientContext context;
    if (!token.empty()) context.AddMetadata("authorization", token);
    v1::DescribeDatasetRequest request;
    request.set_dataset(dataset);
    v1::DescribeDatasetResponse response;
    return stub_->DescribeDataset(&context, request, &response);
  }

  const TempFolder folder_;
  v1::ServerConfig config_;
  std::unique_ptr<AdminPort> admin_;
  int port_ = 0;
  std::unique_ptr<Server> server_;
  std::shared_ptr<grpc::Channel> channel_;
  std::unique_ptr<v1::Systole::Stub> stub_;
};

TEST_F(AdminTest, ProbesAreAnsweredBeforeTheServerServesAndWhileItDrains) {
  EXPECT_EQ(Get("/livez").status, 200);
  EXPECT_EQ(Get("/readyz").status, 503);
  Serve();
  EXPECT_EQ(Get("/readyz").status, 200);
  EXPECT_TRUE(server_->Drain(absl::FromChrono(kLongestWait)));
  EXPECT_EQ(Get("/livez").status, 200);
  EXPECT_EQ(Get("/readyz").status, 503);
  ExpectSeries("systole_server_draining", 1);
}

TEST_F(AdminTest, EveryMetricOfTheTableIsExposed) {
  Serve();
  const Exposition metrics = Scrape();
  const ServiceCounters counters;
  for (const MetricFamily& family :
       FamiliesOf(kServerMetricPrefix, ReadServerMetrics({.service = counters}))) {
    EXPECT_EQ(metrics.types.count(family.name), 1u) << family.name;
  }
  EXPECT_EQ(metrics.series.at("systole_server_dataset_records{dataset=\"test\"}"), 12);
  EXPECT_EQ(metrics.series.at("systole_server_stream_places{state=\"free\"}"), 256);
  EXPECT_EQ(metrics.series.at("systole_server_datasets{state=\"served\"}"), 1);
  EXPECT_EQ(metrics.types.count("systole_server_build_info"), 1u);
}

TEST_F(AdminTest, CallsAreCountedByMethodAndStatus) {
  Serve();
  grpc::ClientContext context;
  v1::ListDatasetsResponse list;
  ASSERT_TRUE(stub_->ListDatasets(&context, {}, &list).ok());
  EXPECT_FALSE(Describe("none", "").ok());
  EXPECT_EQ(Call("/no.Such/Method"), grpc::StatusCode::UNIMPLEMENTED);
  ExpectSeries("grpc_server_call_started_total{grpc_method=\"systole.v1.Systole/ListDatasets\"}",
               1);
  ExpectSeries(
      "grpc_server_call_duration_seconds_count{grpc_method=\"systole.v1.Systole/ListDatasets\","
      "grpc_status=\"OK\"}",
      1);
  ExpectSeries(absl::StrCat("grpc_server_call_sent_total_compressed_message_size_bytes_sum{"
                            "grpc_method=\"systole.v1.Systole/ListDatasets\",grpc_status=\"OK\"}"),
               static_cast<double>(list.ByteSizeLong()));
  ExpectSeries(
      "grpc_server_call_duration_seconds_count{grpc_method=\"systole.v1.Systole/DescribeDataset\","
      "grpc_status=\"NOT_FOUND\"}",
      1);
  ExpectSeries(
      "grpc_server_call_duration_seconds_count{grpc_method=\"other\","
      "grpc_status=\"UNIMPLEMENTED\"}",
      1);
}

// The test does not compare the codes of the label grpc_status. Which codes occur varies from run
// to run: when the listener drops a connection whose calls are all refused, the calls that are
// still open end with other codes.
TEST_F(AdminTest, ClientInputCreatesNoNewMetricSeries) {
  Serve();
  const auto send = [this](int i) {
    EXPECT_NE(Call(absl::StrCat("/odd.Service", i, "/Method", i)), grpc::StatusCode::OK);
    EXPECT_NE(Call(absl::StrCat("/systole.v1.Systole/Method", i)), grpc::StatusCode::OK);
    EXPECT_FALSE(Describe(absl::StrCat("dataset\"{", i, "}\n"), "").ok());
    EXPECT_FALSE(Describe("none", absl::StrCat("Bearer identity-", i)).ok());
    EXPECT_EQ(Get(absl::StrCat("/page-", i, "?x=", i)).status, 404);
  };
  const auto series = [this] {
    static const std::regex code("grpc_status=\"[A-Z_]+\"");
    std::set<std::string> names;
    for (const std::string& name : Scrape().names()) {
      names.insert(std::regex_replace(name, code, "grpc_status"));
    }
    return names;
  };
  Get("/metrics");
  send(0);
  // A call may be counted a moment after its client has got the answer.
  ASSERT_TRUE(WaitUntil([&] {
    const std::set<std::string> names = series();
    const std::string count = "grpc_server_call_duration_seconds_count";
    return names.contains(count + "{grpc_method=\"other\",grpc_status}") &&
           names.contains(count +
                          "{grpc_method=\"systole.v1.Systole/DescribeDataset\",grpc_status}");
  }));
  const std::set<std::string> before = series();
  for (int i = 1; i <= 200; ++i) send(i);
  EXPECT_EQ(series(), before);
  const Exposition metrics = Scrape();
  EXPECT_GT(metrics.series.at("grpc_server_call_started_total{grpc_method=\"other\"}"), 2);
}

TEST_F(AdminTest, TheConfigInForceIsShownWithoutItsSecrets) {
  EXPECT_EQ(Get("/configz").body.find("datasets"), std::string::npos);
  Serve();
  config_.add_datasets()->add_shards("https://host.example/a.tfrecord?X-Amz-Signature=SECRET");
  server_->ShowConfig(config_);
  const std::string shown = Get("/configz").body;
  EXPECT_NE(shown.find("shards: \"https://host.example/a.tfrecord\"\n"), std::string::npos);
  EXPECT_EQ(shown.find("SECRET"), std::string::npos);
}

TEST_F(AdminTest, TheStatusPageSaysWhyItShowsNoPictures) {
  Serve();
  EXPECT_NE(Get("/statusz").body.find("There are no pictures now"), std::string::npos);
  const auto page = [this](const v1::ServerConfig& config) -> std::string {
    absl::StatusOr<std::unique_ptr<AdminPort>> admin =
        Server::OpenAdmin(config, /*access=*/nullptr, /*events=*/nullptr);
    EXPECT_THAT(admin, IsOk());
    const int port = (*admin)->port();
    absl::StatusOr<Catalogue> catalogue = OpenTestCatalogue(folder_ / "a.tfrecord");
    EXPECT_THAT(catalogue, IsOk());
    const absl::StatusOr<std::unique_ptr<Server>> server =
        Server::Start(*std::move(catalogue), config, {}, *std::move(admin));
    EXPECT_THAT(server, IsOk());
    return HttpGet(port, "/statusz").body;
  };
  v1::ServerConfig config = config_;
  config.set_listen(absl::StrCat("unix:", folder_ / "socket"));
  EXPECT_NE(page(config).find("the mode of the Unix socket"), std::string::npos);
  config = config_;
  config.set_admin_pictures(false);
  EXPECT_NE(page(config).find("(--no-admin-pictures)"), std::string::npos);
  // The datasets are served on 127.0.0.1 alone, and the page on all addresses.
  config = config_;
  config.set_admin("0.0.0.0:0");
  config.set_insecure(true);
  EXPECT_NE(
      page(config).find("this port may be reachable from hosts that cannot reach the datasets"),
      std::string::npos);
  config.set_listen("0.0.0.0:0");
  EXPECT_NE(page(config).find("There are no pictures now"), std::string::npos);
}

TEST_F(AdminTest, WithoutAnAdminAddressThereIsNoAdminPort) {
  const absl::StatusOr<std::unique_ptr<AdminPort>> admin =
      Server::OpenAdmin(ListenOn("127.0.0.1:0"), nullptr, nullptr);
  ASSERT_THAT(admin, IsOk());
  EXPECT_EQ(*admin, nullptr);
}

}  // namespace
}  // namespace systole
