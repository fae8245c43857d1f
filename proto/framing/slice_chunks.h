// Cuts one core's slice of a step into chunks, in the order that the protocol requires: the tensors
// in the order of the layout, and each tensor from its first byte to its last.
//
// Thread-compatible value type.
#ifndef SYSTOLE_PROTO_FRAMING_SLICE_CHUNKS_H_
#define SYSTOLE_PROTO_FRAMING_SLICE_CHUNKS_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <utility>

#include "core/batch/slice_layout.h"
#include "core/batch/stage_times.h"
#include "grpcpp/support/byte_buffer.h"

namespace systole {

class SliceChunks {
 public:
  // An empty slice: done() is true.
  SliceChunks() = default;

  // The slice at `data`, laid out as `layout`. `owner` keeps `data` and `layout` alive; every chunk
  // shares `owner`. The first chunk carries `not_shared` (v1::NotShared) and `stages`.
  SliceChunks(int64_t step, int core, const SliceLayout& layout, const uint8_t* data,
              std::shared_ptr<const void> owner, int32_t not_shared = 0,
              const std::optional<StageTimes>& stages = std::nullopt)
      : step_(step),
        core_(core),
        layout_(&layout),
        data_(data),
        owner_(std::move(owner)),
        not_shared_(not_shared),
        stages_(stages) {}

  // Whether every byte has been cut into a chunk.
  bool done() const {
    return layout_ == nullptr || tensor_ == static_cast<int>(layout_->tensors().size());
  }

  // The next chunk, with its CRC. Sets `payload_bytes` to the number of bytes of the slice
  // in this chunk.
  // REQUIRES: !done().
  grpc::ByteBuffer Next(int64_t& payload_bytes);

 private:
  int64_t step_ = 0;
  int core_ = 0;
  const SliceLayout* layout_ = nullptr;
  const uint8_t* data_ = nullptr;
  std::shared_ptr<const void> owner_;
  int32_t not_shared_ = 0;
  std::optional<StageTimes> stages_;
  // The place of the next byte to send: a tensor, and an offset in this tensor.
  int tensor_ = 0;
  int64_t offset_ = 0;
};

}  // namespace systole

#endif  // SYSTOLE_PROTO_FRAMING_SLICE_CHUNKS_H_
