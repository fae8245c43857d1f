// Tests feeds that are meant to do harm. The server's memory stays within a bound, and the steps of
// another feed go on.
//
// The bound is the sum of the server's budget, its caches, its memory when it is idle, and 64 MiB.
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/image/jpeg/jpeg_encoder.h"
#include "gmock/gmock.h"
#include "google/protobuf/text_format.h"
#include "grpcpp/create_channel.h"
#include "gtest/gtest.h"
#include "systole/v1/service.grpc.pb.h"
#include "tests/core/compression/compressed_bytes.h"
#include "tests/core/example/encode.h"
#include "tests/core/image/jpeg/jpeg_fixture.h"
#include "tests/core/record/tfrecord/shard_builder.h"
#include "tests/status_matchers.h"
#include "tests/status_metrics.h"
#include "tests/system/served_feed.h"
#include "tests/wait_until.h"

namespace systole {
namespace {

constexpr int64_t kMiB = int64_t{1} << 20;
constexpr int64_t kBudget = 512 * kMiB;
// The memory that the server may take beside its budget: for gRPC, plans, stacks and the program.
constexpr int64_t kBeside = 64 * kMiB;
constexpr int kRecordBytes = 300;

class MemoryTest : public testing::Test {
 protected:
  // A call of StreamSteps. A test reads some of its steps, or none.
  struct Call {
    grpc::ClientContext context;
    std::unique_ptr<grpc::ClientReader<v1::Chunk>> reader;
  };

  void SetUp() override { Serve(kBudget); }

  // Starts a server with the dataset "raw".
  void Serve(int64_t budget, const std::vector<std::string>& args = {}, int threads = 2) {
    server_.reset();
    const std::string shard = folder_.Write("raw.tfrecord", RawShard(0, 64, kRecordBytes));
    std::vector<std::string> all = {"--dataset",       absl::StrCat("raw=", shard),
                                    "--threads",       absl::StrCat(threads),
                                    "--memory-budget", absl::StrCat(budget)};
    all.insert(all.end(), args.begin(), args.end());
    absl::StatusOr<std::unique_ptr<ServerProcess>> server = ServerProcess::Start(all);
    ASSERT_THAT(server, IsOk());
    server_ = *std::move(server);
    stub_ = NewStub();
    idle_bytes_ = server_->process().MemoryBytes("VmRSS");
  }

  // Each stub has a connection of its own, as if it were in another client.
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
    // If a message never comes, the call ends at this deadline, and the test fails. All other calls
    // take far less time.
    call->context.set_deadline(std::chrono::system_clock::now() + std::chrono::minutes(5));
    call->reader = stub.StreamSteps(&call->context, request);
    call->reader->WaitForInitialMetadata();  // The server has begun to make slices.
    return call;
  }

  // Takes 100 steps of an ordinary feed.
  void ExpectStepsFlow() {
    const std::unique_ptr<Call> feed = Open(*stub_, RawSpec(kRecordBytes, /*epochs=*/0));
    v1::Chunk chunk;
    while (chunk.step() < 100) ASSERT_TRUE(feed->reader->Read(&chunk)) << "after " << chunk.step();
    feed->context.TryCancel();
  }

  // Opens a feed of each spec. Waits until the slices that the server has made ahead fill 9/16 of
  // the budget. The server lets such slices fill at most 3/4 (12/16) of the budget.
  void Fill(int64_t budget, const std::vector<std::string>& specs,
            std::vector<std::unique_ptr<Call>>& calls) {
    for (const std::string& spec : specs) calls.push_back(Open(*stub_, spec));
    EXPECT_TRUE(WaitUntil([&] { return UsedBytes() >= budget / 16 * 9; }, std::chrono::minutes(2)));
  }
  // Ends the calls, and waits until the server holds no slices for them any more.
  void End(std::vector<std::unique_ptr<Call>>& calls) {
    for (const std::unique_ptr<Call>& call : calls) call->context.TryCancel();
    calls.clear();
    EXPECT_TRUE(WaitUntil([&] { return UsedBytes() == 0; }));
  }

