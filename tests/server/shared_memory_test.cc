// Tests shared memory with a real server and real clients on one machine. A slot is the memory of
// one slice that the server lends to a client. Batches that come through slots have the same bytes
// as batches that are sent. Nothing that a client does with its slots harms other clients.
#include <sys/resource.h>

#include <atomic>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "client/feed/feed_client.h"
#include "core/batch/slice_layout.h"
#include "core/engine/slice_budget.h"
#include "core/memory/sealed_memory.h"
#include "gmock/gmock.h"
#include "grpc/grpc.h"
#include "grpcpp/create_channel.h"
#include "gtest/gtest.h"
#include "proto/slots/not_shared.h"
#include "proto/slots/slot_messages.h"
#include "proto/slots/slot_socket.h"
#include "server/server.h"
#include "systole/v1/service.grpc.pb.h"
#include "tests/core/dataset/test_dataset.h"
#include "tests/core/memory/old_kernel.h"
#include "tests/core/storage/temp_folder.h"
#include "tests/server/listen_on.h"
#include "tests/server/rpc/test_catalogue.h"
#include "tests/status_matchers.h"
#include "tests/status_metrics.h"
#include "tests/wait_until.h"

namespace systole {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

constexpr int kCores = 2;

// How many slices of Spec() a client may hold: as many as fit into 16 MiB.
constexpr int64_t kWindowSlices = (int64_t{16} << 20) / (2 * 200 * 220 * 3 * 4 + 64);

class SharedMemoryTest : public testing::Test {
 protected:
  // Keeps gRPC alive until the end. Otherwise gRPC would shut itself down between two tests, and a
  // shutdown can take ten seconds.
  static void SetUpTestSuite() { grpc_init(); }

  void SetUp() override {
    folder_.Write("a-0.tfrecord", TestShards({20})[0]);
    Restart({});
  }

  void Restart(FeedServiceOptions service, bool shared_memory = true) {
    server_ = nullptr;
    v1::ServerConfig config = ListenOn(address());
    config.set_shared_memory(shared_memory);
    service.events = &events_;
    absl::StatusOr<Catalogue> catalogue = OpenTestCatalogue(folder_ / "a-*.tfrecord");
    ASSERT_THAT(catalogue, IsOk());
    absl::StatusOr<std::unique_ptr<Server>> server =
        Server::Start(*std::move(catalogue), config, service);
    ASSERT_THAT(server, IsOk());
    server_ = *std::move(server);
    stub_ =
        v1::Systole::NewStub(grpc::CreateChannel(address(), grpc::InsecureChannelCredentials()));
  }

  std::string address() const { return "unix:" + (folder_ / "socket"); }

  // A core's slice has two images of 200 x 220 x 3 floats, and `valid`: in all about 1 MiB.
  static v1::FeedSpec Spec() {
    return SpecFromText(
        "dataset: 'test' seed: 3 shuffle { mode: GLOBAL } global_batch: 4 num_cores: 2 "
        "outputs { name: 'big' feature: 'image' dtype: FLOAT32 transforms { decode_jpeg {} } "
        "transforms { resize { height: 200 width: 220 } } }");
  }

  std::unique_ptr<FeedClient> Client(bool share_memory, int64_t steps,
                                     const v1::FeedSpec& spec = Spec()) const {
    absl::StatusOr<std::unique_ptr<FeedClient>> client = FeedClient::Create(
        spec, {.servers = {address()}, .share_memory = share_memory, .steps = steps});
    EXPECT_THAT(client, IsOk());
    return client.ok() ? *std::move(client) : nullptr;
  }

  using Digests = std::map<std::pair<int64_t, int>, std::string>;
  static Digests Drain(FeedClient& client) {
    Digests digests;
    while (true) {
      const absl::StatusOr<std::optional<Step>> step = client.Next();
      EXPECT_THAT(step, IsOk());
      if (!step.ok() || !step->has_value()) return digests;
      for (int core = 0; core < kCores; ++core) {
        digests[{(*step)->number(), core}] = SliceDigest(client.layout(), (*step)->slice(core));
      }
    }
  }

