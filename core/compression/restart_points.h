// The points of a compressed file: places at which decompression can begin. A scan of the whole
// file finds the points, and a second file keeps them.
//
// The decompressed bytes from one point to the next are a chunk. To read a byte, the whole chunk
// with the byte is decompressed, but no other chunk. To begin at a point inside a deflate stream,
// the point's window is needed: the 32 KiB of decompressed bytes before the point.
#ifndef SYSTOLE_CORE_COMPRESSION_RESTART_POINTS_H_
#define SYSTOLE_CORE_COMPRESSION_RESTART_POINTS_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "core/compression/compression.h"
#include "core/storage/store.h"

namespace systole {

inline constexpr size_t kWindowBytes = 32 << 10;
// The most points of a file. So many points take 24 MiB of memory, and 32 GiB for their windows in
// the file of restart points.
inline constexpr size_t kMaxRestartPoints = 1 << 20;

struct RestartPoint {
  // The point's place in the compressed file, in bits: a deflate block may begin within a byte.
  uint64_t compressed_bit = 0;
  // The place, in the decompressed file, of the first byte after the point.
  uint64_t offset = 0;
  uint64_t window_hash = 0;  // XXH3-64 of the window; 0 if there is none.

  bool operator==(const RestartPoint&) const = default;
};

// All points of a file, in order. Value type. RestartScan::Take() and ParseRestartTable() make sure
// that the first point is the beginning of the file, that compressed_bit and offset rise from point
// to point, and that a chunk is empty only if the file is empty.
struct RestartPoints {
  std::vector<RestartPoint> points;
  uint64_t size_bytes = 0;  // Size of the decompressed file.

  bool operator==(const RestartPoints&) const = default;

  size_t chunks() const { return points.size(); }
  uint64_t chunk_bytes(size_t chunk) const {
    return (chunk + 1 < points.size() ? points[chunk + 1].offset : size_bytes) -
           points[chunk].offset;
  }
  uint64_t largest_chunk_bytes() const;
  // The chunk that holds the byte. REQUIRES: offset < size_bytes.
  size_t ChunkAt(uint64_t offset) const;
};

// Gathers the points of one scan. Thread-compatible.
class RestartScan {
 public:
  // Called for each point except the first, in order, with the point's window. The window is empty
  // for zstd.
  using WindowSink = absl::FunctionRef<absl::Status(absl::string_view window)>;

  // From each point to the next are at least `spacing` and at most `max_chunk_bytes` decompressed
  // bytes.
  RestartScan(uint64_t spacing, uint64_t max_chunk_bytes, WindowSink windows)
      : spacing_(spacing), max_chunk_bytes_(max_chunk_bytes), windows_(windows) {
    found_.points.push_back({});
  }

  bool Wants(uint64_t offset) const { return offset - last().offset >= spacing_; }
  // Offers a point, with its window or an empty `window`. The point is kept only if decompressed
  // bytes follow it. REQUIRES: Wants(point.offset).
  void Offer(const RestartPoint& point, absl::string_view window);
  // Call this after each step of the scan. `size_bytes` is the number of bytes that the scan has
  // decompressed so far. Returns errors of the WindowSink. ResourceExhausted if a zstd frame or a
  // deflate block makes a chunk too large, or if there are more than kMaxRestartPoints.
  absl::Status Reach(uint64_t size_bytes);

  RestartPoints Take() && { return std::move(found_); }

 private:
  const RestartPoint& last() const {
    return offered_.has_value() ? *offered_ : found_.points.back();
  }

  const uint64_t spacing_;
  const uint64_t max_chunk_bytes_;
  const WindowSink windows_;
  RestartPoints found_;
  std::optional<RestartPoint> offered_;  // The last point, if no bytes are known to follow it yet.
  std::string window_;                   // The window of offered_.
};

// The table of the points, as the file of restart points keeps it. `file` is the state of the
// compressed file. Each number has 8 bytes, least significant first.
//   for each point: compressed_bit, offset, window_hash
//   the trailer: file.size_bytes, XXH3-64 of file.identity, compression, points.size_bytes, number
//                of points, XXH3-64 of all bytes before this hash, magic number
std::string RestartTableBytes(const StoredState& file, Compression compression,
                              const RestartPoints& points);

// The bytes of a table's trailer. The trailer says how many points the table has.
inline constexpr size_t kRestartTrailerBytes = 56;
// Bytes of the table that ends with `trailer`, including the trailer.
//   InvalidArgument  `trailer` is not a trailer, or gives no points or more than
//                    kMaxRestartPoints.
absl::StatusOr<uint64_t> RestartTableSize(absl::string_view trailer);

// Parses a whole table.
//   FailedPrecondition  the table was made for another state of the file, or the file has no
//                       identity.
//   InvalidArgument     the bytes are not a valid table, or a chunk has more bytes than
//                       `max_chunk_bytes`. The message says what is wrong.
absl::StatusOr<RestartPoints> ParseRestartTable(absl::string_view bytes, const StoredState& file,
                                                Compression compression, uint64_t max_chunk_bytes);

}  // namespace systole

#endif  // SYSTOLE_CORE_COMPRESSION_RESTART_POINTS_H_
