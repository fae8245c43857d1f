// Tests with real connections: which caller may do what, how callers share the streams that a
// server may have at a time, and for which reasons the server ends a stream early.
#include <unistd.h>

#include <atomic>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "core/access_token/token_file.h"
#include "gmock/gmock.h"
#include "grpcpp/create_channel.h"
#include "gtest/gtest.h"
#include "server/access/access_control.h"
#include "server/server.h"
#include "systole/v1/service.grpc.pb.h"
#include "tests/core/dataset/test_dataset.h"
#include "tests/core/storage/temp_folder.h"
#include "tests/raw_http2.h"
#include "tests/server/listen_on.h"
#include "tests/server/rpc/test_catalogue.h"
#include "tests/status_matchers.h"
#include "tests/status_metrics.h"
#include "tests/wait_until.h"

namespace systole {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

// A server with the datasets `cats` and `dogs`.
class AccessTest : public testing::Test {
 protected:
  void SetUp() override {
    folder_.Write("a.tfrecord", TestShards({12})[0]);
    tokens_ = folder_ / "tokens";
    token_ = *AddToken(tokens_, "a", std::nullopt);
  }

  // Starts a server. `access` is the text of the config's block `access`; "" means no block. TOKENS
  // in this text stands for the path of the token file.
  void Start(const std::string& access, FeedServiceOptions options = {},
             const std::string& listen = "127.0.0.1:0") {
    absl::StatusOr<std::shared_ptr<AccessControl>> access_control =
        TestAccess(access, tokens_, {"cats", "dogs"});
    ASSERT_THAT(access_control, IsOk());
    options.access = *std::move(access_control);
    options.clock = [this] { return absl::Seconds(seconds_.load()); };
    events_ = std::make_unique<EventLog>([this](LogLevel, const std::string& line) {
      MutexLock lock(mu_);
      absl::StrAppend(&log_, line, "\n");
    });
    options.events = events_.get();
    absl::StatusOr<Catalogue> catalogue =
        OpenTestCatalogue(folder_ / "a.tfrecord", {"cats", "dogs"});
    ASSERT_THAT(catalogue, IsOk());
    absl::StatusOr<std::unique_ptr<Server>> server =
        Server::Start(*std::move(catalogue), ListenOn(listen), options);
    ASSERT_THAT(server, IsOk());
    server_ = *std::move(server);
    stub_ = v1::Systole::NewStub(
        grpc::CreateChannel(server_->address(), grpc::InsecureChannelCredentials()));
  }

  // Starts a server on which `a` may read cats.
  void StartForA() {
    Start("token_file: 'TOKENS' identities { name: 'a' token_names: 'a' may { read: 'cats' } }");
  }

  std::string Log() {
    MutexLock lock(mu_);
    return log_;
  }

  static void Authorize(grpc::ClientContext& context, const std::string& token) {
    if (!token.empty()) context.AddMetadata("authorization", absl::StrCat("Bearer ", token));
  }

  static v1::StreamStepsRequest Endless(const std::string& dataset) {
    v1::StreamStepsRequest request;
    *request.mutable_spec() = SpecFromText(absl::StrCat(
        "dataset: '", dataset,
        "' global_batch: 8 num_cores: 1 outputs { name: 'big' feature: 'image' dtype: FLOAT32 "
        "transforms { decode_jpeg {} } transforms { resize { height: 300 width: 400 } } }"));
    request.set_count(int64_t{1} << 40);
    return request;
  }

  struct Reader {
    grpc::ClientContext context;
    std::unique_ptr<grpc::ClientReader<v1::Chunk>> reader;

    bool ReadOne() {
      v1::Chunk chunk;
      return reader->Read(&chunk);
    }
    // Reads until the stream ends.
    grpc::Status End() {
      while (ReadOne()) {
      }
      return reader->Finish();
    }
    ~Reader() { context.TryCancel(); }
  };

  std::unique_ptr<Reader> Open(const std::string& dataset, const std::string& token) {
    auto reader = std::make_unique<Reader>();
    Authorize(reader->context, token);
    reader->reader = stub_->StreamSteps(&reader->context, Endless(dataset));
    return reader;
  }