  v1::ServerStatusResponse Status() const {
    grpc::ClientContext context;
    v1::ServerStatusResponse answer;
    EXPECT_TRUE(stub_->ServerStatus(&context, {}, &answer).ok());
    return answer;
  }

  // The server notices a moment later that a client has gone.
  void WaitUntilNothingIsHeld() const {
    EXPECT_TRUE(WaitUntil([&] { return MetricOf(Status(), "memory_used_bytes") == 0; }));
  }

  // Expects that the server's log and the stats of its only client both say that batches are sent
  // because of `reason`.
  void ExpectTold(const FeedClient& client, int reason) const {
    EXPECT_THAT(told_, ElementsAre(HasSubstr(NotSharedText(reason))));
    EXPECT_THAT(client.stats().not_shared, StartsWith(NotSharedText(reason)));
  }

  const TempFolder folder_;
  std::vector<std::string> told_;
  // Only one stream asks for shared memory, so only one thread writes `told_`.
  EventLog events_{[this](LogLevel, const std::string& line) {
    if (absl::StrContains(line, "not shared")) told_.push_back(line);
  }};
  std::unique_ptr<Server> server_;
  std::unique_ptr<v1::Systole::Stub> stub_;
};

TEST_F(SharedMemoryTest, SharedBatchesEqualSentBatches) {
  ASSERT_THAT(server_->sharing(), IsOk());
  const auto shared = Client(/*share_memory=*/true, 40);
  const auto sent = Client(/*share_memory=*/false, 40);
  ASSERT_TRUE(shared != nullptr && sent != nullptr);
  const Digests digests = Drain(*shared);
  EXPECT_EQ(digests.size(), 40u * kCores);
  EXPECT_EQ(digests, Drain(*sent));
  const int64_t payload = 40 * kCores * shared->layout().payload_bytes();
  EXPECT_EQ(shared->stats().payload_bytes, payload);
  EXPECT_EQ(shared->stats().shared_payload_bytes, payload);
  EXPECT_EQ(sent->stats().payload_bytes, payload);
  EXPECT_EQ(sent->stats().shared_payload_bytes, 0);
  EXPECT_EQ(shared->stats().streams_lost, 0);
  EXPECT_EQ(MetricOf(Status(), "shared_payload_bytes"), payload);
  EXPECT_EQ(shared->stats().not_shared, "");
  EXPECT_EQ(sent->stats().not_shared,
            "shared memory is switched off at this client (--no-shared-memory) [server " +
                address() + "]");
  EXPECT_THAT(told_, IsEmpty());
}

TEST_F(SharedMemoryTest, SmallSlicesAreSentInstead) {
  const v1::FeedSpec spec = SpecFromText(
      absl::StrCat("dataset: 'test' global_batch: 4 num_cores: 2 epochs: 1", AllOutputs()));
  const auto client = Client(/*share_memory=*/true, 5, spec);
  ASSERT_NE(client, nullptr);
  ASSERT_LT(client->layout().slice_bytes(), 256 << 10);
  EXPECT_EQ(Drain(*client).size(), 5u * kCores);
  EXPECT_EQ(client->stats().shared_payload_bytes, 0);
  ExpectTold(*client, v1::SLICES_TOO_SMALL);
}

TEST_F(SharedMemoryTest, AServerWithSharingSwitchedOffSendsAllBatches) {
  Restart({}, /*shared_memory=*/false);
  EXPECT_THAT(server_->sharing(),
              StatusIs(absl::StatusCode::kCancelled, HasSubstr("switched off")));
  const auto client = Client(/*share_memory=*/true, 5);
  ASSERT_NE(client, nullptr);
  EXPECT_EQ(Drain(*client).size(), 5u * kCores);
  EXPECT_EQ(client->stats().shared_payload_bytes, 0);
  EXPECT_THAT(client->stats().not_shared, StartsWith("no server shares memory at '"));
}

TEST_F(SharedMemoryTest, OnAnOldKernelWithoutTheSealBatchesAreSent) {
  OnOldKernel([this] { Restart({}); });
  EXPECT_THAT(server_->sharing(),
              StatusIs(absl::StatusCode::kUnimplemented, HasSubstr("Linux 5.1")));
  const auto client = Client(/*share_memory=*/true, 5);
  ASSERT_NE(client, nullptr);
  EXPECT_EQ(Drain(*client).size(), 5u * kCores);
  EXPECT_EQ(client->stats().shared_payload_bytes, 0);
}

TEST_F(SharedMemoryTest, AFileInPlaceOfTheSlotSocketDoesNotPreventServing) {
  server_ = nullptr;
  folder_.Write("socket.slots", "precious");
  Restart({});
  EXPECT_THAT(server_->sharing(),
              StatusIs(absl::StatusCode::kAlreadyExists, HasSubstr("not a socket")));
  const auto client = Client(/*share_memory=*/true, 5);
  ASSERT_NE(client, nullptr);
  EXPECT_EQ(Drain(*client).size(), 5u * kCores);
}

TEST_F(SharedMemoryTest, WithoutSessionsLeftBatchesAreSent) {
  Restart({.max_streams = 1});
  // This client keeps its socket open, so its session goes on after its stream has ended.
  absl::StatusOr<SlotSocket> socket = SlotSocket::Connect(folder_ / "socket.slots");
  ASSERT_THAT(socket, IsOk());
  const std::string session(kSlotSessionBytes, 'a');
  ASSERT_THAT(socket->Send(EncodeSlotHello(session)), IsOk());
  grpc::ClientContext context;
  v1::StreamStepsRequest request;
  *request.mutable_spec() = Spec();
  request.set_count(1);
  request.set_slot_session(session);
  const auto reader = stub_->StreamSteps(&context, request);
  v1::Chunk chunk;
  EXPECT_TRUE(reader->Read(&chunk));
  EXPECT_GT(chunk.slot(), 0u);
  context.TryCancel();
  reader->Finish();

  const auto client = Client(/*share_memory=*/true, 5);
  ASSERT_NE(client, nullptr);
  EXPECT_EQ(Drain(*client).size(), 5u * kCores);
  EXPECT_EQ(client->stats().shared_payload_bytes, 0);
  ExpectTold(*client, v1::NO_SESSION_LEFT);
}

TEST_F(SharedMemoryTest, SlicesBeyondTheSlotLimitAreSentInsteadOfShared) {
  Restart({.engine = {.max_sealed_slices = 1}});
  const auto shared = Client(/*share_memory=*/true, 40);
  const auto sent = Client(/*share_memory=*/false, 40);
  ASSERT_TRUE(shared != nullptr && sent != nullptr);
  EXPECT_EQ(Drain(*shared), Drain(*sent));
  EXPECT_GT(shared->stats().shared_payload_bytes, 0);
  EXPECT_LT(shared->stats().shared_payload_bytes, shared->stats().payload_bytes);
  ExpectTold(*shared, v1::NO_SLOT_LEFT);
  EXPECT_EQ(shared->stats().streams_lost, 0);
}

TEST_F(SharedMemoryTest, SlotsTakeAtMostAQuarterOfTheDescriptorLimit) {
  rlimit before = {};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  const rlimit few = {.rlim_cur = 160, .rlim_max = before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &few), 0);
  Restart({});
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
  EXPECT_THAT(server_->open_files(),
              StatusIs(absl::StatusCode::kResourceExhausted, HasSubstr("may open 160 files")));
  // Without a limit, four clients that give no slot back could hold kWindowSlices slots each, and
  // together more than 160 / 4 slots.
  std::vector<std::unique_ptr<FeedClient>> clients;
  for (int i = 0; i < 4; ++i) {
    clients.push_back(Client(/*share_memory=*/true, 20));
    ASSERT_NE(clients.back(), nullptr);
  }
  for (const auto& client : clients) EXPECT_EQ(Drain(*client).size(), 20u * kCores);
  int slots = 0;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    std::error_code error;
    const std::string file = std::filesystem::read_symlink(entry.path(), error);
    if (file.find("systole-slot") != std::string::npos) ++slots;
  }
  EXPECT_GT(slots, 0);
  EXPECT_LE(slots, 160 / 4);
}

