#include "server/config_reload.h"

#include <atomic>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "core/textproto/message_text.h"
#include "gmock/gmock.h"
#include "grpcpp/create_channel.h"
#include "gtest/gtest.h"
#include "server/config/config_flags.h"
#include "systole/v1/service.grpc.pb.h"
#include "tests/core/dataset/test_dataset.h"
#include "tests/core/http/stub_http_server.h"
#include "tests/core/storage/temp_folder.h"
#include "tests/server/rpc/test_catalogue.h"
#include "tests/status_matchers.h"
#include "tests/status_metrics.h"
#include "tests/wait_until.h"

namespace systole {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr char kCats[] = "datasets { name: 'cats' shards: 'DIR/a.tfrecord' } ";
constexpr char kDogs[] = "datasets { name: 'dogs' shards: 'DIR/b.tfrecord' } ";

class ConfigReloadTest : public testing::Test {
 protected:
  void SetUp() override {
    folder_.Write("a.tfrecord", TestShards({12})[0]);
    folder_.Write("b.tfrecord", TestShards({5, 7})[1]);
  }

  // DIR in `text` stands for the path of the test's folder.
  v1::ServerConfig ConfigOf(const std::string& text) {
    v1::ServerConfig config;
    EXPECT_THAT(
        ParseTextproto(absl::StrReplaceAll(text, {{"DIR", folder_.path()}}), "config", config),
        IsOk());
    absl::StatusOr<v1::ServerConfig> complete = CompleteConfig(std::move(config));
    EXPECT_THAT(complete, IsOk());
    return *std::move(complete);
  }

  void Start(const std::string& text) {
    v1::ServerConfig config = ConfigOf(absl::StrCat("listen: '127.0.0.1:0' ", text));
    absl::StatusOr<Catalogue> catalogue = Catalogue::Open(config, {});
    ASSERT_THAT(catalogue, IsOk());
    FeedServiceOptions service;
    std::shared_ptr<AccessControl> access;
    if (config.has_access()) {
      absl::StatusOr<std::shared_ptr<AccessControl>> made =
          AccessControl::Create(config.access(), {"cats"});
      ASSERT_THAT(made, IsOk());
      access = *made;
    }
    service.access = access;
    service.events = &events_;
    absl::StatusOr<std::unique_ptr<Server>> server =
        Server::Start(*std::move(catalogue), config, service);
    ASSERT_THAT(server, IsOk());
    server_ = *std::move(server);
    reload_ = std::make_unique<ConfigReload>(config, ShardOptions(), *server_, access, events_);
    stub_ = v1::Systole::NewStub(
        grpc::CreateChannel(server_->address(), grpc::InsecureChannelCredentials()));
  }

  void Begin(const std::string& text) {
    reload_->Begin(ConfigOf(absl::StrCat("listen: '127.0.0.1:0' ", text)));
  }
  // Calls Tick() until the log has `text`.
  testing::AssertionResult TickUntil(const std::string& text) {
    return WaitUntil([&] {
      reload_->Tick();
      return absl::StrContains(Log(), text);
    });
  }

  std::vector<std::string> Served() {
    grpc::ClientContext context;
    v1::ListDatasetsResponse response;
    EXPECT_TRUE(stub_->ListDatasets(&context, {}, &response).ok());
    std::vector<std::string> names;
    for (const v1::DatasetSummary& dataset : response.datasets()) {
      names.push_back(absl::StrCat(dataset.name(), " ", dataset.num_records()));
    }
    return names;
  }
  grpc::Status Resolve(const std::string& dataset) {
    grpc::ClientContext context;
    v1::ResolveFeedRequest request;
    *request.mutable_spec() = Spec(dataset);
    v1::ResolveFeedResponse response;
    return stub_->ResolveFeed(&context, request, &response);
  }
  static v1::FeedSpec Spec(const std::string& dataset) {
    return SpecFromText(absl::StrCat("dataset: '", dataset,
                                     "' global_batch: 4 num_cores: 1 "
                                     "outputs { name: 'label' feature: 'label' }"));
  }
  std::unique_ptr<grpc::ClientReader<v1::Chunk>> Stream(grpc::ClientContext& context,
                                                        const std::string& dataset) {
    v1::StreamStepsRequest request;
    *request.mutable_spec() = Spec(dataset);
    request.set_count(int64_t{1} << 40);
    return stub_->StreamSteps(&context, request);
  }
  static grpc::Status EndOf(grpc::ClientReader<v1::Chunk>& stream) {
    v1::Chunk chunk;
    while (stream.Read(&chunk)) {
    }
    return stream.Finish();
  }

