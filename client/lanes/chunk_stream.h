// One StreamSteps call through gRPC's callback interface. Messages arrive on gRPC's threads as
// grpc::ByteBuffers, neither parsed nor copied. The next message is asked for only when the
// listener says so.
//
// Thread-compatible, within the limits that each function states. Must be destroyed on one of our
// own threads (see server_link.h), after OnStreamEnd().
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
  kRead,   // Ask for the next.
  kPause,  // Do nothing until Read() is called.
  kStop,   // Cancel the stream.
};

// How a stream ended.
struct StreamEnd {
  absl::Status status;
  // How long the server asked the client to wait, in "grpc-retry-pushback-ms".
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
  // The last call. The stream is not touched any more and may be destroyed.
  virtual void OnStreamEnd(int lane, StreamEnd end) = 0;
};

class ChunkStream : private grpc::ClientBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer> {
 public:
  // Passes `lane` to `listener` with each call. If `request` asks for compact tensors, the tensors
  // come compact. If the stream has shared memory, the server always finishes the tensors.
  ChunkStream(v1::StreamStepsRequest request, int lane, ChunkListener& listener);

  // Starts the call, with shared memory (slots) if the link has some, and asks for the first chunk.
  // REQUIRES: the caller holds no lock that a listener takes.
  void Start(ServerLink& link);
  // Asks for the next chunk. REQUIRES: the last verdict was kPause, and nothing was called since.
  void Read() { StartRead(&message_); }
  // Ends the stream: OnStreamEnd() is called soon. `paused`: the last verdict was kPause and Read()
  // was not called since, so no chunk is asked for.
  void Cancel(bool paused);

 private:
  void OnReadDone(bool ok) override;
  void OnDone(const grpc::Status& status) override;

  const int lane_;
  ChunkListener& listener_;
  grpc::ClientContext context_;
  v1::StreamStepsRequest request_;
  // The slots of this stream alone. Destroying the reader gives back all slots that the server has
  // lent.
  std::unique_ptr<SlotReader> slots_;
  std::optional<MeteredCall> metered_;  // Set by Start().
  GuardedMessage guarded_request_;
  grpc::ByteBuffer message_;
};

}  // namespace systole

#endif  // SYSTOLE_CLIENT_LANES_CHUNK_STREAM_H_