TEST_F(SharedMemoryTest, RefusedRequestsDoNotBlockLaterSlotConnections) {
  v1::StreamStepsRequest request;
  request.mutable_spec()->set_dataset("no such");
  request.set_slot_session(std::string(kSlotSessionBytes, 'r'));
  for (int i = 0; i < 300; ++i) {
    const absl::StatusOr<SlotSocket> socket = SlotSocket::Connect(folder_ / "socket.slots");
    ASSERT_THAT(socket, IsOk()) << i;
    ASSERT_THAT(socket->Send(EncodeSlotHello(request.slot_session())), IsOk());
    grpc::ClientContext context;
    EXPECT_FALSE(stub_->StreamSteps(&context, request)->Finish().ok());
  }
}

TEST_F(SharedMemoryTest, AClientThatDisconnectsMidStreamLeavesNoMemoryInUse) {
  for (int i = 0; i < 10; ++i) {
    const auto client = Client(/*share_memory=*/true, /*steps=*/0);
    ASSERT_NE(client, nullptr);
    for (int steps = 0; steps < i; ++steps) EXPECT_THAT(client->Next(), IsOk());
  }
  WaitUntilNothingIsHeld();
  // Streams that have no slices hold no memory, so they may still be ending here.
  EXPECT_TRUE(WaitUntil([&] { return MetricOf(Status(), "active_streams") == 0; }));
}

