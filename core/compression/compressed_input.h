// Reads the compressed bytes of a file piece by piece, from an offset to the end.
//
// Thread-compatible. Does not own the source.
#ifndef SYSTOLE_CORE_COMPRESSION_COMPRESSED_INPUT_H_
#define SYSTOLE_CORE_COMPRESSION_COMPRESSED_INPUT_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "core/interrupt/interrupt.h"
#include "core/storage/byte_source.h"

namespace systole {

class CompressedInput {
 public:
  // `piece_bytes` are read at a time. Set `scans` if the caller reads the file to its end. If
  // `scans` is true and the file is not local, pieces grow up to kMostFarReadBytes.
  CompressedInput(const ByteSource& source, uint64_t offset, size_t piece_bytes, bool scans = false)
      : source_(source),
        end_(offset),
        most_bytes_(scans && !source.is_local() ? kMostFarReadBytes : piece_bytes),
        buffer_(piece_bytes) {}

  // The next bytes, valid until the next call; empty at the end. Returns errors of the source, and
  // Cancelled if InterruptRequested().
  absl::StatusOr<absl::string_view> Next() {
    if (InterruptRequested()) return InterruptedError();
    if (std::exchange(has_begun_, true) && buffer_.size() < most_bytes_) {
      buffer_.resize(std::min(most_bytes_, 2 * buffer_.size()));
    }
    const absl::StatusOr<size_t> read = source_.ReadAt(end_, absl::MakeSpan(buffer_));
    if (!read.ok()) return read.status();
    end_ += *read;
    return absl::string_view(buffer_.data(), *read);
  }
  // The position in the file at which the last piece ends.
  uint64_t end() const { return end_; }

 private:
  const ByteSource& source_;
  uint64_t end_;
  const size_t most_bytes_;
  bool has_begun_ = false;
  std::vector<char> buffer_;
};

}  // namespace systole

#endif  // SYSTOLE_CORE_COMPRESSION_COMPRESSED_INPUT_H_
