// A moving window over a ByteSource, for code that walks forward and looks at a few bytes here and
// there. Looks that are close to each other share one read. If looks are far apart (Peek()), the
// bytes between them are not read. Two looks are close if at most 8 KiB lie between them or, in a
// source that is not local, at most 1 MiB, because each read of such a source may be a request to a
// server. In such a source each read also asks for twice as many bytes as the read before it, up to
// 8 MiB. After a jump, the reads are small again.
//
// Thread-compatible. Borrows the source, which must outlive the window.
#ifndef SYSTOLE_CORE_RECORD_SOURCE_READ_WINDOW_H_
#define SYSTOLE_CORE_RECORD_SOURCE_READ_WINDOW_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "core/memory/aligned_buffer.h"
#include "core/storage/byte_source.h"

namespace systole {

class ReadWindow {
 public:
  // `source_bytes` is the source's size. A read asks for `read_bytes`, or for more if the source is
  // not local. Near the end of the source, a read asks for all bytes that are left. All functions
  // that read return Cancelled if InterruptRequested().
  static absl::StatusOr<ReadWindow> Create(const ByteSource& source, uint64_t source_bytes,
                                           int64_t read_bytes);

  uint64_t source_bytes() const { return source_bytes_; }

  // The bytes from `offset` on, as many as the window has, but at least 1 and at most `max_bytes`.
  // Valid until the next call. DataLoss if the source has fewer than source_bytes() bytes.
  // REQUIRES: offset < source_bytes(), max_bytes > 0.
  absl::StatusOr<absl::string_view> Piece(uint64_t offset, uint64_t max_bytes);

  // The bytes from `offset` on that are in memory already. Reads nothing. The result may be empty,
  // and it may have more bytes than any call asked for. Valid until the next call that reads.
  absl::string_view Held(uint64_t offset) const {
    if (offset < begin_ || offset >= end_) return {};
    return absl::string_view(data() + (offset - begin_), end_ - offset);
  }

  // Exactly the `bytes` bytes at `offset`. Valid until the next call.
  // REQUIRES: offset + bytes <= source_bytes(), bytes <= read_bytes.
  absl::StatusOr<const char*> At(uint64_t offset, uint64_t bytes) {
    return AtWithReadOf(offset, bytes, ahead_bytes_);
  }

  // Like At(), for looks that may be far apart. If `offset` is far from the window, Peek() reads
  // only the `bytes` bytes at `offset`. Otherwise, in a local source, it reads at most 64 KiB.
  absl::StatusOr<const char*> Peek(uint64_t offset, uint64_t bytes);

 private:
  ReadWindow(const ByteSource* source, uint64_t source_bytes, bool is_far,
             uint64_t first_read_bytes, uint64_t most_read_bytes, AlignedBuffer buffer)
      : source_(source),
        source_bytes_(source_bytes),
        is_far_(is_far),
        first_read_bytes_(first_read_bytes),
        most_read_bytes_(most_read_bytes),
        ahead_bytes_(first_read_bytes),
        buffer_(std::move(buffer)) {}

  // Whether `offset` is far from the window: before it, or too far behind it.
  bool IsJump(uint64_t offset) const;
  absl::StatusOr<const char*> AtWithReadOf(uint64_t offset, uint64_t bytes, uint64_t read_bytes);
  // The source's byte `begin_` in memory. It may lie behind the start of buffer_, because its place
  // is chosen for fast copies (kCopyAlignment).
  const char* data() const {
    return reinterpret_cast<const char*>(buffer_.data()) + begin_ % kCopyAlignment;
  }

  const ByteSource* source_;
  uint64_t source_bytes_;
  bool is_far_;  // Not local.
  uint64_t first_read_bytes_;
  uint64_t most_read_bytes_;
  uint64_t ahead_bytes_;  // How many bytes the next read asks for.
  AlignedBuffer buffer_;
  uint64_t begin_ = 0;  // data() holds the source's bytes [begin_, end_).
  uint64_t end_ = 0;
};

}  // namespace systole

#endif  // SYSTOLE_CORE_RECORD_SOURCE_READ_WINDOW_H_