  grpc::Status Resolve(const v1::FeedSpec& spec, const std::string& token) {
    grpc::ClientContext context;
    Authorize(context, token);
    v1::ResolveFeedRequest request;
    *request.mutable_spec() = spec;
    v1::ResolveFeedResponse response;
    return stub_->ResolveFeed(&context, request, &response);
  }

  grpc::Status Describe(const std::string& dataset, const std::string& token) {
    grpc::ClientContext context;
    Authorize(context, token);
    v1::DescribeDatasetRequest request;
    request.set_dataset(dataset);
    v1::DescribeDatasetResponse response;
    return stub_->DescribeDataset(&context, request, &response);
  }

  grpc::Status List(const std::string& token, std::vector<std::string>& names) {
    grpc::ClientContext context;
    Authorize(context, token);
    v1::ListDatasetsResponse response;
    const grpc::Status status = stub_->ListDatasets(&context, {}, &response);
    for (const v1::DatasetSummary& dataset : response.datasets()) names.push_back(dataset.name());
    return status;
  }

  grpc::Status Status(const std::string& token) {
    grpc::ClientContext context;
    Authorize(context, token);
    return stub_->ServerStatus(&context, {}, &counted_);
  }

  TempFolder folder_;
  std::string tokens_;
  std::string token_;
  std::atomic<int64_t> seconds_ = 0;  // The time on the server's clock.
  Mutex mu_;
  std::string log_ ABSL_GUARDED_BY(mu_);
  std::unique_ptr<EventLog> events_;
  std::unique_ptr<Server> server_;
  std::unique_ptr<v1::Systole::Stub> stub_;
  v1::ServerStatusResponse counted_;  // Status() fills it.
};

TEST_F(AccessTest, WithoutAnAccessBlockEverybodyMayDoEverything) {
  Start("");
  std::vector<std::string> names;
  EXPECT_TRUE(List("", names).ok());
  EXPECT_THAT(names, ElementsAre("cats", "dogs"));
  EXPECT_TRUE(Status("not looked at").ok());
  EXPECT_TRUE(Open("dogs", "")->ReadOne());
}

TEST_F(AccessTest, CallsWithoutAValidCredentialAreUnauthenticated) {
  StartForA();
  const v1::FeedSpec spec = Endless("cats").spec();
  for (const std::string token : {"", "wrong"}) {
    std::vector<std::string> names;
    EXPECT_EQ(List(token, names).error_code(), grpc::StatusCode::UNAUTHENTICATED);
    EXPECT_TRUE(names.empty());
    EXPECT_EQ(Resolve(spec, token).error_code(), grpc::StatusCode::UNAUTHENTICATED);
    EXPECT_EQ(Open("cats", token)->End().error_code(), grpc::StatusCode::UNAUTHENTICATED);
    EXPECT_EQ(Status(token).error_code(), grpc::StatusCode::UNAUTHENTICATED);
    // The error for a dataset that exists must equal the error for a dataset that does not exist.
    EXPECT_EQ(Describe("cats", token).error_message(), Describe("none", token).error_message());
  }
  EXPECT_THAT(Resolve(spec, "").error_message(), HasSubstr("Bearer TOKEN"));
  grpc::ClientContext context;
  context.AddMetadata("authorization", "Basic abc");
  v1::ListDatasetsResponse response;
  EXPECT_EQ(stub_->ListDatasets(&context, {}, &response).error_code(),
            grpc::StatusCode::UNAUTHENTICATED);
  EXPECT_THAT(Log(), HasSubstr("UNAUTHENTICATED"));
  EXPECT_THAT(Log(), Not(HasSubstr("wrong")));  // No token is in the log.
}

TEST_F(AccessTest, ADatasetThatTheCallerMayNotReadLooksMissing) {
  StartForA();
  std::vector<std::string> names;
  EXPECT_TRUE(List(token_, names).ok());
  EXPECT_THAT(names, ElementsAre("cats"));
  EXPECT_TRUE(Resolve(Endless("cats").spec(), token_).ok());
  EXPECT_TRUE(Open("cats", token_)->ReadOne());
  // The errors for `dogs` and `none` differ only in the dataset's name.
  const std::string none = Resolve(Endless("none").spec(), token_).error_message();
  const grpc::Status dogs = Resolve(Endless("dogs").spec(), token_);
  EXPECT_EQ(dogs.error_code(), grpc::StatusCode::NOT_FOUND);
  EXPECT_EQ(dogs.error_message(), "no dataset 'dogs'; this server has 'cats'");
  EXPECT_EQ(none, "no dataset 'none'; this server has 'cats'");
  EXPECT_EQ(Open("dogs", token_)->End().error_message(), dogs.error_message());
  EXPECT_EQ(Describe("dogs", token_).error_message(), dogs.error_message());
  EXPECT_EQ(Status(token_).error_code(), grpc::StatusCode::PERMISSION_DENIED);
  EXPECT_THAT(Log(), HasSubstr("'dogs'"));
  EXPECT_THAT(Log(), HasSubstr("identity 'a'"));
}

// The caller may not read `dogs`, so no error may suggest this name. The test asks for similar
// names, in every way in which a spec can name datasets.
TEST_F(AccessTest, NoRefusalNamesADatasetThatTheCallerMayNotRead) {
  StartForA();
  const auto ask_for = [&](const std::string& datasets, const std::string& rest) {
    v1::StreamStepsRequest request = Endless("");
    request.mutable_spec()->MergeFrom(SpecFromText(absl::StrCat(datasets, " ", rest)));
    for (const std::string& token : {token_, std::string()}) {
      const grpc::Status resolved = Resolve(request.spec(), token);
      EXPECT_FALSE(resolved.ok()) << datasets << rest;
      EXPECT_THAT(resolved.error_message(), Not(HasSubstr("dogs"))) << datasets << rest;
      Reader reader;
      Authorize(reader.context, token);
      reader.reader = stub_->StreamSteps(&reader.context, request);
      const grpc::Status streamed = reader.End();
      EXPECT_FALSE(streamed.ok()) << datasets << rest;
      EXPECT_THAT(streamed.error_message(), Not(HasSubstr("dogs"))) << datasets << rest;
    }
  };
  const std::string misspelt = "select { where { feature: 'lable' present: false } }";
  for (const std::string& rest : {std::string(), misspelt}) {
    for (const char* const name : {"dog", "dogz", "Dogs", "", "nothing"}) {
      ask_for(absl::StrCat("dataset: '", name, "'"), rest);
      for (const char* const way : {"mixture", "concatenation", "zip"}) {
        ask_for(absl::StrCat(way, " { dataset: 'cats' } ", way, " { dataset: '", name, "' }"),
                rest);
        ask_for(absl::StrCat(way, " { dataset: '", name, "' } ", way, " { dataset: 'cats' }"),
                rest);
        ask_for(absl::StrCat("dataset: 'cats' ", way, " { dataset: '", name, "' }"), rest);
      }
    }
    // The caller may read these datasets, but these specs cannot be served.
    ask_for("zip { dataset: 'cats' } zip { dataset: 'cats' }", rest);
    ask_for("dataset: 'cats' outputs { name: 'o' feature: 'dog' }", rest);
    ask_for("dataset: 'cats' mixture { dataset: 'cats' }", rest);
  }
  ask_for("dataset: 'cats'", misspelt);
}

// A new config may remove a dataset after the server has permitted a request for the dataset, and
// before it has answered the request.
TEST_F(AccessTest, TheErrorForAJustRemovedDatasetNamesNoOtherDataset) {
  StartForA();
  server_->Change({"cats"}, Catalogue());
  const std::string where = "select { where { feature: 'label' present: true } }";
  for (const std::string& select : {std::string(), where}) {
    v1::FeedSpec spec = Endless("cats").spec();
    spec.MergeFrom(SpecFromText(select));
    const grpc::Status resolved = Resolve(spec, token_);
    EXPECT_EQ(resolved.error_code(), grpc::StatusCode::NOT_FOUND);
    EXPECT_EQ(resolved.error_message(), "no dataset 'cats'; this server has none for this caller");
  }
  EXPECT_EQ(Open("cats", token_)->End().error_message(),
            "no dataset 'cats'; this server has none for this caller");
}

TEST_F(AccessTest, AMixtureNeedsReadAccessToAllItsMembers) {
  StartForA();
  v1::FeedSpec spec = Endless("").spec();
  const auto add = [&](const std::string& name) {
    v1::Member& member = *spec.add_mixture();
    member.set_dataset(name);
    member.set_weight(1);
  };
  add("cats");
  EXPECT_NE(Resolve(spec, token_).error_code(), grpc::StatusCode::NOT_FOUND);
  add("dogs");
  EXPECT_EQ(Resolve(spec, token_).error_code(), grpc::StatusCode::NOT_FOUND);
}

TEST_F(AccessTest, AZipNeedsReadAccessToAllItsMembers) {
  StartForA();
  const auto zipped = [&](const std::string& other) {
    v1::FeedSpec spec = Endless("").spec();
    spec.add_zip()->set_dataset("cats");
    v1::Member& member = *spec.add_zip();
    member.set_dataset(other);
    member.set_prefix("other/");
    return Resolve(spec, token_);
  };
  EXPECT_NE(zipped("cats").error_code(), grpc::StatusCode::NOT_FOUND);
  const grpc::Status dogs = zipped("dogs");
  EXPECT_EQ(dogs.error_code(), grpc::StatusCode::NOT_FOUND);
  EXPECT_EQ(dogs.error_message(), "no dataset 'dogs'; this server has 'cats'");
  EXPECT_EQ(zipped("none").error_message(), "no dataset 'none'; this server has 'cats'");
}

TEST_F(AccessTest, ARevokedTokenEndsItsStreamEvenIfTheClientDoesNotRead) {
  StartForA();
  const std::string second = *AddToken(tokens_, "a", std::nullopt);
  server_->Tick();
  const std::unique_ptr<Reader> ended = Open("cats", token_);
  const std::unique_ptr<Reader> stays = Open("cats", second);
  ASSERT_TRUE(ended->ReadOne());  // The client stops reading here.
  ASSERT_TRUE(stays->ReadOne());
  server_->Tick();
  EXPECT_TRUE(stays->ReadOne());

  folder_.Write("tokens", TokenLine({.name = "a", .hash = HashOfToken(second)}));
  server_->Tick();
  // The server ends the stream although the client does not read.
  EXPECT_TRUE(WaitUntil([&] { return Log().find("ended") != std::string::npos; }));
  EXPECT_THAT(Log(), HasSubstr("this server does not know the token"));
  const grpc::Status status = ended->End();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::UNAUTHENTICATED) << status.error_message();
  EXPECT_TRUE(stays->ReadOne());
}

