// A Systole server without data: every byte is a function of (step, core, tensor, place), and it
// misbehaves on command. In the test's process, on a free port of 127.0.0.1.
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

// A chunk before it is sent, for a test to spoil.
struct FakeChunk {
  ChunkHeader header;
  std::vector<uint8_t> data;
  // After this chunk the stream ends with this status.
  std::optional<absl::Status> end;
  // Neither this chunk nor any other is sent; the stream stays open.
  bool hang = false;
  // This chunk is not sent.
  bool skip = false;
  // Changes the message of this chunk, checksums included, before it is sent.
  std::function<void(v1::Chunk& message)> alter;
};

// The byte at `place` of tensor `tensor`. Never 0: every example is valid.
uint8_t FakeByte(int64_t step, int core, int tensor, int64_t place);

struct FakeFeed {
  int num_cores = 2;
  int64_t per_core_batch = 4;
  // Elements of one example's tensor `x` (uint8).
  int64_t example_bytes = 100;
  // `x` is float32, cast from its bytes; if the client finishes it, the bytes travel.
  bool pixels = false;
  int64_t epochs = 2;  // What SpecOf() says; the server goes by the spec it gets. 0 = without end.
  int64_t steps_per_epoch = 10;
  int64_t chunk_bytes = 150;
  uint64_t dataset_fingerprint = 11;
  uint64_t order_fingerprint = 22;
  std::string content_version = "fake-1";
  // The tensors of a slice, instead of `label`, `valid` and `x`.
  std::vector<SliceTensor> tensors;
  // The byte at a place.
  std::function<uint8_t(int64_t step, int core, int tensor, int64_t place)> byte = FakeByte;
  // Called for each chunk with the number of the stream (from 0, over all streams of this server)
  // and of the chunk in it. On one thread per stream.
  std::function<void(int stream, int chunk, FakeChunk& piece)> spoil;
  // Changes the answer to ResolveFeed, or refuses.
  std::function<absl::Status(v1::ResolveFeedResponse& answer)> resolve;
  // Changes the checksum that is sent beside the answer to ResolveFeed.
  std::function<void(std::string& checksum)> resolve_checksum;
  // Fill the answers to the other calls, or refuse.
  std::function<absl::Status(v1::ServerStatusResponse& answer)> status;
  std::function<absl::Status(v1::ListDatasetsResponse& answer)> datasets;
  std::function<absl::Status(v1::DescribeDatasetResponse& answer)> dataset;
  // Whether gRPC compresses what it sends.
  bool compresses = false;
  // Whether it sends slowly (paced_sockets.h).
  bool paced = false;
  // If not OK, every call is refused with it, as gRPC sends it.
  grpc::Status refusal;
  // Refuses a stream, by its number, as a full server does: with this "grpc-retry-pushback-ms".
  std::function<std::optional<std::string>(int stream)> pushback;
};

// The spec that a FakeFeed serves.
v1::FeedSpec SpecOf(const FakeFeed& feed);

// Whether every tensor of `step` holds FakeByte()s, or floats of them; otherwise where it does not.
std::string WrongBytesOf(const Step& step);

class FakeServer {
 public:
  // Listens. `address`: "127.0.0.1:0", the address of an earlier one, or "unix:PATH".
  explicit FakeServer(FakeFeed feed, const std::string& address = "127.0.0.1:0");
  // Ends every stream as a killed process would: at once.
  ~FakeServer();

  // What a client dials.
  const std::string& address() const { return address_; }

  // What was asked of StreamSteps so far, in order.
  std::vector<v1::StreamStepsRequest> requests() const;
  // Steps of which the last chunk was handed to gRPC.
  int64_t steps_written() const;
  int64_t chunks_written() const;
  // Waits until so many chunks were handed to gRPC.
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