TEST_F(SharedMemoryTest, APausedClientHoldsOnlyOneWindowOfSlots) {
  constexpr int64_t kExamplesPerSlice = 2;
  constexpr int64_t kMadeAhead = 2 * kCores;
  const absl::StatusOr<std::unique_ptr<FeedClient>> client =
      FeedClient::Create(Spec(), {.servers = {address()}, .prefetch_bytes = int64_t{8} << 20});
  ASSERT_THAT(client, IsOk());
  const int64_t slice_bytes = (*client)->layout().slice_bytes();
  EXPECT_THAT((*client)->Next(), IsOk());
  // The client takes steps until its own window is full, and then stops. The server goes on until a
  // window of slots is lent.
  const int64_t taken = ((*client)->window_steps() + 1) * kCores;
  const int64_t made = (taken + kWindowSlices + kMadeAhead) * kExamplesPerSlice;
  const int64_t shared = (taken + kWindowSlices) * (*client)->layout().payload_bytes();
  ASSERT_TRUE(WaitUntil([&] {
    return MetricOf(Status(), "examples_made") >= made &&
           MetricOf(Status(), "shared_payload_bytes") >= shared;
  }));
  EXPECT_EQ(MetricOf(Status(), "memory_used_bytes"),
            (kWindowSlices + kMadeAhead) * (slice_bytes + kSliceOverheadBytes));
  EXPECT_EQ(MetricOf(Status(), "shared_payload_bytes"), shared);
  // The paused client gets no more slots while another client takes a whole feed.
  const auto other = Client(/*share_memory=*/false, 40);
  ASSERT_NE(other, nullptr);
  EXPECT_EQ(Drain(*other).size(), 40u * kCores);
  EXPECT_EQ(MetricOf(Status(), "examples_made"), made + 40 * kCores * kExamplesPerSlice);
  EXPECT_EQ(MetricOf(Status(), "shared_payload_bytes"), shared);
}