TEST_F(AccessTest, AStreamWhoseClientDoesNotReadIsEndedAndFreesItsPlace) {
  Start("", {.max_streams = 1, .stalled_stream_timeout = absl::Seconds(120)});
  const std::unique_ptr<Reader> stalled = Open("cats", "");
  ASSERT_TRUE(stalled->ReadOne());  // The client stops reading here.
  // The server ends the stream when gRPC has taken nothing from it for 120 s of the server's clock.
  // The test moves this clock forward until the stream has ended.
  EXPECT_TRUE(WaitUntil([&] {
    seconds_ += 119;
    server_->Tick();
    seconds_ += 2;
    server_->Tick();
    return Log().find("ended") != std::string::npos;
  }));
  EXPECT_THAT(Log(), HasSubstr("taken nothing for 2m"));
  EXPECT_TRUE(Open("dogs", "")->ReadOne());
  const grpc::Status status = stalled->End();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::UNAVAILABLE) << status.error_message();
}

TEST_F(AccessTest, OnAUnixSocketTheUserIdIdentifiesTheCaller) {
  const auto access_of = [](uid_t user) {
    return absl::StrCat("identities { name: 'me' unix_users: '", user, "' may { read: 'cats' } }");
  };
  const std::string socket = "unix:" + folder_ / "s";
  Start(access_of(getuid()), {}, socket);
  EXPECT_TRUE(Open("cats", "")->ReadOne());
  EXPECT_EQ(Open("dogs", "")->End().error_code(), grpc::StatusCode::NOT_FOUND);
  EXPECT_THAT(Log(), HasSubstr("identity 'me'"));
  // An invalid token is refused although the user is known.
  EXPECT_EQ(Open("cats", "no-token")->End().error_code(), grpc::StatusCode::UNAUTHENTICATED);

  server_.reset();
  Start(access_of(getuid() + 1), {}, socket);
  EXPECT_EQ(Open("cats", "")->End().error_code(), grpc::StatusCode::UNAUTHENTICATED);
  server_.reset();
  Start(access_of(getuid()));
  EXPECT_EQ(Open("cats", "")->End().error_code(), grpc::StatusCode::UNAUTHENTICATED);
}

