#include "server/step_writer.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "core/batch/slice_layout.h"
#include "core/checksum/crc32c.h"
#include "proto/framing/chunk.h"
#include "proto/framing/status_bridge.h"

namespace systole {

StepWriter* StepWriter::Start(std::unique_ptr<StepStream> stream, const StepRange& range,
                              ServiceCounters& counters) {
  auto* writer = new StepWriter(std::move(stream), range, counters);
  writer->AskForSlice();
  return writer;
}

StepWriter::StepWriter(std::unique_ptr<StepStream> stream, const StepRange& range,
                       ServiceCounters& counters)
    : stream_(std::move(stream)), range_(range), counters_(counters) {
  ++counters_.active_streams;
}

void StepWriter::AskForSlice() {
  stream_->Next([this](StepStream::Result result) { OnSlice(std::move(result)); });
}

void StepWriter::OnSlice(StepStream::Result result) {
  if (!result.ok()) {
    Finish(ToGrpcStatus(result.status()));
    return;
  }
  if (!result->has_value()) {
    Finish(grpc::Status::OK);
    return;
  }
  slice_ = **std::move(result);
  tensor_ = 0;
  offset_ = 0;
  if (counters_.draining && slice_->core() == range_.core_begin) {
    // Between two steps: what the client has is whole, the rest another server will send.
    notice_sent_ = true;
    message_ = EncodeChunk({.step = slice_->step(), .draining = true}, {}, nullptr);
    slice_ = nullptr;
    StartWrite(&message_);
    return;
  }
  WriteChunk();
}

void StepWriter::WriteChunk() {
  const SliceTensor& tensor = slice_->layout().tensors()[static_cast<size_t>(tensor_)];
  const int64_t bytes = std::min(kChunkBytes, tensor.spec.num_bytes() - offset_);
  const uint8_t* data = slice_->data() + tensor.offset + offset_;
  const ChunkHeader header = {
      .step = slice_->step(),
      .core = slice_->core(),
      .tensor = tensor_,
      .offset = offset_,
      .crc32c = Crc32c(
          absl::string_view(reinterpret_cast<const char*>(data), static_cast<size_t>(bytes)))};
  message_ = EncodeChunk(header, absl::MakeConstSpan(data, static_cast<size_t>(bytes)), slice_);
  counters_.payload_bytes_sent += bytes;
  offset_ += bytes;
  if (offset_ == tensor.spec.num_bytes()) {
    ++tensor_;
    offset_ = 0;
  }
  StartWrite(&message_);
}

void StepWriter::OnWriteDone(bool ok) {
  message_.Clear();
  if (!ok) {
    slice_ = nullptr;
    Finish(ToGrpcStatus(absl::CancelledError("the client is gone")));
    return;
  }
  if (notice_sent_) {
    Finish(grpc::Status::OK);
    return;
  }
  if (tensor_ < static_cast<int>(slice_->layout().tensors().size())) {
    WriteChunk();
    return;
  }
  ++counters_.slices_served;
  if (slice_->core() == range_.core_end - 1) ++counters_.steps_served;
  slice_ = nullptr;
  AskForSlice();
}

void StepWriter::OnCancel() { stream_->Cancel(); }

void StepWriter::OnDone() {
  --counters_.active_streams;
  delete this;
}

}  // namespace systole