  int64_t UsedBytes() const {
    grpc::ClientContext context;
    v1::ServerStatusResponse status;
    EXPECT_TRUE(stub_->ServerStatus(&context, {}, &status).ok());
    return static_cast<int64_t>(MetricOf(status, "memory_used_bytes"));
  }

  // The most memory that the server has had at once.
  int64_t PeakBytes() const { return server_->process().MemoryBytes("VmHWM"); }

  const TempFolder folder_;
  std::unique_ptr<ServerProcess> server_;
  std::unique_ptr<v1::Systole::Stub> stub_;
  int64_t idle_bytes_ = 0;
};

// A slice of 16 million examples takes 80 MiB. The server makes this slice in about 4,000 parts of
// at most 4,096 examples.
constexpr char kGiantSlice[] =
    "dataset: 'raw' global_batch: 16777216 num_cores: 1 tail: PAD "
    "outputs { name: 'i' feature: 'record_id' dtype: INT32 }";

// A slice of one example takes 128 bytes. So the budget has room for very many slices.
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
  EXPECT_TRUE(giants[0]->reader->Read(&chunk));  // The giant feed is served, too.
  EXPECT_LE(PeakBytes(), kBudget + kBeside);
}

TEST_F(MemoryTest, StepsFlowAfterFiftyFeedsOfGiantSlicesAreCancelled) {
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

// Specs of `count` feeds, with slices of `slice_bytes` each.
std::vector<std::string> FeedsOfSlices(int64_t slice_bytes, int count) {
  constexpr int64_t kExampleBytes = 5;  // An INT32, and a byte in `valid`.
  const int64_t examples = slice_bytes / kExampleBytes;
  const int64_t cores = std::min(int64_t{1024}, (int64_t{16} << 20) / examples);
  std::vector<std::string> specs;
  for (int i = 0; i < count; ++i) {
    specs.push_back(absl::StrCat("dataset: 'raw' seed: ", i, " global_batch: ", examples * cores,
                                 " num_cores: ", cores,
                                 " tail: PAD shuffle { mode: GLOBAL } "
                                 "outputs { name: 'i' feature: 'record_id' dtype: INT32 }"));
  }
  return specs;
}

// malloc keeps freed blocks of less than 128 KiB, but cannot use them for a larger block. So freed
// memory could add up when the size of slices changes.
TEST_F(MemoryTest, FeedsOfOtherSliceSizesReuseFreedMemory) {
  constexpr int64_t kSmallBudget = 128 * kMiB;
  Serve(kSmallBudget);
  std::vector<std::unique_ptr<Call>> calls;
  for (const int64_t kib : {100, 120, 80, 60, 40, 10'240}) {
    Fill(kSmallBudget, FeedsOfSlices(kib << 10, 32), calls);
    End(calls);
  }
  EXPECT_LE(PeakBytes(), idle_bytes_ + kSmallBudget + kBeside);
}

// Several tiny slices share a page of memory. When the slices are freed, malloc keeps their pages
// until the server tells malloc to trim.
TEST_F(MemoryTest, MemoryFreedByFeedsOfTinySlicesReturnsToTheSystem) {
  constexpr int64_t kSmallBudget = 256 * kMiB;
  Serve(kSmallBudget);
  std::vector<std::unique_ptr<Call>> calls;
  for (const int64_t kib : {15, 7, 13, 9, 10'240}) {
    Fill(kSmallBudget, FeedsOfSlices(kib << 10, 32), calls);
    if (kib < 100) End(calls);
  }
  const auto is_back = [&] {
    return server_->process().MemoryBytes("VmRSS") <= idle_bytes_ + kSmallBudget + kBeside;
  };
  EXPECT_TRUE(WaitUntil(is_back));
  End(calls);
}

// `count` different JPEGs, every other one progressive.
std::string ImageShard(int count) {
  ShardBuilder shard;
  for (int i = 0; i < count; ++i) {
    const JpegKind kind = {.name = "420", .h = 2, .v = 2, .progressive = i % 2 == 1};
    shard.Add(Example(Entry(
        "image", BytesList(Field(1, MakeJpeg(kind, 300 + i, 280, static_cast<uint32_t>(i)))))));
  }
  return shard.Build();
}

TEST_F(MemoryTest, ImagesOfEveryLayoutOutOfCompressedShardsAndCachesKeepTheBound) {
  constexpr int64_t kSmallBudget = 64 * kMiB;
  constexpr int64_t kCache = 16 * kMiB;
  const std::string images = ImageShard(160);
  const std::string gzip = folder_.Write("images.gz", Deflate(images, kGzipStream, 1));
  const std::string zstd = folder_.Write("images.zst", Zstd(images, 60'000));
  Serve(kSmallBudget,
        {"--dataset", absl::StrCat("images=", gzip), "--dataset", absl::StrCat("images=", zstd),
         "--cache-memory", absl::StrCat(kCache), "--decompression-cache", absl::StrCat(kCache)});
  int feeds = 0;
  for (const char* const layout : {"NHWC", "NCHW", "HWCN", "HWCN_TILED"}) {
    for (const char* const cache : {"NONE", "MEMORY"}) {
      std::vector<std::unique_ptr<Call>> calls;
      for (const int edge : {32, 128}) {
        calls.push_back(Open(
            *NewStub(),
            absl::StrCat(
                "dataset: 'images' seed: ", ++feeds,
                " global_batch: 64 num_cores: 1 shuffle { mode: GLOBAL } outputs { name: "
                "'i' feature: 'image' dtype: BFLOAT16 layout: ",
                layout, " cache: ", cache,
                " transforms { decode_jpeg {} } transforms { random_resized_crop { height: ", edge,
                " width: ", edge, " } } }")));
      }
      v1::Chunk chunk;
      for (const std::unique_ptr<Call>& call : calls) {
        while (chunk.step() < 2) {
          ASSERT_TRUE(call->reader->Read(&chunk)) << call->reader->Finish().error_message();
        }
        chunk.Clear();
      }
      End(calls);
    }
  }
  EXPECT_LE(PeakBytes(), idle_bytes_ + kSmallBudget + 2 * kCache + kBeside);
}

// Progressive images of 16 megapixels. A thread takes 48 MB to decode such an image. Each image has
// a single colour, so that the decodes take little time.
TEST_F(MemoryTest, LargeProgressiveImagesOnManyThreadsKeepTheBound) {
  constexpr int64_t kSmallBudget = 256 * kMiB;
  constexpr int kThreads = 16;
  constexpr int kWidth = 4608, kHeight = 3472;
  const absl::StatusOr<std::string> jpeg =
      EncodeJpeg(std::vector<uint8_t>(size_t{kWidth} * kHeight * 3, 77), kWidth, kHeight, 3,
                 {.progressive = true});
  ASSERT_THAT(jpeg, IsOk());
  ShardBuilder shard;
  for (int i = 0; i < 4; ++i) {
    shard.Add(Example(Entry("image", BytesList(Field(1, *jpeg)))));
  }
  const std::string path = folder_.Write("large.tfrecord", shard.Build());
  Serve(kSmallBudget, {"--dataset", absl::StrCat("large=", path)}, kThreads);
  std::vector<std::unique_ptr<Call>> calls;
  for (int i = 0; i < kThreads; ++i) {
    calls.push_back(
        Open(*NewStub(), absl::StrCat("dataset: 'large' seed: ", i,
                                      " global_batch: 1 num_cores: 1 outputs { name: 'i' feature: "
                                      "'image' dtype: UINT8 transforms { decode_jpeg {} } "
                                      "transforms { resize { height: 32 width: 32 } } }")));
  }
  v1::Chunk chunk;
  for (const std::unique_ptr<Call>& call : calls) {
    ASSERT_TRUE(call->reader->Read(&chunk)) << call->reader->Finish().error_message();
  }
  EXPECT_LE(PeakBytes(), idle_bytes_ + kSmallBudget + kBeside);
  End(calls);
}

}  // namespace
}  // namespace systole
