#include "proto/framing/slice_chunks.h"

#include <algorithm>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "core/checksum/crc32c.h"
#include "core/status/check.h"
#include "proto/framing/chunk.h"

namespace systole {

grpc::ByteBuffer SliceChunks::Next(int64_t& payload_bytes) {
  SYSTOLE_CHECK(!done());
  const SliceTensor& tensor = layout_->tensors()[static_cast<size_t>(tensor_)];
  const int64_t tensor_bytes = tensor.spec.num_bytes();
  payload_bytes = std::min(kChunkBytes, tensor_bytes - offset_);
  const auto size = static_cast<size_t>(payload_bytes);
  const uint8_t* data = data_ + tensor.offset + offset_;
  ChunkHeader header = {
      .step = step_,
      .core = core_,
      .tensor = tensor_,
      .offset = offset_,
      .crc32c = Crc32c(absl::string_view(reinterpret_cast<const char*>(data), size))};
  if (tensor_ == 0 && offset_ == 0) {
    header.not_shared = not_shared_;
    header.stages = stages_;
  }
  offset_ += payload_bytes;
  if (offset_ == tensor_bytes) {
    ++tensor_;
    offset_ = 0;
  }
  return EncodeChunk(header, absl::MakeConstSpan(data, size), owner_);
}

}  // namespace systole
