// A Systole server for tests. The server has no dataset: every byte that it sends is a function of
// (step, core, tensor, place). FakeFeed says whether and how the server misbehaves. The server runs
// in the test's process, on a free port of 127.0.0.1.
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
  // If set, the stream ends with this status after this chunk.
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
  // Whether `x` is float32, cast from uint8. If the client does this cast, a value travels as one
  // byte.
  bool pixels = false;
  // The epochs in SpecOf(); 0 = endless. The server goes by the spec that it gets from a client.
  int64_t epochs = 2;
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
  // Called with each report of a trainer. Null: the server does not have the method ReportTrainer,
  // like an older server.
  std::function<absl::Status(const v1::TrainerReport& report)> report;
  // Whether gRPC compresses the server's messages.
  bool compresses = false;
  // Whether the server sends slowly (paced_sockets.h).
  bool paced = false;
  // If this is not OK, the server refuses every call with this status.
  grpc::Status refusal;
  // Called with the number of each stream. If the function returns a text, the server refuses the
  // stream as a full server would, and sends the text as "grpc-retry-pushback-ms".
  std::function<std::optional<std::string>(int stream)> pushback;
};

// The spec that a FakeFeed serves.
v1::FeedSpec SpecOf(const FakeFeed& feed);

// Describes the first wrong value of the step; empty if all values are right. The right value is
// FakeByte(), as a float in a FLOAT32 tensor.
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
  // How many steps were handed to gRPC completely, with their last chunk.
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
