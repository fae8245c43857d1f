// Sends the slices of one StepStream. A slice is sent as chunks that refer to its memory or, if the
// client shares memory, as a message that names its slot. Only one write is outstanding at a time.
// This limit holds back a stream whose client is slow. HTTP/2's windows and, for slots, the
// stream's own window (StreamMemory) do this, too.
//
//   Next() -> slice -> chunk, chunk, .. -> Next() -> .. -> Finish
//
// Apart from the call's metadata, exactly one operation is pending at any moment: a Next() or a
// write. The thread that completes an operation starts the next one, so no lock is needed. When the
// call is cancelled, OnCancel() cancels the StepStream. This completes a pending Next().
//
// Thread-compatible.
#ifndef SYSTOLE_SERVER_STREAMS_STEP_WRITER_H_
#define SYSTOLE_SERVER_STREAMS_STEP_WRITER_H_

#include <cstdint>
#include <functional>
#include <memory>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "core/engine/step_engine.h"
#include "grpcpp/support/byte_buffer.h"
#include "grpcpp/support/server_callback.h"
#include "proto/framing/slice_chunks.h"
#include "server/slots/not_shared_log.h"
#include "server/slots/slot_session.h"
#include "server/streams/running_streams.h"
#include "server/streams/service_counters.h"
#include "server/streams/stream_handle.h"
#include "server/streams/stream_log.h"
#include "server/traces/stream_trace.h"
#include "systole/v1/slots.pb.h"

namespace systole {

// Owned by gRPC: deletes itself when the call is over.
class StepWriter final : public grpc::ServerWriteReactor<grpc::ByteBuffer> {
 public:
  // Begins to send. Slices in sealed memory are lent through the session of `slots`, if the session
  // accepts them. All other slices go as bytes, with the reason why they are not shared. `running`,
  // `counters` and `not_shared` must outlive the call. At the stream's end, the writer removes the
  // stream from `running` and from counters.active_streams, and logs the end. REQUIRES: the caller
  // has added the stream to both. `tap` is called with each slice before the slice is sent.
  static StepWriter* Start(std::unique_ptr<StepStream> stream, const StepRange& range,
                           StreamSlots slots, std::shared_ptr<StreamHandle> handle,
                           RunningStreams& running, ServiceCounters& counters,
                           NotSharedLog& not_shared, StreamLog log, StreamTrace trace,
                           std::function<void(const CoreSlice&)> tap);

  void OnWriteDone(bool ok) override;
  void OnCancel() override;
  void OnDone() override;

 private:
  StepWriter(std::unique_ptr<StepStream> stream, const StepRange& range, StreamSlots slots,
             std::shared_ptr<StreamHandle> handle, RunningStreams& running,
             ServiceCounters& counters, NotSharedLog& not_shared, StreamLog log, StreamTrace trace,
             std::function<void(const CoreSlice&)> tap);

  void CountBytes(int64_t payload_bytes);
  // Begins to write message_. Until gRPC has taken message_, the client counts as stalled.
  void Write(grpc::WriteOptions options = {});
  void AskForSlice();
  void OnSlice(StepStream::Result result);
  // Lends the slice to the client. NO_REASON if the slice is lent, or if the client did not ask for
  // sharing.
  v1::NotShared Lend(const SlicePtr& slice);
  void WriteChunk();
  // Ends the call. `why` is for the log; empty: the status's message.
  void End(const absl::Status& given, absl::string_view why = "");

  const std::unique_ptr<StepStream> stream_;
  const StepRange range_;
  // The session of slots_ is shared with the thread that receives the client's messages.
  const StreamSlots slots_;
  const std::shared_ptr<StreamHandle> handle_;  // Shared with the threads that may end the stream.
  RunningStreams& running_;
  ServiceCounters& counters_;
  NotSharedLog& not_shared_;
  StreamLog log_;
  StreamTrace trace_;
  const std::function<void(const CoreSlice&)> tap_;

  SliceChunks chunks_;  // The chunks of the slice being sent.
  int64_t step_ = 0;    // The step and the core of that slice.
  int core_ = 0;
  bool notice_sent_ = false;
  // The message that is being written. gRPC reads it until OnWriteDone.
  grpc::ByteBuffer message_;
};

}  // namespace systole

#endif  // SYSTOLE_SERVER_STREAMS_STEP_WRITER_H_