TEST_F(AccessTest, AStreamBeyondMaxStreamsIsRefusedWithARetryDelay) {
  Start("", {.max_streams = 1});
  const std::unique_ptr<Reader> first = Open("cats", "");
  ASSERT_TRUE(first->ReadOne());
  const std::unique_ptr<Reader> second = Open("cats", "");
  EXPECT_EQ(second->End().error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  const auto& metadata = second->context.GetServerTrailingMetadata();
  const auto pushback = metadata.find("grpc-retry-pushback-ms");
  ASSERT_NE(pushback, metadata.end());
  EXPECT_EQ(std::string(pushback->second.data(), pushback->second.size()), "1000");
}

TEST_F(AccessTest, AnIdentityWithAllStreamsLosesItsNewestToAnotherIdentity) {
  Start(
      "token_file: 'TOKENS' identities { name: 'a' token_names: 'a' may { read: 'cats' } } "
      "anonymous { read: 'cats' }",
      {.max_streams = 2});
  const std::unique_ptr<Reader> oldest = Open("cats", token_);
  ASSERT_TRUE(oldest->ReadOne());
  const std::unique_ptr<Reader> newest = Open("cats", token_);
  ASSERT_TRUE(newest->ReadOne());
  // A request that cannot be served must not end another stream.
  EXPECT_EQ(Open("dogs", "")->End().error_code(), grpc::StatusCode::UNAUTHENTICATED);
  EXPECT_TRUE(newest->ReadOne());
  const std::unique_ptr<Reader> other = Open("cats", "");
  EXPECT_TRUE(other->ReadOne());
  EXPECT_EQ(newest->End().error_code(), grpc::StatusCode::UNAVAILABLE);
  EXPECT_TRUE(oldest->ReadOne());
  EXPECT_EQ(Open("cats", token_)->End().error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_TRUE(other->ReadOne());
}

TEST_F(AccessTest, RefusalsAreCountedByTheirCause) {
  Start(
      "token_file: 'TOKENS' identities { name: 'a' token_names: 'a' may { read: 'cats' } } "
      "anonymous { status: true }",
      {.max_streams = 1});
  const v1::FeedSpec cats = Endless("cats").spec();
  EXPECT_FALSE(Resolve(cats, "").ok());
  EXPECT_FALSE(Resolve(cats, "wrong").ok());
  EXPECT_FALSE(Open("cats", "")->End().ok());
  EXPECT_FALSE(Resolve(Endless("dogs").spec(), token_).ok());
  EXPECT_FALSE(Describe("dogs", token_).ok());
  EXPECT_FALSE(Status(token_).ok());
  v1::FeedSpec bad = cats;
  bad.set_num_cores(3);
  EXPECT_FALSE(Resolve(bad, token_).ok());
  const std::unique_ptr<Reader> only = Open("cats", token_);
  ASSERT_TRUE(only->ReadOne());
  EXPECT_FALSE(Open("cats", token_)->End().ok());
  EXPECT_FALSE(Open("cats", token_)->End().ok());

  ASSERT_TRUE(Status("").ok());
  const auto refused = [this](absl::string_view reason) {
    return MetricOf(counted_, "requests_refused", reason);
  };
  EXPECT_EQ(refused("unauthenticated"), 3);
  EXPECT_EQ(refused("not_permitted"), 3);
  EXPECT_EQ(refused("bad_request"), 1);
  EXPECT_EQ(refused("no_place"), 2);
  EXPECT_EQ(refused("draining"), 0);
  EXPECT_EQ(refused("other"), 0);
  EXPECT_EQ(MetricOf(counted_, "streams_opened"), 1);
}

// The server closes a connection that sends many more bytes than it has earned by served calls and
// by time (server/README.md). In this test the server's clock stands still, so time earns nothing.
TEST_F(AccessTest, AConnectionWithTooManyRefusedCallsIsClosed) {
  StartForA();
  const v1::FeedSpec spec = Endless("cats").spec();
  // A call with a valid credential is served, and earns more bytes than it sends. So any number of
  // these calls may come on one connection.
  for (int i = 0; i < 300; ++i) ASSERT_TRUE(Resolve(spec, token_).ok());
  EXPECT_EQ(server_->connections().sent_too_much, 0);
  for (int i = 0; i < 300 && server_->connections().sent_too_much == 0; ++i) {
    EXPECT_FALSE(Resolve(spec, "wrong").ok());
  }
  EXPECT_TRUE(WaitUntil([&] { return server_->connections().sent_too_much == 1; }));
  // A client with a valid token is served on a new connection.
  EXPECT_TRUE(WaitUntil([&] { return Resolve(spec, token_).ok(); }));
}

TEST_F(AccessTest, AConnectionWithTooManyCallsOfUnknownMethodsIsClosed) {
  StartForA();
  RawHttp2 client(server_->address());
  bool is_there = true;
  for (int i = 0; i < 1000 && is_there; ++i) {
    client.Request("/no/method", {});
    is_there = client.Settle();
  }
  EXPECT_FALSE(is_there);
  EXPECT_TRUE(WaitUntil([&] { return server_->connections().sent_too_much == 1; }));
}

TEST_F(AccessTest, EndsOfStreamsAreCountedByTheirCause) {
  Start(
      "token_file: 'TOKENS' identities { name: 'a' token_names: 'a' may { read: 'cats' } } "
      "anonymous { read: 'cats' status: true }",
      {.max_streams = 2, .stalled_stream_timeout = absl::Seconds(120)});
  const auto ends = [this](absl::string_view reason) {
    EXPECT_TRUE(Status("").ok());
    return MetricOf(counted_, "stream_ends", reason);
  };
  {
    Reader whole;
    v1::StreamStepsRequest request = Endless("cats");
    request.set_count(1);
    whole.reader = stub_->StreamSteps(&whole.context, request);
    EXPECT_TRUE(whole.End().ok());
  }
  EXPECT_TRUE(WaitUntil([&] { return ends("complete") == 1; }));
  { ASSERT_TRUE(Open("cats", "")->ReadOne()); }  // The call is cancelled.
  EXPECT_TRUE(WaitUntil(
      [&] { return ends("client_gone") == 1 && MetricOf(counted_, "active_streams") == 0; }));

  const std::unique_ptr<Reader> first = Open("cats", "");
  ASSERT_TRUE(first->ReadOne());
  const std::unique_ptr<Reader> second = Open("cats", "");
  ASSERT_TRUE(second->ReadOne());
  const std::unique_ptr<Reader> other = Open("cats", token_);
  ASSERT_TRUE(other->ReadOne());
  EXPECT_TRUE(WaitUntil([&] { return ends("gave_place") == 1; }));

  folder_.Write("tokens", TokenLine({.name = "a", .hash = HashOfToken("another")}));
  server_->Tick();
  EXPECT_TRUE(WaitUntil([&] { return ends("not_permitted") == 1; }));

  EXPECT_TRUE(WaitUntil([&] {
    seconds_ += 121;
    server_->Tick();
    return ends("stalled") == 1;
  }));
  EXPECT_EQ(ends("failed"), 0);
  EXPECT_EQ(MetricOf(counted_, "streams_opened"), 5);
}

}  // namespace
}  // namespace systole