  std::string Log() {
    MutexLock lock(mu_);
    return log_;
  }

  const TempFolder folder_;
  Mutex mu_;
  std::string log_ ABSL_GUARDED_BY(mu_);
  EventLog events_{[this](LogLevel, const std::string& line) {
    MutexLock lock(mu_);
    absl::StrAppend(&log_, line, "\n");
  }};
  std::unique_ptr<Server> server_;
  std::unique_ptr<v1::Systole::Stub> stub_;
  std::unique_ptr<ConfigReload> reload_;
};

TEST_F(ConfigReloadTest, AddedDatasetsAreServedAndRemovedOnesEndTheirStreams) {
  Start(kCats);
  grpc::ClientContext context;
  const auto stream = Stream(context, "cats");
  v1::Chunk chunk;
  ASSERT_TRUE(stream->Read(&chunk));
  Begin(kDogs);
  ASSERT_TRUE(TickUntil("the new config is in force"));
  EXPECT_THAT(Served(), ElementsAre("dogs 7"));
  EXPECT_THAT(Log(), AllOf(HasSubstr("dataset 'dogs': 7 records in 1 shards"),
                           HasSubstr("dataset 'cats' was removed; its streams end")));
  EXPECT_EQ(Resolve("cats").error_code(), grpc::StatusCode::NOT_FOUND);
  EXPECT_TRUE(Resolve("dogs").ok());
  server_->Tick();
  const grpc::Status end = EndOf(*stream);
  EXPECT_EQ(end.error_code(), grpc::StatusCode::NOT_FOUND);
  EXPECT_THAT(end.error_message(), HasSubstr("the dataset 'cats' was removed from this server"));
}

TEST_F(ConfigReloadTest, StreamsOfADatasetThatStaysGoOn) {
  Start(kCats);
  grpc::ClientContext context;
  const auto stream = Stream(context, "cats");
  Begin(absl::StrCat(kDogs, kCats));
  ASSERT_TRUE(TickUntil("the new config is in force"));
  server_->Tick();
  v1::Chunk chunk;
  for (int i = 0; i < 1'000; ++i) ASSERT_TRUE(stream->Read(&chunk)) << i;
  context.TryCancel();
  EXPECT_THAT(Served(), ElementsAre("cats 12", "dogs 7"));
}

TEST_F(ConfigReloadTest, ChangedShardsOfADatasetAreIgnoredAndLoggedAtEachReload) {
  Start(kCats);
  for (int time = 1; time <= 2; ++time) {
    Begin("threads: 3 datasets { name: 'cats' shards: 'DIR/b.tfrecord' }");
    ASSERT_TRUE(WaitUntil([&] {
      reload_->Tick();
      size_t told = 0;
      const std::string log = Log();
      for (size_t at = 0;
           (at = log.find("dataset 'cats' differs in the new config", at)) != std::string::npos;
           ++at) {
        ++told;
      }
      return told == static_cast<size_t>(time);
    }));
  }
  EXPECT_THAT(Served(), ElementsAre("cats 12"));
  EXPECT_THAT(Log(),
              HasSubstr("also differs in threads, which a running server cannot change: restart"));
}

TEST_F(ConfigReloadTest, ARemovedDatasetCanBeAddedAgainWithDifferentShards) {
  Start(absl::StrCat(kCats, kDogs));
  EXPECT_TRUE(Resolve("cats").ok());  // The server keeps this feed.
  Begin(kDogs);
  ASSERT_TRUE(TickUntil("the server serves 1 dataset"));
  Begin(absl::StrCat(kDogs, "datasets { name: 'cats' shards: 'DIR/b.tfrecord' }"));
  ASSERT_TRUE(TickUntil("the server serves 2 datasets"));
  EXPECT_THAT(Served(), ElementsAre("cats 7", "dogs 7"));
  grpc::ClientContext context;
  v1::ResolveFeedRequest request;
  *request.mutable_spec() = Spec("cats");
  v1::ResolveFeedResponse response;
  EXPECT_TRUE(stub_->ResolveFeed(&context, request, &response).ok());
  EXPECT_EQ(response.num_records(), 7);
}

TEST_F(ConfigReloadTest, AConfigWithNothingToServeOrDuplicateNamesChangesNothing) {
  Start(kCats);
  Begin("");
  EXPECT_THAT(Log(), HasSubstr("the new config is refused: no dataset to serve"));
  Begin(absl::StrCat(kDogs, kDogs));
  EXPECT_THAT(Log(), HasSubstr("dataset 'dogs' is named twice"));
  // Every dataset of the new config is refused, so the server would have no dataset left.
  Begin("datasets { name: 'none' shards: 'DIR/none*' }");
  ASSERT_TRUE(TickUntil("dataset 'none' cannot be served"));
  EXPECT_THAT(Served(), ElementsAre("cats 12"));
}

TEST_F(ConfigReloadTest, AReloadRetriesADatasetThatWasRefusedAtStart) {
  const std::string late = "datasets { name: 'late' shards: 'DIR/late.tfrecord' } ";
  Start(absl::StrCat(kCats, late));
  EXPECT_THAT(Served(), ElementsAre("cats 12"));
  folder_.Write("late.tfrecord", TestShards({3})[0]);
  Begin(absl::StrCat(kCats, late));
  ASSERT_TRUE(TickUntil("the server serves 2 datasets"));
  EXPECT_THAT(Served(), ElementsAre("cats 12", "late 3"));
}

TEST_F(ConfigReloadTest, OfConfigsQueuedDuringAReloadOnlyTheLastIsApplied) {
  Start(kCats);
  Begin(absl::StrCat(kCats, kDogs));
  Begin("datasets { name: 'never' shards: 'DIR/a.tfrecord' }");
  Begin(kDogs);
  ASSERT_TRUE(TickUntil("the server serves 2 datasets"));
  ASSERT_TRUE(TickUntil("the server serves 1 dataset"));
  EXPECT_THAT(Served(), ElementsAre("dogs 7"));
  EXPECT_THAT(Log(), Not(HasSubstr("'never'")));
}

TEST_F(ConfigReloadTest, AReloadChangesPermissionsUnlessTheyNameUnknownDatasets) {
  Start(absl::StrCat(kCats, "access { anonymous { read: 'cats' } }"));
  EXPECT_TRUE(Resolve("cats").ok());
  Begin(absl::StrCat(kCats, kDogs, "access { anonymous { read: 'mice' } }"));
  ASSERT_TRUE(TickUntil("'mice'"));
  EXPECT_TRUE(Resolve("cats").ok());
  EXPECT_EQ(Resolve("dogs").error_code(), grpc::StatusCode::UNAUTHENTICATED);
  Begin(absl::StrCat(kCats, kDogs, "access { anonymous { read: 'dogs' } }"));
  ASSERT_TRUE(TickUntil("the new config is in force"));
  EXPECT_TRUE(Resolve("dogs").ok());
  EXPECT_EQ(Resolve("cats").error_code(), grpc::StatusCode::UNAUTHENTICATED);
}

TEST_F(ConfigReloadTest, StoppingAReloadDoesNotWaitForHangingStorage) {
  StubHttpServer silent([](const StubRequest&) { return StubAnswer{.hangs = true}; });
  Start(kCats);
  EXPECT_TRUE(reload_->Stop(absl::ZeroDuration()));  // No dataset is being opened now.
  Begin(
      absl::StrCat(kCats, "datasets { name: 'far' shards: '", silent.Url("/far.tfrecord"), "' }"));
  ASSERT_TRUE(WaitUntil([&] { return !silent.requests().empty(); }));
  reload_->Tick();
  EXPECT_THAT(Served(), ElementsAre("cats 12"));  // Still served.
  EXPECT_TRUE(reload_->Stop(absl::FromChrono(kLongestWait)));
}

}  // namespace
}  // namespace systole
