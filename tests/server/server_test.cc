#include "server/server.h"

#include <grpc/grpc.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "core/batch/slice_layout.h"
#include "core/cache/value_cache.h"
#include "core/checksum/crc32c.h"
#include "core/concurrency/processors.h"
#include "core/engine/step_engine.h"
#include "core/plan/content_version.h"
#include "gmock/gmock.h"
#include "grpcpp/create_channel.h"
#include "grpcpp/generic/generic_stub.h"
#include "grpcpp/support/channel_arguments.h"
#include "gtest/gtest.h"
#include "proto/framing/chunk.h"
#include "proto/framing/guarded_message.h"
#include "proto/framing/layout_description.h"
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

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Key;
using ::testing::Pair;

// A server with 20 records in two shards. The tests call the server with the generated stub.
class ServerTest : public testing::Test {
 protected:
  void SetUp() override {
    const std::vector<std::string> shards = TestShards({12, 8});
    folder_.Write("a-0.tfrecord", shards[0]);
    folder_.Write("a-1.tfrecord", shards[1]);
    Restart({});
  }

  void Restart(FeedServiceOptions service) {
    stub_ = nullptr;
    server_ = nullptr;
    absl::StatusOr<std::unique_ptr<Server>> server =
        Server::Start(OpenCatalogue(), ListenOn("127.0.0.1:0"), service);
    ASSERT_THAT(server, IsOk());
    server_ = *std::move(server);
    ASSERT_GT(server_->port(), 0);
    channel_ = grpc::CreateChannel(server_->address(), grpc::InsecureChannelCredentials());
    stub_ = v1::Systole::NewStub(channel_);
  }

  Catalogue OpenCatalogue() const {
    absl::StatusOr<Catalogue> catalogue = OpenTestCatalogue(folder_ / "a-*.tfrecord");
    EXPECT_THAT(catalogue, IsOk());
    return *std::move(catalogue);
  }

  static v1::FeedSpec Spec(const std::string& more = "") {
    return SpecFromText(
        absl::StrCat("dataset: 'test' seed: 3 shuffle { mode: GLOBAL } "
                     "global_batch: 4 num_cores: 2 epochs: 2 ",
                     more, AllOutputs()));
  }

  grpc::Status Resolve(const v1::FeedSpec& spec, v1::ResolveFeedResponse& response) {
    grpc::ClientContext context;
    v1::ResolveFeedRequest request;
    *request.mutable_spec() = spec;
    return stub_->ResolveFeed(&context, request, &response);
  }

  using Digests = std::map<std::pair<int64_t, int>, std::string>;

  // The sizes of the chunks of each step and tensor, in the order in which they came.
  using ChunkSizes = std::map<std::pair<int64_t, int>, std::vector<int64_t>>;

  // Reads a stream, checks the checksums of each chunk, and joins the chunks to slices. Adds the
  // digests of the slices to `digests`. Sets `*drained` if a chunk says that the server drains. If
  // `sizes` is not null, adds the sizes of the chunks to it.
  grpc::Status Read(const v1::StreamStepsRequest& request, Digests& digests,
                    bool* drained = nullptr, ChunkSizes* sizes = nullptr) {
    v1::ResolveFeedResponse feed;
    EXPECT_TRUE(Resolve(request.spec(), feed).ok());
    const absl::StatusOr<SliceLayout> layout = LayoutOf(feed);
    EXPECT_THAT(layout, IsOk());
    std::map<std::pair<int64_t, int>, std::vector<uint8_t>> slices;
    grpc::ClientContext context;
    const auto reader = stub_->StreamSteps(&context, request);
    v1::Chunk chunk;
    while (reader->Read(&chunk)) {
      v1::Chunk header = chunk;
      header.clear_data();
      header.clear_header_crc32c();
      EXPECT_TRUE(chunk.has_header_crc32c());
      EXPECT_EQ(chunk.header_crc32c(), Crc32c(header.SerializeAsString()));
      if (chunk.draining()) {
        if (drained != nullptr) *drained = true;
        continue;
      }
      EXPECT_EQ(chunk.crc32c(),
                Crc32c(absl::string_view(chunk.data().data(), chunk.data().size())));
      if (sizes != nullptr) {
        (*sizes)[{chunk.step(), chunk.tensor()}].push_back(
            static_cast<int64_t>(chunk.data().size()));
      }
      std::vector<uint8_t>& slice = slices[{chunk.step(), chunk.core()}];
      slice.resize(static_cast<size_t>(layout->slice_bytes()));
      const SliceTensor& tensor = layout->tensors()[static_cast<size_t>(chunk.tensor())];
      EXPECT_LE(chunk.offset() + static_cast<int64_t>(chunk.data().size()),
                tensor.spec.num_bytes());
      std::copy(chunk.data().begin(), chunk.data().end(),
                slice.begin() + tensor.offset + chunk.offset());
    }
    for (const auto& [place, slice] : slices) digests[place] = SliceDigest(*layout, slice.data());
    return reader->Finish();
  }

  // The digests of the first `count` steps as a local engine makes them.
  static Digests LocalDigests(const v1::FeedSpec& spec, int64_t count) {
    Digests digests;
    const absl::StatusOr<std::shared_ptr<const FeedPlan>> plan =
        FeedPlan::Create(spec, OpenTestDataset(TestShards({12, 8})));
    EXPECT_THAT(plan, IsOk());
    StepEngine engine({.threads = 1});
    const absl::StatusOr<std::unique_ptr<StepStream>> stream =
        engine.Open(*plan, {.count = count, .core_end = spec.num_cores()});
    EXPECT_THAT(stream, IsOk());
    StepStream::Result slice = (*stream)->Next();
    for (; slice.ok() && slice->has_value(); slice = (*stream)->Next()) {
      digests[{(**slice)->step(), (**slice)->core()}] =
          SliceDigest((**slice)->layout(), (**slice)->data());
    }
    EXPECT_THAT(slice, IsOk());
    return digests;
  }

