// Feeds that are asked for to hurt: the server's memory stays what it was given, and another feed's
// steps go on.
#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "google/protobuf/text_format.h"
#include "grpcpp/create_channel.h"
#include "gtest/gtest.h"
#include "systole/v1/service.grpc.pb.h"
#include "tests/sanitizers.h"
#include "tests/status_matchers.h"
#include "tests/system/served_feed.h"

namespace systole {
namespace {

constexpr int64_t kMiB = int64_t{1} << 20;
constexpr int64_t kBudget = 512 * kMiB;
// What the server may take beside its budget; gRPC, plans, stacks and the program are in it.
constexpr int64_t kBeside = (kAddressSanitizer ? 320 : 64) * kMiB;
constexpr int kRecordBytes = 300;

class MemoryTest : public testing::Test {
 protected:
  // A call whose steps nobody reads, or somebody reads some of.
  struct Call {
    grpc::ClientContext context;
    std::unique_ptr<grpc::ClientReader<v1::Chunk>> reader;
  };

  void SetUp() override {
    const std::string shard = folder_.Write("raw.tfrecord", RawShard(0, 64, kRecordBytes));
    absl::StatusOr<std::unique_ptr<ServerProcess>> server =
        ServerProcess::Start({"--dataset", absl::StrCat("raw=", shard), "--threads", "2",
                              "--memory-budget", absl::StrCat(kBudget)});
    ASSERT_THAT(server, IsOk());
    server_ = *std::move(server);
    stub_ = NewStub();
  }

  // With a connection of its own, as another client has.
  std::unique_ptr<v1::Systole::Stub> NewStub() const {
    grpc::ChannelArguments own_connection;
    own_connection.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    return v1::Systole::NewStub(grpc::CreateCustomChannel(
        server_->address(), grpc::InsecureChannelCredentials(), own_connection));
  }

  static std::unique_ptr<Call> Open(v1::Systole::Stub& stub, const std::string& spec) {
    v1::StreamStepsRequest request;
    EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(spec, request.mutable_spec()));
    request.set_count(1'000'000);
    auto call = std::make_unique<Call>();
    // Far more than anything here takes: what never comes fails.
    call->context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(60));
    call->reader = stub.StreamSteps(&call->context, request);
    call->reader->WaitForInitialMetadata();  // The server has begun to make it.
    return call;
  }

  // Takes 100 steps of a feed like any other.
  void ExpectStepsFlow() {
    const std::unique_ptr<Call> feed = Open(*stub_, RawSpec(kRecordBytes, /*epochs=*/0));
    v1::Chunk chunk;
    while (chunk.step() < 100) ASSERT_TRUE(feed->reader->Read(&chunk)) << "after " << chunk.step();
    feed->context.TryCancel();
  }

  // The most that the server has had in memory at once.
  int64_t PeakBytes() const { return server_->process().MemoryBytes("VmHWM"); }

  const TempFolder folder_;
  std::unique_ptr<ServerProcess> server_;
  std::unique_ptr<v1::Systole::Stub> stub_;
};

// One slice of 16 million examples: 80 MiB, and 2 million times 8 examples.
constexpr char kGiantSlice[] =
    "dataset: 'raw' global_batch: 16777216 num_cores: 1 tail: PAD "
    "outputs { name: 'i' feature: 'record_id' dtype: INT32 }";

// Slices of one example: 128 bytes, and a thousand times as many of them.
constexpr char kTinySlices[] =
    "dataset: 'raw' global_batch: 65536 num_cores: 65536 tail: PAD "
    "outputs { name: 'i' feature: 'record_id' dtype: INT32 }";

TEST_F(MemoryTest, StepsFlowBesideSlicesOfMillionsOfExamples) {
  std::vector<std::unique_ptr<Call>> giants;
  const std::unique_ptr<v1::Systole::Stub> stub = NewStub();
  for (int i = 0; i < 4; ++i) giants.push_back(Open(*stub, kGiantSlice));
  ExpectStepsFlow();
  EXPECT_LE(PeakBytes(), kBudget + kBeside);
  v1::Chunk chunk;
  EXPECT_TRUE(giants[0]->reader->Read(&chunk));  // It is served, too.
  EXPECT_LE(PeakBytes(), kBudget + kBeside);
}

TEST_F(MemoryTest, StepsFlowAfterFiftySuchFeedsWereOpenedAndCancelled) {
  for (int i = 0; i < 50; ++i) Open(*NewStub(), kGiantSlice)->context.TryCancel();
  ExpectStepsFlow();
  EXPECT_LE(PeakBytes(), kBudget + kBeside);
}

TEST_F(MemoryTest, StepsFlowBesideManyFeedsOfTinySlices) {
  const std::unique_ptr<v1::Systole::Stub> stub = NewStub();
  std::vector<std::unique_ptr<Call>> calls;
  for (int i = 0; i < 16; ++i) calls.push_back(Open(*stub, kTinySlices));
  ExpectStepsFlow();
  EXPECT_LE(PeakBytes(), kBudget + kBeside);
}

}  // namespace
}  // namespace systole
