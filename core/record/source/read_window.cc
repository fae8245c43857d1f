#include "core/record/source/read_window.h"

#include <algorithm>
#include <utility>

#include "core/interrupt/interrupt.h"
#include "core/status/status_macros.h"

namespace systole {
namespace {

// A system call costs about as much as copying this many bytes. A Peek() at a place farther away
// than kJumpBytes gets its own small read.
constexpr uint64_t kJumpBytes = 8 << 10;
// Calls of Peek() at closer places share reads of this size.
constexpr uint64_t kPeekReadBytes = 64 << 10;

// kJumpBytes for a source that is not local. Each read of such a source may be a request, whose
// answer begins after 1 ms (a server in the same room) to 100 ms (a store of objects). In that time
// 0.1 to 10 MiB could be transferred.
constexpr uint64_t kFarJumpBytes = 1 << 20;

}  // namespace

absl::StatusOr<ReadWindow> ReadWindow::Create(const ByteSource& source, uint64_t source_bytes,
                                              int64_t read_bytes) {
  const bool is_far = !source.is_local();
  const auto least = static_cast<uint64_t>(read_bytes);
  const uint64_t first = is_far ? std::max(least, kFirstFarReadBytes) : least;
  const uint64_t most = is_far ? std::max(first, std::min(source_bytes, kMostFarReadBytes)) : least;
  SYSTOLE_ASSIGN_OR_RETURN(AlignedBuffer buffer,
                           AlignedBuffer::Create(static_cast<int64_t>(most + kCopyAlignment)));
  return ReadWindow(&source, source_bytes, is_far, first, most, std::move(buffer));
}

absl::StatusOr<absl::string_view> ReadWindow::Piece(uint64_t offset, uint64_t max_bytes) {
  if (offset < begin_ || offset >= end_) {
    SYSTOLE_RETURN_IF_ERROR(At(offset, 1).status());
  }
  return absl::string_view(data() + (offset - begin_), std::min(end_ - offset, max_bytes));
}

absl::StatusOr<const char*> ReadWindow::Peek(uint64_t offset, uint64_t bytes) {
  if (IsJump(offset)) return AtWithReadOf(offset, bytes, bytes);
  return AtWithReadOf(offset, bytes,
                      is_far_ ? ahead_bytes_ : std::min(ahead_bytes_, kPeekReadBytes));
}

bool ReadWindow::IsJump(uint64_t offset) const {
  // If `offset` is before begin_, the unsigned difference is huge, so this is a jump, too.
  return offset - begin_ > end_ - begin_ + (is_far_ ? kFarJumpBytes : kJumpBytes);
}

absl::StatusOr<const char*> ReadWindow::AtWithReadOf(uint64_t offset, uint64_t bytes,
                                                     uint64_t read_bytes) {
  if (offset < begin_ || offset + bytes > end_) {
    // A scan may take minutes, and spends nearly all its time here.
    if (InterruptRequested()) return InterruptedError();
    // For a local source, first_read_bytes_ and most_read_bytes_ are equal.
    ahead_bytes_ =
        IsJump(offset) ? first_read_bytes_ : std::min(2 * ahead_bytes_, most_read_bytes_);
    const uint64_t size = std::min(read_bytes, source_bytes_ - offset);
    begin_ = end_ = 0;  // The window is empty if the read fails.
    SYSTOLE_RETURN_IF_ERROR(ReadExactlyAt(
        *source_, offset,
        absl::MakeSpan(reinterpret_cast<char*>(buffer_.data()) + offset % kCopyAlignment, size)));
    begin_ = offset;
    end_ = offset + size;
  }
  return data() + (offset - begin_);
}

}  // namespace systole
