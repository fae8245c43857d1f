// The pieces of a stored file from which the bytes of another source are made. In this file, "the
// source" is that other source. Example: the source has the bytes of a compressed file after
// decompression. Then a piece is the part of the compressed file that must be read to decompress a
// chunk. Other threads can read whole pieces ahead. Then the thread that makes the source's bytes
// does not read the stored file.
//
// Pieces have numbers. There are one or two kinds of pieces. Each byte is made from at least one
// piece of the first kind. Some bytes also need a piece of the second kind. Within a kind, later
// bytes need later pieces, and later pieces lie behind earlier pieces in the stored file.
// Neighbouring pieces may share a byte.
//
// Thread-safe: every implementation must allow concurrent calls of all its const methods.
#ifndef SYSTOLE_CORE_STORAGE_STORED_PIECES_H_
#define SYSTOLE_CORE_STORAGE_STORED_PIECES_H_

#include <array>
#include <cstddef>
#include <cstdint>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace systole {

class ByteSource;

// The bytes [begin, end) of a source.
struct ByteStretch {
  uint64_t begin = 0;
  uint64_t end = 0;

  friend bool operator==(const ByteStretch&, const ByteStretch&) = default;
};

// The pieces [begin, end), of one kind.
struct PieceRange {
  int64_t begin = 0;
  int64_t end = 0;

  friend bool operator==(const PieceRange&, const PieceRange&) = default;
};

// One range for each kind. The second range may be empty.
using PieceRanges = std::array<PieceRange, 2>;

class StoredPieces {
 public:
  virtual ~StoredPieces() = default;

  // The stored file. A read of it may wait.
  virtual const ByteSource& stored() const = 0;

  // Where a piece lies in stored(). Never empty. O(1). REQUIRES: there is such a piece.
  virtual ByteStretch PlaceOf(int64_t piece) const = 0;
  // The pieces from which these bytes of the source are made. O(log pieces). REQUIRES: bytes.begin
  // < bytes.end, and the source has these bytes.
  virtual PieceRanges PiecesOf(const ByteStretch& bytes) const = 0;
  // The bytes of the source that need at least one of these pieces. REQUIRES: the range is not
  // empty.
  virtual ByteStretch BytesOf(const PieceRange& pieces) const = 0;

  // A function that returns the bytes of the piece at `place` in stored(), or the error of reading
  // them.
  using Fetched = absl::FunctionRef<absl::StatusOr<absl::string_view>(const ByteStretch& place)>;
  // Fills `out` with the source's bytes at `offset`. Calls `fetched` only for the pieces that
  // PiecesOf() returns for these bytes, and never reads stored(). Errors are those of `fetched` and
  // of the source's ReadAt(). REQUIRES: the source has the bytes.
  virtual absl::Status Make(uint64_t offset, absl::Span<char> out, Fetched fetched) const = 0;
};

}  // namespace systole

#endif  // SYSTOLE_CORE_STORAGE_STORED_PIECES_H_
