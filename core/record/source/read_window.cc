#include "core/record/source/read_window.h"

#include <algorithm>
#include <utility>

#include "core/status/status_macros.h"

namespace systole {
namespace {

// A system call costs about as much as copying this many bytes. A Peek() farther away than that
// gets its own small read.
constexpr uint64_t kJumpBytes = 8 << 10;
// Calls of Peek() that are closer share reads of this size.
constexpr uint64_t kPeekReadBytes = 64 << 10;

}  // namespace

absl::StatusOr<ReadWindow> ReadWindow::Create(const ByteSource& source, uint64_t source_bytes,
                                              int64_t read_bytes) {
  SYSTOLE_ASSIGN_OR_RETURN(
      AlignedBuffer buffer,
      AlignedBuffer::Create(read_bytes + static_cast<int64_t>(kCopyAlignment)));
  return ReadWindow(&source, source_bytes, static_cast<uint64_t>(read_bytes), std::move(buffer));
}

absl::StatusOr<absl::string_view> ReadWindow::Piece(uint64_t offset, uint64_t max_bytes) {
  if (offset < begin_ || offset >= end_) {
    SYSTOLE_RETURN_IF_ERROR(AtWithReadOf(offset, 1, read_bytes_).status());
  }
  return absl::string_view(data() + (offset - begin_), std::min(end_ - offset, max_bytes));
}

absl::StatusOr<const char*> ReadWindow::Peek(uint64_t offset, uint64_t bytes) {
  // This is true for a jump backwards, too: the difference is unsigned.
  const bool jumped = offset - begin_ > end_ - begin_ + kJumpBytes;
  return AtWithReadOf(offset, bytes, jumped ? bytes : std::min(read_bytes_, kPeekReadBytes));
}

absl::StatusOr<const char*> ReadWindow::AtWithReadOf(uint64_t offset, uint64_t bytes,
                                                     uint64_t read_bytes) {
  if (offset < begin_ || offset + bytes > end_) {
    const uint64_t size = std::min(read_bytes, source_bytes_ - offset);
    begin_ = end_ = 0;  // Holds nothing if the read fails.
    SYSTOLE_RETURN_IF_ERROR(ReadExactlyAt(
        *source_, offset,
        absl::MakeSpan(reinterpret_cast<char*>(buffer_.data()) + offset % kCopyAlignment, size)));
    begin_ = offset;
    end_ = offset + size;
  }
  return data() + (offset - begin_);
}

}  // namespace systole