// A client without FeedClient. It can break the rules that FeedClient keeps.
class HandClient {
 public:
  HandClient(v1::Systole::Stub& stub, const std::string& path, const std::string& session) {
    absl::StatusOr<SlotSocket> socket = SlotSocket::Connect(path);
    EXPECT_THAT(socket, IsOk());
    socket_.emplace(*std::move(socket));
    EXPECT_THAT(socket_->Send(EncodeSlotHello(session)), IsOk());
    v1::StreamStepsRequest request;
    *request.mutable_spec() = SpecOfFeed();
    request.set_count(int64_t{1} << 40);
    request.set_slot_session(session);
    reader_ = stub.StreamSteps(&context_, request);
  }
  ~HandClient() {
    if (reader_ == nullptr) return;
    context_.TryCancel();
    reader_->Finish();
  }
  // Drops the messages that are left, and returns the status with which the server ended the
  // stream.
  grpc::Status End() {
    v1::Chunk chunk;
    while (reader_->Read(&chunk)) {
    }
    const grpc::Status status = reader_->Finish();
    reader_ = nullptr;
    return status;
  }
  // The payload of a slice: the floats and `valid`.
  static constexpr int64_t kPayloadBytes = 4 * (400 * 440 * 3 * 4 + 1);
  static v1::FeedSpec SpecOfFeed() {
    return SpecFromText(
        "dataset: 'test' seed: 3 global_batch: 4 num_cores: 1 "
        "outputs { name: 'big' feature: 'image' dtype: FLOAT32 transforms { decode_jpeg {} } "
        // A slice has 8.4 MB, so a window is two slices.
        "transforms { resize { height: 400 width: 440 } } }");
  }
  v1::Chunk Read() {
    v1::Chunk chunk;
    EXPECT_TRUE(reader_->Read(&chunk));
    return chunk;
  }
  SlotSocket& socket() { return *socket_; }

 private:
  grpc::ClientContext context_;
  std::optional<SlotSocket> socket_;
  std::unique_ptr<grpc::ClientReader<v1::Chunk>> reader_;
};

TEST_F(SharedMemoryTest, AClientThatReturnsNoSlotsGetsOneWindowWithoutBlockingOthers) {
  HandClient hoarder(*stub_, folder_ / "socket.slots", std::string(kSlotSessionBytes, 'h'));
  struct Held {
    SealedView view;
    std::string bytes;
  };
  std::map<uint64_t, Held> held;
  for (int64_t step = 0; step < 2; ++step) {  // A window has two slices.
    const v1::Chunk chunk = hoarder.Read();
    EXPECT_EQ(chunk.step(), step);
    const absl::StatusOr<std::optional<SlotSocket::Packet>> offer = hoarder.socket().Receive();
    ASSERT_TRUE(offer.ok() && offer->has_value());
    absl::StatusOr<SealedView> view = SealedView::Map((*offer)->passed.get(), chunk.slot_bytes());
    ASSERT_THAT(view, IsOk());
    const std::string bytes(reinterpret_cast<const char*>(view->data()),
                            static_cast<size_t>(view->bytes()));
    EXPECT_TRUE(held.emplace(chunk.slot(), Held{*std::move(view), bytes}).second);
  }
  // While another client gets a whole feed, the hoarder gets no more slots, and the contents of the
  // slots that it holds do not change.
  const auto client = Client(/*share_memory=*/true, 40);
  ASSERT_NE(client, nullptr);
  EXPECT_EQ(Drain(*client).size(), 40u * kCores);
  const int64_t payload = client->layout().payload_bytes();
  EXPECT_EQ(client->stats().shared_payload_bytes, 40 * kCores * payload);
  EXPECT_EQ(MetricOf(Status(), "shared_payload_bytes"),
            40 * kCores * payload + 2 * HandClient::kPayloadBytes);
  for (const auto& [slot, each] : held) {
    EXPECT_EQ(std::memcmp(each.view.data(), each.bytes.data(), each.bytes.size()), 0) << slot;
  }
  // The hoarder gets one slice for each slot that it gives back.
  ASSERT_THAT(hoarder.socket().Send(EncodeSlotReturn(held.begin()->first)), IsOk());
  held.erase(held.begin());
  const v1::Chunk next = hoarder.Read();
  EXPECT_EQ(next.step(), 2);
  EXPECT_EQ(held.count(next.slot()), 0u);
}

