// A Systole server without data. Every byte is a function of (step, core, tensor, place). The
// server misbehaves on command. It runs in the test's process, on a free port of 127.0.0.1.
//
// Thread-safe.
#ifndef SYSTOLE_TESTS_CLIENT_FEED_FAKE_SERVER_H_
#define SYSTOLE_TESTS_CLIENT_FEED_FAKE_SERVER_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "client/step/step.h"
#include "core/batch/slice_layout.h"
#include "core/concurrency/mutex.h"
#include "grpcpp/server.h"
#include "grpcpp/support/status.h"
#include "proto/framing/chunk.h"
#include "systole/v1/service.grpc.pb.h"
#include "systole/v1/service.pb.h"

namespace systole {

// A chunk before the server sends it. FakeFeed::spoil may change it.
struct FakeChunk {
  ChunkHeader header;
  std::vector<uint8_t> data;
  // The status with which the stream ends after this chunk.
  std::optional<absl::Status> end;
  // Neither this chunk nor a later one is sent, and the stream stays open.
  bool hang = false;
  // This chunk is not sent.
  bool skip = false;
  // Changes the message of this chunk, checksums included, before it is sent.
  std::function<void(v1::Chunk& message)> alter;
};

// The byte at `place` of tensor `tensor`. It is never 0, so every example is valid.
uint8_t FakeByte(int64_t step, int core, int tensor, int64_t place);

struct FakeFeed {
  int num_cores = 2;
  int64_t per_core_batch = 4;
  // How many elements the tensor `x` (uint8) has for one example.
  int64_t example_bytes = 100;
  // `x` is float32, cast from uint8. If the client makes this cast, only one byte per value
  // travels.
  bool pixels = false;
  int64_t epochs = 2;  // SpecOf() uses this, but the server obeys the spec it gets. 0: endless.
  int64_t steps_per_epoch = 10;
  int64_t chunk_bytes = 150;
  uint64_t dataset_fingerprint = 11;
  uint64_t order_fingerprint = 22;
  std::string content_version = "fake-1";
  // The tensors of a slice. If this is empty, they are `valid`, `label` and `x`.
  std::vector<SliceTensor> tensors;
  // The function that makes the bytes.
  std::function<uint8_t(int64_t step, int core, int tensor, int64_t place)> byte = FakeByte;
  // Called for each chunk, with the number of the stream (from 0, over all streams of this server)
  // and the chunk's number in its stream. The calls of a stream come from one thread.
  std::function<void(int stream, int chunk, FakeChunk& piece)> spoil;
  // Changes the answer to ResolveFeed, or refuses the call.
  std::function<absl::Status(v1::ResolveFeedResponse& answer)> resolve;
  // Changes the checksum sent with the answer to ResolveFeed.
  std::function<void(std::string& checksum)> resolve_checksum;
  // These functions fill the answers to the other calls, or refuse the calls.
  std::function<absl::Status(v1::ServerStatusResponse& answer)> status;
  std::function<absl::Status(v1::ListDatasetsResponse& answer)> datasets;
  std::function<absl::Status(v1::DescribeDatasetResponse& answer)> dataset;
  // Called with each report of a trainer. Null: the server is an older one, which does not have the
  // method.
  std::function<absl::Status(const v1::TrainerReport& report)> report;
  // Whether gRPC compresses the server's messages.
  bool compresses = false;
  // Whether the server sends slowly (paced_sockets.h).
  bool paced = false;
  // If this is not OK, every call is refused with it.
  grpc::Status refusal;
  // Called with a stream's number. If it returns a text, the stream is refused as a full server
  // would refuse it, with the text as "grpc-retry-pushback-ms".
  std::function<std::optional<std::string>(int stream)> pushback;
};

// The spec that a FakeFeed serves.
v1::FeedSpec SpecOf(const FakeFeed& feed);

// Names the first place with a wrong value. The right value is FakeByte(), or FakeByte() as a float
// in a FLOAT32 tensor. Empty: all values are right.
std::string WrongBytesOf(const Step& step);

class FakeServer {
 public:
  // Starts to listen on `address`: "127.0.0.1:0", the address of an earlier server, or "unix:PATH".
  explicit FakeServer(FakeFeed feed, const std::string& address = "127.0.0.1:0");
  // Ends every stream at once, as if the process was killed.
  ~FakeServer();

  // The address that a client connects to.
  const std::string& address() const { return address_; }

  // All requests of StreamSteps so far, in order.
  std::vector<v1::StreamStepsRequest> requests() const;
  // How often ReportTrainer was called.
  int64_t reports() const;
  // How many steps were handed to gRPC up to their last chunk.
  int64_t steps_written() const;
  int64_t chunks_written() const;
  // Waits until `chunks` chunks were handed to gRPC.
  void WaitForChunks(int64_t chunks) const;

 private:
  class Service;

  const bool compresses_;
  const bool paced_;
  std::unique_ptr<Service> service_;
  std::string address_;
  std::unique_ptr<grpc::Server> server_;
};

}  // namespace systole

#endif  // SYSTOLE_TESTS_CLIENT_FEED_FAKE_SERVER_H_
