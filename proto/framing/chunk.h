// A `Chunk` message as gRPC slices. This code writes and reads the few header bytes by hand and
// does not copy the payload. On the wire the message is ordinary protobuf, so any generated stub
// reads it.
//
//   header fields | header_crc32c | tag and length of `data` | payload   (systole/v1/service.proto)
//   \________________ one small slice __________________/   \ batch memory /
//
// Every bit is guarded: the header fields by header_crc32c, the payload by crc32c. The bytes
// between header fields and payload (the field header_crc32c, and the tag and length of `data`)
// have only one valid form.
//
// Thread-compatible.
#ifndef SYSTOLE_PROTO_FRAMING_CHUNK_H_
#define SYSTOLE_PROTO_FRAMING_CHUNK_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "core/batch/stage_times.h"
#include "grpcpp/support/byte_buffer.h"
#include "grpcpp/support/slice.h"

namespace systole {

// The most payload bytes of a chunk. Measurements over loopback show that 0.5 to 1 MiB is fastest.
// The kernel copies a received chunk, and then our code copies it. A larger chunk does not stay in
// the processor's cache between these copies. With smaller chunks there are more messages, and each
// message has a fixed cost.
inline constexpr int64_t kChunkBytes = int64_t{1} << 20;

// The largest message that a client accepts, in bytes. Today no server sends more than kChunkBytes
// and a header.
inline constexpr int kMaxChunkMessageBytes = 8 << 20;

// The fields of the message `Chunk` except its data and header_crc32c.
struct ChunkHeader {
  int64_t step = 0;
  int32_t core = 0;
  int32_t tensor = 0;
  int64_t offset = 0;
  uint32_t crc32c = 0;
  bool draining = false;
  uint64_t slot = 0;
  int64_t slot_bytes = 0;
  int32_t not_shared = 0;
  // Within the bounds of stage_times.h, whatever the peer sent.
  std::optional<StageTimes> stages = std::nullopt;

  friend bool operator==(const ChunkHeader&, const ChunkHeader&) = default;
};

// Makes the message of `header` and `data`, with the header's CRC. The message refers to `data`
// without a copy, so `owner` must keep `data` alive. The message holds `owner` until the kernel has
// the last byte. Then any thread of gRPC may drop `owner`.
grpc::ByteBuffer EncodeChunk(const ChunkHeader& header, absl::Span<const uint8_t> data,
                             std::shared_ptr<const void> owner);

// A chunk that a peer sent. Shares the memory of the message.
class ReceivedChunk {
 public:
  // Reads the header. Fields may come in any order. Unknown fields are skipped. If a field comes
  // several times, its last value counts.
  //   InvalidArgument  `message` is not a Chunk.
  static absl::StatusOr<ReceivedChunk> Parse(const grpc::ByteBuffer& message);

  // Whether the header is as the server wrote it: it has a header_crc32c, this CRC matches the
  // bytes before it, and after it comes one `data` or nothing. Call this before you trust the
  // header.
  //   DataLoss  the header is damaged.
  absl::Status CheckHeader() const;

  const ChunkHeader& header() const { return header_; }
  // Bytes of `data`.
  int64_t data_bytes() const { return data_bytes_; }

  // Calls `take` with each piece of `data`, in order. Computes the CRC of each piece directly after
  // `take` returns, while the piece is in the cache.
  //   DataLoss  the CRC of `data` differs from the header's crc32c. `take` then got damaged bytes.
  absl::Status ForEachPiece(absl::FunctionRef<void(absl::Span<const uint8_t>)> take) const;

  // Copies `data` to `destination`, and checks `data` against the header's CRC while `data` is in
  // the cache.
  //   DataLoss  the CRC does not match; `destination` then holds the damaged bytes.
  // REQUIRES: destination.size() == data_bytes().
  absl::Status CopyTo(absl::Span<uint8_t> destination) const;

 private:
  ChunkHeader header_;
  std::vector<grpc::Slice> slices_;
  // Where `data` begins, in bytes from the beginning of the first slice of slices_.
  int64_t data_begin_ = 0;
  int64_t data_bytes_ = 0;
  // The number of bytes before header_crc32c. Nullopt unless header_crc32c is the last field, or is
  // followed only by one `data`.
  std::optional<int64_t> guarded_bytes_;
  uint32_t header_crc32c_ = 0;
};

}  // namespace systole

#endif  // SYSTOLE_PROTO_FRAMING_CHUNK_H_
