// One StreamSteps call through gRPC's callback interface. Messages arrive on gRPC's threads as
// grpc::ByteBuffers, neither parsed nor copied. The stream reads the next message only when
// OnChunk() returns kRead or Read() is called.
//
// Thread-compatible, within the limits that each function states. Must be destroyed after
// OnStreamEnd(), and not on one of gRPC's threads (see server_link.h).
#ifndef SYSTOLE_CLIENT_LANES_CHUNK_STREAM_H_
#define SYSTOLE_CLIENT_LANES_CHUNK_STREAM_H_

#include <memory>
#include <optional>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "client/servers/receive_meter.h"
#include "client/servers/server_link.h"
#include "client/servers/slot_reader.h"
#include "grpcpp/client_context.h"
#include "grpcpp/support/byte_buffer.h"
#include "grpcpp/support/client_callback.h"
#include "proto/framing/chunk.h"
#include "proto/framing/guarded_message.h"
#include "systole/v1/service.pb.h"

namespace systole {

// What to do after a chunk.
enum class ReadVerdict {
  kRead,   // Ask for the next chunk.
  kPause,  // Do nothing until Read() is called.
  kStop,   // Cancel the stream.
};

// How a stream ended.
struct StreamEnd {
  absl::Status status;
  // How long the server asks the client to wait before the next call, from the call's
  // "grpc-retry-pushback-ms".
  std::optional<absl::Duration> pushback;
};

// Called on gRPC's threads, never two at a time for one stream.
class ChunkListener {
 public:
  virtual ~ChunkListener() = default;
  // A message has arrived. `chunk` is InvalidArgument if the message is not a chunk. A chunk may
  // refer to one of `slots`. `slots` is null if the stream has no shared memory.
  virtual ReadVerdict OnChunk(int lane, const absl::StatusOr<ReceivedChunk>& chunk,
                              SlotReader* slots) = 0;
  // The stream's last call. gRPC no longer uses the ChunkStream, so its owner may destroy it.
  virtual void OnStreamEnd(int lane, StreamEnd end) = 0;
};

class ChunkStream : private grpc::ClientBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer> {
 public:
  // Passes `lane` to `listener` with each call. `request` says whether tensors come in their
  // compact form (v1::CompactForm). In shared memory they never do: there the server finishes them.
  ChunkStream(v1::StreamStepsRequest request, int lane, ChunkListener& listener);

  // Starts the call, and asks for the first chunk. The stream has shared memory (slots) if the link
  // has some. REQUIRES: the caller holds no lock that a listener takes.
  void Start(ServerLink& link);
  // Asks for the next chunk. REQUIRES: the last verdict was kPause, and since then neither Read()
  // nor Cancel() was called.
  void Read() { StartRead(&message_); }
  // Ends the stream: OnStreamEnd() is called soon. `paused`: the last verdict was kPause, and
  // Read() was not called since.
  void Cancel(bool paused);

 private:
  void OnReadDone(bool ok) override;
  void OnDone(const grpc::Status& status) override;

  const int lane_;
  ChunkListener& listener_;
  grpc::ClientContext context_;
  v1::StreamStepsRequest request_;
  // The slots of this stream; null without shared memory. Destroying the reader gives back all
  // slots that the server has lent.
  std::unique_ptr<SlotReader> slots_;
  std::optional<MeteredCall> metered_;  // Set by Start().
  GuardedMessage guarded_request_;
  grpc::ByteBuffer message_;
};

}  // namespace systole

#endif  // SYSTOLE_CLIENT_LANES_CHUNK_STREAM_H_