  static v1::StreamStepsRequest Request(const v1::FeedSpec& spec, int64_t first_step,
                                        int64_t count) {
    v1::StreamStepsRequest request;
    *request.mutable_spec() = spec;
    request.set_first_step(first_step);
    request.set_count(count);
    return request;
  }

  TempFolder folder_;
  std::unique_ptr<Server> server_;
  std::shared_ptr<grpc::Channel> channel_;
  std::vector<std::shared_ptr<grpc::Channel>> channels_;
  std::unique_ptr<v1::Systole::Stub> stub_;
};

TEST_F(ServerTest, ListsAndDescribesItsCatalogue) {
  grpc::ClientContext list_context;
  v1::ListDatasetsResponse list;
  ASSERT_TRUE(stub_->ListDatasets(&list_context, {}, &list).ok());
  ASSERT_EQ(list.datasets_size(), 1);
  EXPECT_EQ(list.datasets(0).name(), "test");
  EXPECT_EQ(list.datasets(0).num_records(), 20);
  EXPECT_EQ(list.datasets(0).num_shards(), 2);

  grpc::ClientContext context;
  v1::DescribeDatasetRequest request;
  request.set_dataset("test");
  v1::DescribeDatasetResponse response;
  ASSERT_TRUE(stub_->DescribeDataset(&context, request, &response).ok());
  EXPECT_EQ(response.summary().fingerprint(), list.datasets(0).fingerprint());
  ASSERT_EQ(response.shards_size(), 2);
  EXPECT_EQ(response.shards(1).name(), "a-1.tfrecord");  // Never a path.
  EXPECT_EQ(response.shards(1).num_records(), 8);
  ASSERT_EQ(response.features_size(), 6);
  EXPECT_EQ(response.features(0).name(), "image");
  EXPECT_EQ(response.features(0).kind(), "bytes");
}

TEST_F(ServerTest, ResolveSaysWhatAFeedYields) {
  v1::ResolveFeedResponse response;
  ASSERT_TRUE(Resolve(Spec(), response).ok());
  EXPECT_EQ(response.steps_per_epoch(), 5);
  EXPECT_EQ(response.total_steps(), 10);
  EXPECT_EQ(response.num_records(), 20);
  EXPECT_EQ(response.identity().content_version(), ContentVersion());
  const absl::StatusOr<SliceLayout> layout = LayoutOf(response);
  ASSERT_THAT(layout, IsOk());
  EXPECT_EQ(response.bytes_per_step(), 2 * layout->payload_bytes());
}

TEST_F(ServerTest, ResolveSaysHowBusyTheServerIs) {
  Restart({.max_streams = 3});
  v1::ResolveFeedResponse response;
  ASSERT_TRUE(Resolve(Spec(), response).ok());
  EXPECT_EQ(response.load().busy(), 0);
  EXPECT_EQ(response.load().free_places(), 3);
  grpc::ClientContext context;
  const auto reader = stub_->StreamSteps(&context, Request(Spec(), 0, 100));
  v1::Chunk chunk;
  ASSERT_TRUE(reader->Read(&chunk));
  ASSERT_TRUE(Resolve(Spec(), response).ok());
  EXPECT_GT(response.load().busy(), 0);
  EXPECT_LE(response.load().busy(), 1);
  EXPECT_LE(response.load().free_places(), 3);
  context.TryCancel();
}

TEST_F(ServerTest, StreamedSlicesEqualThoseOfALocalEngine) {
  Digests digests;
  ASSERT_TRUE(Read(Request(Spec(), 0, 100), digests).ok());
  EXPECT_EQ(digests.size(), 20u);
  EXPECT_EQ(digests, LocalDigests(Spec(), 100));
}

TEST_F(ServerTest, CoreRangeAndStrideSelectTheStreamedSlices) {
  Digests whole;
  ASSERT_TRUE(Read(Request(Spec(), 0, 100), whole).ok());
  v1::StreamStepsRequest request = Request(Spec(), 1, 3);
  request.set_stride(2);
  request.set_core_begin(1);
  request.set_core_end(2);
  Digests some;
  ASSERT_TRUE(Read(request, some).ok());
  ASSERT_EQ(some.size(), 3u);
  for (const int64_t step : {1, 3, 5}) {
    EXPECT_EQ((some[{step, 1}]), (whole[{step, 1}])) << step;
  }
}

TEST_F(ServerTest, TensorsLargerThanAChunkArriveInPiecesAndUnchanged) {
  const v1::FeedSpec spec = SpecFromText(
      "dataset: 'test' global_batch: 4 num_cores: 1 epochs: 1 outputs { name: 'big' feature: "
      "'image' dtype: FLOAT32 transforms { decode_jpeg {} } transforms { resize { height: 300 "
      "width: 400 } } }");
  constexpr int64_t kTensorBytes = int64_t{4} * 300 * 400 * 3 * 4;  // 5.5 times kChunkBytes.
  Digests digests;
  ChunkSizes sizes;
  ASSERT_TRUE(Read(Request(spec, 0, 2), digests, /*drained=*/nullptr, &sizes).ok());
  EXPECT_EQ(digests.size(), 2u);
  EXPECT_EQ(digests, LocalDigests(spec, 2));
  for (const int64_t step : {0, 1}) {
    EXPECT_THAT((sizes[{step, 0}]), ElementsAre(kChunkBytes, kChunkBytes, kChunkBytes, kChunkBytes,
                                                kChunkBytes, kTensorBytes - 5 * kChunkBytes));
  }
}

