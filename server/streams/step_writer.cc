#include "server/streams/step_writer.h"

#include <utility>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "proto/framing/chunk.h"
#include "proto/framing/status_bridge.h"
#include "server/streams/end_cause.h"

namespace systole {
namespace {

// The most bytes that gRPC keeps back after a write with a buffer hint
// (GRPC_ARG_HTTP2_WRITE_BUFFER_SIZE).
constexpr int64_t kSmallChunkBytes = 64 << 10;

}  // namespace

StepWriter* StepWriter::Start(std::unique_ptr<StepStream> stream, const StepRange& range,
                              StreamSlots slots, std::shared_ptr<StreamHandle> handle,
                              RunningStreams& running, ServiceCounters& counters,
                              NotSharedLog& not_shared, StreamLog log, StreamTrace trace,
                              std::function<void(const CoreSlice&)> tap) {
  auto* writer =
      new StepWriter(std::move(stream), range, std::move(slots), std::move(handle), running,
                     counters, not_shared, std::move(log), std::move(trace), std::move(tap));
  // The metadata is sent on its own. Otherwise gRPC would keep the metadata back together with a
  // small first chunk, and would report neither as sent before more data follows.
  writer->StartSendInitialMetadata();
  writer->AskForSlice();
  return writer;
}

StepWriter::StepWriter(std::unique_ptr<StepStream> stream, const StepRange& range,
                       StreamSlots slots, std::shared_ptr<StreamHandle> handle,
                       RunningStreams& running, ServiceCounters& counters, NotSharedLog& not_shared,
                       StreamLog log, StreamTrace trace, std::function<void(const CoreSlice&)> tap)
    : stream_(std::move(stream)),
      range_(range),
      slots_(std::move(slots)),
      handle_(std::move(handle)),
      running_(running),
      counters_(counters),
      not_shared_(not_shared),
      log_(std::move(log)),
      trace_(std::move(trace)),
      tap_(std::move(tap)) {}

void StepWriter::Write(grpc::WriteOptions options) {
  handle_->Offered();
  StartWrite(&message_, options);
}

void StepWriter::CountBytes(int64_t payload_bytes) {
  counters_.payload_bytes += payload_bytes;
  handle_->SentBytes(payload_bytes);
  log_.CountBytes(payload_bytes);
}

void StepWriter::AskForSlice() {
  stream_->Next([this](StepStream::Result result) { OnSlice(std::move(result)); });
}

void StepWriter::OnSlice(StepStream::Result result) {
  if (!result.ok()) {
    End(result.status());
    return;
  }
  if (!result->has_value()) {
    End(absl::OkStatus(), "all sent");
    return;
  }
  const SlicePtr slice = **std::move(result);
  step_ = slice->step();
  core_ = slice->core();
  if (counters_.draining && core_ == range_.core_begin) {
    // The client has whole steps only, because no slice of this step was sent. Another server will
    // send the remaining steps.
    notice_sent_ = true;
    message_ = EncodeChunk({.step = slice->step(), .draining = true}, {}, nullptr);
    Write();
    return;
  }
  trace_.BeginSlice(core_, slice->stages());
  tap_(*slice);
  const v1::NotShared not_shared = Lend(slice);
  if (slots_.session != nullptr && not_shared == v1::NO_REASON) {
    const SliceLayout& layout = slice->layout();
    CountBytes(layout.payload_bytes());
    counters_.shared_payload_bytes += layout.payload_bytes();
    message_ = EncodeChunk({.step = slice->step(),
                            .core = core_,
                            .slot = slice->sealed()->id(),
                            .slot_bytes = layout.slice_bytes(),
                            .stages = slice->stages()},
                           {}, nullptr);
    Write();
    return;
  }
  not_shared_.Add(not_shared);
  chunks_ = SliceChunks(slice->step(), core_, slice->layout(), slice->data(), slice, not_shared,
                        slice->stages());
  WriteChunk();
}

v1::NotShared StepWriter::Lend(const SlicePtr& slice) {
  if (slots_.session == nullptr) return slots_.not_shared;
  if (slice->sealed() == nullptr) return v1::NO_SLOT_LEFT;
  return slots_.session->Lend(slice->sealed(), slice);
}

void StepWriter::WriteChunk() {
  int64_t payload_bytes = 0;
  message_ = chunks_.Next(payload_bytes);
  CountBytes(payload_bytes);
  grpc::WriteOptions options;
  // A small chunk, such as labels, waits for the next one, so that both go in one system call.
  if (!chunks_.done() && payload_bytes <= kSmallChunkBytes) options.set_buffer_hint();
  Write(options);
}

void StepWriter::OnWriteDone(bool ok) {
  counters_.send_seconds += absl::ToDoubleSeconds(handle_->Taken());
  message_.Clear();
  if (!ok) {
    End(absl::CancelledError("the client is gone"));
    return;
  }
  if (notice_sent_) {
    End(absl::OkStatus(), "this server is draining");
    return;
  }
  if (!chunks_.done()) {
    WriteChunk();
    return;
  }
  trace_.EndSlice();
  if (core_ == range_.core_end - 1) {
    ++counters_.steps_served;
    handle_->SentStep();
    log_.CountStep();
    trace_.EndStep(step_);
  }
  chunks_ = SliceChunks();  // Gives the slice back before the next one is asked for.
  AskForSlice();
}

void StepWriter::End(const absl::Status& given, absl::string_view why) {
  // A stream that was stopped looks cancelled here.
  const absl::Status stopped = handle_->stopped();
  const absl::Status& status = stopped.ok() ? given : stopped;
  const bool drained = status.ok() && notice_sent_;
  counters_.ended.Count(drained ? EndCause::kDraining : EndCauseOf(status));
  const bool expected = status.ok() || absl::IsCancelled(status);
  log_.End(expected ? LogLevel::kInfo : LogLevel::kWarn,
           stopped.ok() && !why.empty() ? why : status.message());
  trace_.End(status);
  Finish(ToGrpcStatus(status));
}

void StepWriter::OnCancel() { stream_->Cancel(); }

void StepWriter::OnDone() {
  running_.Remove(*handle_);
  --counters_.active_streams;
  delete this;
}

}  // namespace systole