TEST_F(SharedMemoryTest, AStalledClientLosesItsStreamAndItsSlots) {
  std::atomic<int64_t> seconds = 0;
  FeedServiceOptions service;
  service.max_streams = 1;
  service.stalled_stream_timeout = absl::Seconds(120);
  service.clock = [&seconds] { return absl::Seconds(seconds.load()); };
  Restart(service);
  HandClient hoarder(*stub_, folder_ / "socket.slots", std::string(kSlotSessionBytes, 'h'));
  for (int i = 0; i < 2; ++i) EXPECT_GT(hoarder.Read().slot(), 0u);  // A window has two slices.
  seconds = 119;
  server_->Tick();
  EXPECT_EQ(MetricOf(Status(), "active_streams"), 1);
  seconds = 120;
  server_->Tick();
  const grpc::Status status = hoarder.End();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::UNAVAILABLE);
  EXPECT_THAT(status.error_message(), HasSubstr("taken nothing for 2m"));
  // The server takes its memory back although the client's socket is still open.
  WaitUntilNothingIsHeld();
  const auto client = Client(/*share_memory=*/true, 5);
  ASSERT_NE(client, nullptr);
  EXPECT_EQ(Drain(*client).size(), 5u * kCores);
  server_ = nullptr;  // Ends the server before the clock that it uses.
}

TEST_F(SharedMemoryTest, AClientThatReturnsASlotTwiceGetsLaterSlicesAsBytes) {
  HandClient client(*stub_, folder_ / "socket.slots", std::string(kSlotSessionBytes, 'h'));
  const v1::Chunk first = client.Read();
  ASSERT_THAT(client.socket().Send(EncodeSlotReturn(first.slot())), IsOk());
  client.socket().Send(EncodeSlotReturn(first.slot())).IgnoreError();
  EXPECT_TRUE(WaitUntil([&] { return !client.socket().Receive().ok(); }));
  // The server has hung up. The first chunks are in slots that the server lent before it hung up.
  // All later slices come as bytes.
  v1::Chunk chunk;
  do {
    chunk = client.Read();
  } while (chunk.slot() != 0);
  EXPECT_GT(chunk.data().size(), 0u);
}

TEST_F(SharedMemoryTest, AClientWhoseSlotSocketClosesGetsLaterSlicesAsBytes) {
  HandClient client(*stub_, folder_ / "socket.slots", std::string(kSlotSessionBytes, 'h'));
  const v1::Chunk first = client.Read();
  EXPECT_GT(first.slot(), 0u);
  client.socket().Shutdown();
  v1::Chunk chunk;
  do {
    chunk = client.Read();
  } while (chunk.slot() != 0);
  EXPECT_GT(chunk.data().size(), 0u);
}

TEST_F(SharedMemoryTest, ASharingClientContinuesAfterAServerRestart) {
  const auto client = Client(/*share_memory=*/true, 100);
  const auto other = Client(/*share_memory=*/false, 100);
  ASSERT_TRUE(client != nullptr && other != nullptr);
  const Digests expected = Drain(*other);
  absl::StatusOr<std::optional<Step>> step = client->Next();
  ASSERT_TRUE(step.ok() && step->has_value());
  Restart({});
  Digests digests = Drain(*client);
  for (int core = 0; core < kCores; ++core) {
    digests[{0, core}] = SliceDigest(client->layout(), (*step)->slice(core));
  }
  EXPECT_EQ(digests, expected);
  EXPECT_GT(client->stats().shared_payload_bytes, 50 * kCores * client->layout().payload_bytes());
}

}  // namespace
}  // namespace systole