TEST_F(ServerTest, StreamsOfSmallTensorsFinishOnConnectionsWithoutOtherCalls) {
  // Each connection has only one call, the stream. If gRPC kept the stream's first bytes in a
  // buffer, no other call on the connection would flush them, and the stream would hang.
  constexpr int kStreams = 16;
  std::atomic<int> complete = 0;
  std::vector<std::thread> threads;
  for (int i = 0; i < kStreams; ++i) {
    threads.emplace_back([&] {
      grpc::ChannelArguments own_connection;
      own_connection.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
      const auto stub = v1::Systole::NewStub(grpc::CreateCustomChannel(
          server_->address(), grpc::InsecureChannelCredentials(), own_connection));
      grpc::ClientContext context;
      // Because of the deadline, a stream that hangs fails.
      context.set_deadline(std::chrono::system_clock::now() + kLongestWait);
      const auto reader = stub->StreamSteps(&context, Request(Spec(), 0, 10));
      v1::Chunk chunk;
      while (reader->Read(&chunk)) {
      }
      if (reader->Finish().ok() && chunk.step() == 9) ++complete;
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(complete, kStreams);
}

TEST_F(ServerTest, OpenAndRejectedConnectionsAreCounted) {
  stub_ = nullptr;
  server_ = nullptr;
  v1::ServerConfig config = ListenOn("127.0.0.1:0");
  config.set_max_connections(2);
  config.set_max_connections_per_peer(2);
  absl::StatusOr<std::unique_ptr<Server>> server = Server::Start(OpenCatalogue(), config);
  ASSERT_THAT(server, IsOk());
  server_ = *std::move(server);
  const auto ask = [this](int which, v1::ServerStatusResponse& response) {
    grpc::ChannelArguments own_connection;
    own_connection.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    own_connection.SetInt("systole.test.connection", which);
    channels_.push_back(grpc::CreateCustomChannel(
        server_->address(), grpc::InsecureChannelCredentials(), own_connection));
    grpc::ClientContext context;
    return v1::Systole::NewStub(channels_.back())->ServerStatus(&context, {}, &response);
  };
  v1::ServerStatusResponse status;
  ASSERT_TRUE(ask(1, status).ok());
  EXPECT_EQ(MetricOf(status, "open_connections"), 1);
  ASSERT_TRUE(ask(2, status).ok());
  EXPECT_EQ(MetricOf(status, "open_connections"), 2);
  EXPECT_EQ(MetricOf(status, "connections_accepted"), 2);
  EXPECT_EQ(MetricOf(status, "connections_turned_away", "over_total"), 0);
  v1::ServerStatusResponse none;
  EXPECT_FALSE(ask(3, none).ok());
  grpc::ClientContext context;
  ASSERT_TRUE(v1::Systole::NewStub(channels_[0])->ServerStatus(&context, {}, &status).ok());
  EXPECT_EQ(MetricOf(status, "open_connections"), 2);
  EXPECT_GE(MetricOf(status, "connections_turned_away", "over_total"), 1);
}

// A server that drops connections after two hours without a call: idle_timeout and
// handshake_timeout together. The test sets the clock of the server.
class QuietConnectionsTest : public ServerTest {
 protected:
  // The server uses the clock until it ends, so the server must end before the clock.
  void TearDown() override {
    stub_ = nullptr;
    server_ = nullptr;
  }

  // Restarts the server at `address`. Returns false if this machine has no such address.
  bool Listen(const std::string& address) {
    stub_ = nullptr;
    server_ = nullptr;
    v1::ServerConfig config = ListenOn(address);
    config.set_insecure(true);
    config.set_handshake_timeout("1h");
    config.set_idle_timeout("1h");
    FeedServiceOptions service;
    service.clock = [this] { return absl::Seconds(seconds_.load()); };
    service.stalled_stream_timeout = absl::InfiniteDuration();
    absl::StatusOr<std::unique_ptr<Server>> server =
        Server::Start(OpenCatalogue(), config, service);
    if (!server.ok()) return false;
    server_ = *std::move(server);
    return true;
  }
  void PassTwoHours() {
    seconds_ += 7200;
    server_->Tick();
  }

  std::atomic<int64_t> seconds_ = 0;
};

TEST_F(QuietConnectionsTest, AConnectionWhoseRequestNeverEndsIsDropped) {
  ASSERT_TRUE(Listen("127.0.0.1:0"));
  RawHttp2 client(server_->address());
  client.BeginRequest("/systole.v1.Systole/StreamSteps");
  EXPECT_TRUE(client.Settle());
  server_->Tick();
  EXPECT_TRUE(client.Settle());
  PassTwoHours();
  EXPECT_FALSE(client.Settle());
  EXPECT_TRUE(WaitUntil([&] { return server_->connections().open == 0; }));
  server_->Tick();
  EXPECT_EQ(server_->connections().no_call, 1);
}

TEST_F(QuietConnectionsTest, AConnectionWithACallStaysOpenOnEveryAddressFamily) {
  for (const auto& [listen, dial] :
       {std::pair("127.0.0.1:0", "127.0.0.1"), std::pair("[::1]:0", "[::1]"),
        std::pair("[::]:0", "127.0.0.1"), std::pair("[::]:0", "[::1]")}) {
    if (!Listen(listen)) continue;  // There is no IPv6.
    SCOPED_TRACE(absl::StrCat(listen, " from ", dial));
    const auto stub = v1::Systole::NewStub(grpc::CreateChannel(
        absl::StrCat(dial, ":", server_->port()), grpc::InsecureChannelCredentials()));
    // The feed is endless, because the server could send a short feed to its end before the client
    // reads the first chunk.
    v1::FeedSpec endless = Spec();
    endless.set_epochs(0);
    grpc::ClientContext context;
    const auto reader = stub->StreamSteps(&context, Request(endless, 0, int64_t{1} << 40));
    v1::Chunk chunk;
    ASSERT_TRUE(reader->Read(&chunk));
    PassTwoHours();
    while (chunk.step() < 10) ASSERT_TRUE(reader->Read(&chunk));
    EXPECT_EQ(server_->connections().no_call, 0);
    context.TryCancel();
    reader->Finish();
    // The call has ended. From now on the time without a call counts.
    server_->Tick();
    EXPECT_EQ(server_->connections().no_call, 0);
    ASSERT_TRUE(WaitUntil([&] {
      PassTwoHours();
      return server_->connections().no_call == 1;
    }));
  }
}

// ---- Error paths ----

TEST_F(ServerTest, BadSpecsAreRefusedBeforeAnythingIsStreamed) {
  v1::ResolveFeedResponse response;
  v1::FeedSpec spec = Spec();
  spec.set_dataset("nobody");
  const grpc::Status unknown = Resolve(spec, response);
  EXPECT_EQ(unknown.error_code(), grpc::StatusCode::NOT_FOUND);
  EXPECT_THAT(unknown.error_message(), AllOf(HasSubstr("'nobody'"), HasSubstr("'test'")));

  spec = Spec();
  spec.set_num_cores(3);
  const grpc::Status cores = Resolve(spec, response);
  EXPECT_EQ(cores.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_THAT(cores.error_message(), HasSubstr("num_cores is 3"));

  grpc::ClientContext context;
  const auto reader = stub_->StreamSteps(&context, Request(spec, 0, 1));
  v1::Chunk chunk;
  EXPECT_FALSE(reader->Read(&chunk));
  EXPECT_EQ(reader->Finish().error_code(), grpc::StatusCode::INVALID_ARGUMENT);
}

TEST_F(ServerTest, RequestsLargerThanASpecCanBeAreRefused) {
  v1::ResolveFeedResponse response;
  v1::FeedSpec spec = Spec();
  spec.mutable_outputs(0)->set_feature(std::string(60 << 10, 'x'));
  EXPECT_EQ(Resolve(spec, response).error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  spec.mutable_outputs(0)->set_feature(std::string(64 << 10, 'x'));
  EXPECT_EQ(Resolve(spec, response).error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
}

TEST_F(ServerTest, ARequestThatCannotBeParsedIsRefused) {
  grpc::GenericStub generic(channel_);
  grpc::ClientContext context;
  grpc::CompletionQueue queue;
  const grpc::Slice garbage("\xff\xff\xff");
  const grpc::ByteBuffer request(&garbage, 1);
  const auto call =
      generic.PrepareUnaryCall(&context, "/systole.v1.Systole/StreamSteps", request, &queue);
  call->StartCall();
  grpc::ByteBuffer response;
  grpc::Status status;
  call->Finish(&response, &status, nullptr);
  void* tag = nullptr;
  bool ok = false;
  ASSERT_TRUE(queue.Next(&tag, &ok));
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
}

TEST_F(ServerTest, AMismatchWithTheExpectedIdentityIsRefused) {
  v1::ResolveFeedResponse feed;
  ASSERT_TRUE(Resolve(Spec(), feed).ok());
  v1::StreamStepsRequest request = Request(Spec(), 0, 1);
  Digests digests;
  *request.mutable_expected() = feed.identity();
  EXPECT_TRUE(Read(request, digests).ok());

  request.mutable_expected()->set_content_version("systole-0");
  EXPECT_EQ(Read(request, digests).error_code(), grpc::StatusCode::FAILED_PRECONDITION);
  request.mutable_expected()->clear_content_version();  // Empty: any version is accepted.
  EXPECT_TRUE(Read(request, digests).ok());

  *request.mutable_expected() = feed.identity();
  request.mutable_expected()->set_dataset_fingerprint(1);
  EXPECT_EQ(Read(request, digests).error_code(), grpc::StatusCode::FAILED_PRECONDITION);
  *request.mutable_expected() = feed.identity();
  request.mutable_expected()->set_order_fingerprint(1);
  EXPECT_EQ(Read(request, digests).error_code(), grpc::StatusCode::FAILED_PRECONDITION);
}

TEST_F(ServerTest, ASpecThatDiffersFromTheResolvedSpecIsRefused) {
  v1::ResolveFeedResponse feed;
  ASSERT_TRUE(Resolve(Spec(), feed).ok());
  v1::StreamStepsRequest request = Request(Spec(), 0, 1);
  // The name of an output changes the spec's fingerprint, and no other fingerprint.
  request.mutable_spec()->mutable_outputs(0)->set_name("other");
  Digests digests;
  *request.mutable_expected() = feed.identity();
  const grpc::Status refused = Read(request, digests);
  EXPECT_EQ(refused.error_code(), grpc::StatusCode::FAILED_PRECONDITION);
  EXPECT_THAT(refused.error_message(), HasSubstr("the spec is not the one expected"));
  EXPECT_TRUE(digests.empty());
  request.mutable_expected()->clear_spec_fingerprint();  // Empty: any spec is accepted.
  EXPECT_TRUE(Read(request, digests).ok());
  // The order of the outputs does not change the spec's fingerprint.
  *request.mutable_spec() = Spec();
  request.mutable_spec()->mutable_outputs()->SwapElements(0, 1);
  *request.mutable_expected() = feed.identity();
  EXPECT_TRUE(Read(request, digests).ok());
}

TEST_F(ServerTest, CompactTensorsAreSentOnlyToClientsThatRequestThem) {
  const v1::FeedSpec spec = SpecFromText(
      "dataset: 'test' global_batch: 4 num_cores: 2 epochs: 1 outputs { name: 'x' feature: 'raw' "
      "shape: [2, 2, 3] dtype: FLOAT32 transforms { decode_raw {} } transforms { normalize { mean: "
      "[1, 2, 3] } } }");
  v1::ResolveFeedResponse finished;
  ASSERT_TRUE(Resolve(spec, finished).ok());
  EXPECT_FALSE(finished.tensors(1).has_compact());
  grpc::ClientContext context;
  v1::ResolveFeedRequest question;
  *question.mutable_spec() = spec;
  question.set_compact(true);
  v1::ResolveFeedResponse compact;
  ASSERT_TRUE(stub_->ResolveFeed(&context, question, &compact).ok());
  EXPECT_THAT(compact.tensors(1).compact().bias(), ElementsAre(-1, -2, -3));
  EXPECT_EQ(compact.tensors(1).compact().channel_axis(), 3);
  EXPECT_FALSE(compact.tensors(0).has_compact());
  // The two answers differ only in `compact`.
  compact.mutable_tensors(1)->clear_compact();
  EXPECT_EQ(compact.SerializeAsString(), finished.SerializeAsString());

  v1::StreamStepsRequest request = Request(spec, 0, 1);
  *request.mutable_expected() = finished.identity();
  for (const bool compactly : {false, true, false}) {
    request.set_compact(compactly);
    grpc::ClientContext stream;
    const auto reader = stub_->StreamSteps(&stream, request);
    std::vector<size_t> sizes;
    for (v1::Chunk chunk; reader->Read(&chunk);) sizes.push_back(chunk.data().size());
    EXPECT_TRUE(reader->Finish().ok());
    const size_t pixels = 2 * 12;
    EXPECT_THAT(
        sizes, ElementsAre(2, compactly ? pixels : 4 * pixels, 2, compactly ? pixels : 4 * pixels));
  }
  request.set_compact(true);
  request.set_slot_session(std::string(16, 's'));
  Digests digests;
  const grpc::Status both = Read(request, digests);
  EXPECT_EQ(both.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_THAT(both.error_message(), HasSubstr("compact and a slot_session; leave one out"));
}

TEST_F(ServerTest, ARequestWithAWrongChecksumIsAborted) {
  const std::string good = MessageChecksum(Request(Spec(), 0, 1).SerializeAsString());
  for (const auto& [checksum, code] :
       {std::pair(good, grpc::StatusCode::OK),
        std::pair(MessageChecksum("another"), grpc::StatusCode::ABORTED)}) {
    grpc::ClientContext context;
    context.AddMetadata(kMessageChecksumKey, checksum);
    const auto reader = stub_->StreamSteps(&context, Request(Spec(), 0, 1));
    v1::Chunk chunk;
    while (reader->Read(&chunk)) {
    }
    const grpc::Status status = reader->Finish();
    EXPECT_EQ(status.error_code(), code);
    EXPECT_EQ(status.error_message().find("damaged on the way") != std::string::npos, !status.ok());
  }
  grpc::ClientContext context;
  context.AddMetadata(kMessageChecksumKey, "00000000");
  v1::ResolveFeedRequest request;
  *request.mutable_spec() = Spec();
  v1::ResolveFeedResponse response;
  EXPECT_EQ(stub_->ResolveFeed(&context, request, &response).error_code(),
            grpc::StatusCode::ABORTED);
}

TEST_F(ServerTest, TheAnswerToResolveFeedCarriesItsChecksum) {
  grpc::ClientContext context;
  v1::ResolveFeedRequest request;
  *request.mutable_spec() = Spec();
  v1::ResolveFeedResponse response;
  ASSERT_TRUE(stub_->ResolveFeed(&context, request, &response).ok());
  // The matcher keeps a view of this string.
  const std::string checksum = MessageChecksum(response.SerializeAsString());
  EXPECT_THAT(context.GetServerInitialMetadata(),
              testing::Contains(Pair(kMessageChecksumKey, grpc::string_ref(checksum))));
}

TEST_F(ServerTest, AShardReplacedWhileServedEndsTheFeedAndIsNamed) {
  folder_.Write("b", TestShards({30})[0]);
  std::filesystem::rename(folder_ / "b", folder_ / "a-1.tfrecord");
  Digests digests;
  const grpc::Status status = Read(Request(Spec("on_corrupt: MASK"), 0, 100), digests);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::FAILED_PRECONDITION);
  EXPECT_THAT(status.error_message(), HasSubstr("a-1.tfrecord"));
}

TEST_F(ServerTest, StatusTellsTheProcessorTimeSpentSoFar) {
  const auto status = [this] {
    grpc::ClientContext context;
    v1::ServerStatusResponse answer;
    EXPECT_TRUE(stub_->ServerStatus(&context, {}, &answer).ok());
    return answer;
  };
  const v1::ServerStatusResponse before = status();
  const double spent = MetricOf(before, "cpu_seconds");
  EXPECT_GT(spent, 0);  // Starting this process took some time.
  EXPECT_EQ(MetricOf(before, "cpus"), UsableProcessors());
  Digests digests;
  double after = spent;
  for (int i = 0; i < 1000 && after == spent; ++i) {
    ASSERT_TRUE(Read(Request(Spec(), 0, 100), digests).ok());
    after = MetricOf(status(), "cpu_seconds");
  }
  EXPECT_GT(after, spent);
}

TEST_F(ServerTest, CachedImagesAreDecodedOnceAndADiskCacheSurvivesARestart) {
  const v1::FeedSpec plain = Spec();
  v1::FeedSpec kept = plain;
  for (v1::Output& output : *kept.mutable_outputs()) {
    if (output.name() == "image") output.set_cache(v1::DISK);
  }
  Digests wanted;
  ASSERT_TRUE(Read(Request(plain, 0, 100), wanted).ok());
  const auto restart = [this] {
    server_ = nullptr;  // Only one server can use the folder.
    absl::StatusOr<std::unique_ptr<ValueCache>> cache =
        ValueCache::Create({.disk_folder = folder_ / "kept", .disk_bytes = 1 << 20});
    ASSERT_THAT(cache, IsOk());
    Restart({.cache = *std::move(cache)});
  };
  const auto metric = [this](absl::string_view name, absl::string_view store = "") {
    grpc::ClientContext context;
    v1::ServerStatusResponse answer;
    EXPECT_TRUE(stub_->ServerStatus(&context, {}, &answer).ok());
    return MetricOf(answer, name, store);
  };
  restart();
  Digests digests;
  ASSERT_TRUE(Read(Request(kept, 0, 5), digests).ok());  // The first of two epochs.
  EXPECT_EQ(metric("cache_misses"), 20);
  EXPECT_EQ(metric("cache_hits", "disk"), 0);
  ASSERT_TRUE(Read(Request(kept, 5, 5), digests).ok());
  EXPECT_EQ(metric("cache_misses"), 20);
  EXPECT_EQ(metric("cache_hits", "disk"), 20);
  EXPECT_EQ(digests, wanted);
  restart();
  Digests again;
  ASSERT_TRUE(Read(Request(kept, 0, 100), again).ok());
  EXPECT_EQ(metric("cache_misses"), 0);
  EXPECT_EQ(metric("cache_hits", "disk"), 40);
  EXPECT_EQ(again, wanted);
}

TEST_F(ServerTest, TwoClientsOfOneFeedGetTheSameStepsAndShareSlices) {
  v1::FeedSpec endless = Spec();
  endless.set_epochs(0);
  Digests alone;
  ASSERT_TRUE(Read(Request(endless, 0, 50), alone).ok());
  Restart({});
  // The first client reads one chunk and then stops. Its connection has a window of 64 KiB that
  // does not grow. So the first stream stands still before step 50, and keeps slices that were made
  // ahead. The second stream takes these slices when it reaches them. If the second stream
  // overtakes the first stream before the first stands still, the first stream takes slices of the
  // second stream. In both cases the two streams share slices.
  grpc::ChannelArguments small_window;
  small_window.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  small_window.SetInt(GRPC_ARG_HTTP2_BDP_PROBE, 0);
  const auto first_stub = v1::Systole::NewStub(grpc::CreateCustomChannel(
      server_->address(), grpc::InsecureChannelCredentials(), small_window));
  grpc::ClientContext paused;
  const auto first = first_stub->StreamSteps(&paused, Request(endless, 0, int64_t{1} << 40));
  v1::Chunk chunk;
  ASSERT_TRUE(first->Read(&chunk));
  Digests second;
  ASSERT_TRUE(Read(Request(endless, 0, 50), second).ok());
  EXPECT_EQ(second, alone);
  EXPECT_TRUE(WaitUntil([this] {
    v1::ServerStatusResponse status;
    grpc::ClientContext context;
    EXPECT_TRUE(stub_->ServerStatus(&context, {}, &status).ok());
    return MetricOf(status, "slices_shared") > 0;
  }));
  paused.TryCancel();
}

TEST_F(ServerTest, MaskedRecordsAreCountedAndListed) {
  std::string shard = TestShards({12, 8})[1];
  folder_.Write("a-1.tfrecord", WithFlippedBit(shard, shard.size() * 4));
  Restart({});
  Digests digests;
  ASSERT_TRUE(Read(Request(Spec("on_corrupt: MASK"), 0, 100), digests).ok());
  EXPECT_EQ(digests.size(), 20u);
  grpc::ClientContext context;
  v1::ServerStatusResponse status;
  ASSERT_TRUE(stub_->ServerStatus(&context, {}, &status).ok());
  EXPECT_EQ(MetricOf(status, "steps_served"), 10);
  EXPECT_EQ(MetricOf(status, "examples_made"), 40);
  EXPECT_GT(MetricOf(status, "payload_bytes"), 0);
  EXPECT_GE(MetricOf(status, "threads"), 1);
  EXPECT_EQ(MetricOf(status, "threads_stuck"), 0);
  EXPECT_EQ(MetricOf(status, "reads_timed_out"), 0);
  ASSERT_EQ(status.datasets_size(), 1);
  EXPECT_EQ(status.datasets(0).masked_examples(), 2);
  ASSERT_EQ(status.datasets(0).damaged_records_size(), 1);
  EXPECT_EQ(status.datasets(0).damaged_records(0).shard(), "a-1.tfrecord");
  EXPECT_GE(status.datasets(0).damaged_records(0).record(), 12);

  const grpc::Status fail = Read(Request(Spec(), 0, 100), digests);
  EXPECT_EQ(fail.error_code(), grpc::StatusCode::DATA_LOSS);
  EXPECT_THAT(fail.error_message(), AllOf(HasSubstr("a-1.tfrecord"), HasSubstr("offset")));
}

TEST_F(ServerTest, StreamsOverTheLimitAreRefused) {
  Restart({.max_streams = 0});
  Digests digests;
  const grpc::Status status = Read(Request(Spec(), 0, 1), digests);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_THAT(status.error_message(), HasSubstr("0 streams"));
}

TEST_F(ServerTest, ConcurrentRequestsDoNotExceedTheStreamLimit) {
  constexpr int kMaxStreams = 3;
  constexpr int kAsked = 24;
  Restart({.max_streams = kMaxStreams});
  // Each stream asks for a different feed, and the plan of each feed takes a while to make. So
  // the server opens many streams at the same time.
  std::vector<std::unique_ptr<grpc::ClientContext>> contexts;
  std::vector<v1::StreamStepsRequest> requests;
  for (int i = 0; i < kAsked; ++i) {
    v1::FeedSpec endless = Spec();
    endless.set_epochs(0);
    endless.set_seed(i);
    contexts.push_back(std::make_unique<grpc::ClientContext>());
    requests.push_back(Request(endless, 0, int64_t{1} << 40));
  }
  // Each stream has its own connection, so that several threads of the server accept them.
  std::vector<std::unique_ptr<v1::Systole::Stub>> stubs;
  for (int i = 0; i < kAsked; ++i) {
    grpc::ChannelArguments own_connection;
    own_connection.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    stubs.push_back(v1::Systole::NewStub(grpc::CreateCustomChannel(
        server_->address(), grpc::InsecureChannelCredentials(), own_connection)));
  }
  std::atomic<int> begun = 0;
  std::vector<std::unique_ptr<grpc::ClientReader<v1::Chunk>>> readers(kAsked);
  std::vector<std::thread> threads;
  for (int i = 0; i < kAsked; ++i) {
    threads.emplace_back([&, i] {
      readers[i] = stubs[i]->StreamSteps(contexts[i].get(), requests[i]);
      v1::Chunk chunk;
      if (readers[i]->Read(&chunk)) ++begun;  // The stream stays open.
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(begun, kMaxStreams);
  for (const auto& context : contexts) context->TryCancel();
  for (const auto& reader : readers) reader->Finish();
}

TEST_F(ServerTest, ARefusedRequestFreesItsStreamPlace) {
  Restart({.max_streams = 1});
  v1::FeedSpec unknown = Spec();
  unknown.set_dataset("nobody");
  for (int i = 0; i < 3; ++i) {
    grpc::ClientContext context;
    EXPECT_EQ(stub_->StreamSteps(&context, Request(unknown, 0, 1))->Finish().error_code(),
              grpc::StatusCode::NOT_FOUND);
  }
  Digests digests;
  EXPECT_TRUE(Read(Request(Spec(), 0, 1), digests).ok());
}

TEST_F(ServerTest, TheLargestNumbersARequestCanHoldAreServedOrRefused) {
  constexpr int64_t kMax = std::numeric_limits<int64_t>::max();
  v1::FeedSpec endless = Spec();
  endless.set_epochs(0);
  v1::StreamStepsRequest request = Request(endless, kMax - 1, kMax);
  request.set_stride(kMax);
  Digests digests;
  EXPECT_TRUE(Read(request, digests).ok());
  EXPECT_THAT(digests, ElementsAre(Key(Pair(kMax - 1, 0)), Key(Pair(kMax - 1, 1))));

  digests.clear();
  EXPECT_TRUE(Read(Request(endless, kMax, kMax), digests).ok());
  EXPECT_TRUE(digests.empty());

  constexpr int32_t kMin32 = std::numeric_limits<int32_t>::min();
  constexpr int32_t kMax32 = std::numeric_limits<int32_t>::max();
  for (const auto& [begin, end] : {std::pair(kMin32, kMax32), {0, kMax32}, {kMax32, kMin32}}) {
    request.set_core_begin(begin);
    request.set_core_end(end);
    EXPECT_EQ(Read(request, digests).error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  }
  request = Request(endless, 0, 1);
  request.set_stride(-kMax);
  EXPECT_EQ(Read(request, digests).error_code(), grpc::StatusCode::INVALID_ARGUMENT);
}

TEST_F(ServerTest, CancelledStreamsLeaveNoActiveStreamAndNoMemoryInUse) {
  v1::FeedSpec endless = Spec();
  endless.set_epochs(0);
  for (int i = 0; i < 20; ++i) {
    grpc::ClientContext context;
    const auto reader = stub_->StreamSteps(&context, Request(endless, i, int64_t{1} << 40));
    v1::Chunk chunk;
    for (int chunks = 0; chunks < i; ++chunks) ASSERT_TRUE(reader->Read(&chunk));
    context.TryCancel();
    reader->Finish();
  }
  // The server notices a moment later that the clients have gone.
  EXPECT_TRUE(WaitUntil([&] {
    grpc::ClientContext context;
    v1::ServerStatusResponse response;
    EXPECT_TRUE(stub_->ServerStatus(&context, v1::ServerStatusRequest(), &response).ok());
    return MetricOf(response, "active_streams") == 0 &&
           MetricOf(response, "memory_used_bytes") == 0;
  }));
}

// ---- Drain ----

TEST_F(ServerTest, DrainEndsAStreamBetweenTwoStepsWithANotice) {
  v1::FeedSpec spec = Spec();
  spec.set_epochs(0);
  grpc::ClientContext context;
  const auto reader = stub_->StreamSteps(&context, Request(spec, 0, int64_t{1} << 40));
  v1::Chunk chunk;
  ASSERT_TRUE(reader->Read(&chunk));
  bool drained = false;
  std::thread drain([&] { drained = server_->Drain(absl::FromChrono(kLongestWait)); });
  int64_t last_step = chunk.step();
  int last_core = chunk.core();
  while (reader->Read(&chunk)) {
    if (chunk.draining()) break;
    last_step = chunk.step();
    last_core = chunk.core();
  }
  EXPECT_TRUE(chunk.draining());
  EXPECT_EQ(chunk.step(), last_step + 1);
  EXPECT_EQ(last_core, 1);
  EXPECT_TRUE(reader->Finish().ok());
  drain.join();
  EXPECT_TRUE(drained);
}

TEST_F(ServerTest, AClientThatStoppedReadingDoesNotHoldTheDrain) {
  v1::FeedSpec spec = SpecFromText(
      "dataset: 'test' global_batch: 16 num_cores: 1 outputs { name: 'big' feature: 'image' dtype: "
      "FLOAT32 transforms { decode_jpeg {} } transforms { resize { height: 300 width: 400 } } }");
  grpc::ClientContext context;
  const auto reader = stub_->StreamSteps(&context, Request(spec, 0, int64_t{1} << 40));
  v1::Chunk chunk;
  ASSERT_TRUE(reader->Read(&chunk));        // The client stops reading here.
  server_->Drain(absl::Milliseconds(300));  // Must return. The result does not matter.
  // Without TryCancel(), the server's destructor could wait until the kernel gives up the
  // connection.
  context.TryCancel();
}

// ---- Addresses ----

TEST_F(ServerTest, AddressesBeyondLoopbackNeedInsecure) {
  for (const std::string listen :
       {"0.0.0.0:0", "[::]:0", "192.0.2.1:80", "example.com:80", "127.example.com:80"}) {
    EXPECT_THAT(Server::Start(OpenCatalogue(), ListenOn(listen)),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("--insecure")));
  }
  v1::ServerConfig config = ListenOn("0.0.0.0:0");
  config.set_insecure(true);
  EXPECT_THAT(Server::Start(OpenCatalogue(), config), IsOk());
}

TEST_F(ServerTest, InvalidListenAddressesAreRefused) {
  for (const std::string listen :
       {"", "127.0.0.1", "127.0.0.1:", ":80", "127.0.0.1:http", "127.0.0.1:65536"}) {
    EXPECT_THAT(Server::Start(OpenCatalogue(), ListenOn(listen)),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("want HOST:PORT")));
  }
}

TEST_F(ServerTest, ATakenPortIsUnavailable) {
  EXPECT_THAT(Server::Start(OpenCatalogue(), ListenOn(server_->address())),
              StatusIs(absl::StatusCode::kUnavailable, HasSubstr("another process listens there")));
}

TEST_F(ServerTest, ServesOnAUnixSocket) {
  const std::string address = "unix:" + (folder_ / "socket");
  absl::StatusOr<std::unique_ptr<Server>> server =
      Server::Start(OpenCatalogue(), ListenOn(address));
  ASSERT_THAT(server, IsOk());
  EXPECT_EQ((*server)->address(), address);
  EXPECT_EQ((*server)->port(), 0);
  stub_ = v1::Systole::NewStub(grpc::CreateChannel(address, grpc::InsecureChannelCredentials()));
  Digests digests;
  EXPECT_TRUE(Read(Request(Spec(), 0, 2), digests).ok());
  EXPECT_EQ(digests.size(), 4u);
  stub_ = nullptr;
}

TEST_F(ServerTest, EndingTheServerLeavesGrpcInitialized) {
  Digests digests;
  EXPECT_TRUE(Read(Request(Spec(), 0, 2), digests).ok());
  EXPECT_TRUE(server_->Drain(absl::FromChrono(kLongestWait)));
  stub_ = nullptr;
  channel_ = nullptr;
  server_ = nullptr;
  // No object of gRPC is left now. But the server leaves gRPC initialized, because grpc_shutdown()
  // would wait for gRPC's threads.
  EXPECT_NE(grpc_is_initialized(), 0);
}

// ---- Catalogue ----

TEST_F(ServerTest, BadCataloguesAreRefused) {
  const auto open = [](const std::string& text) {
    v1::ServerConfig config;
    EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &config));
    return Catalogue::Open(config, {}).status();
  };
  const std::string shards = absl::StrCat("shards: '", folder_ / "a-*.tfrecord", "'");
  EXPECT_THAT(open(""), StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("no dataset")));
  EXPECT_THAT(open(absl::StrCat("datasets { name: 'a/b' ", shards, "}")),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("'a/b'")));
  EXPECT_THAT(
      open(absl::StrCat("datasets { name: 'a' ", shards, "} datasets { name: 'a' ", shards, "}")),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("named twice")));
}

}  // namespace
}  // namespace systole
