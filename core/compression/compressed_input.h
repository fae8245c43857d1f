// Reads the compressed bytes of a file piece by piece, from an offset to the end.
//
// Thread-compatible. Does not own the source.
#ifndef SYSTOLE_CORE_COMPRESSION_COMPRESSED_INPUT_H_
#define SYSTOLE_CORE_COMPRESSION_COMPRESSED_INPUT_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "core/storage/byte_source.h"

namespace systole {

class CompressedInput {
 public:
  // `piece_bytes` are read at a time.
  CompressedInput(const ByteSource& source, uint64_t offset, size_t piece_bytes)
      : source_(source), end_(offset), buffer_(piece_bytes) {}

  // The next bytes, valid until the next call; empty at the end. Returns errors of the source.
  absl::StatusOr<absl::string_view> Next() {
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
  std::vector<char> buffer_;
};

}  // namespace systole

#endif  // SYSTOLE_CORE_COMPRESSION_COMPRESSED_INPUT_H_
