// The points of a compressed file at which decompression can begin. To reach a byte, only the bytes
// from the point before it to the next point are decompressed. A scan of the whole file finds the
// points, and a second file keeps them.
//
// Between two points lies a chunk, which is decompressed as a whole. Inside a deflate stream a
// point needs its window: the 32 KiB that were decompressed before it.
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
// The most points of a file. The points take 24 MiB of memory, and their windows take 32 GiB beside
// the file.
inline constexpr size_t kMaxRestartPoints = 1 << 20;

struct RestartPoint {
  uint64_t compressed_bit = 0;  // In the file. Inside a deflate stream it may lie within a byte.
  uint64_t offset = 0;          // The decompressed byte that comes next.
  uint64_t window_hash = 0;     // XXH3-64 of the window; 0 if there is none.

  bool operator==(const RestartPoint&) const = default;
};

// Value type. A table from RestartScan::Take() or ParseRestartTable() has a point at the beginning.
// In the table, compressed_bit and offset rise from point to point, and only an empty file has an
// empty chunk.
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
  // Called with the window of each point except the first, in order. Only deflate has windows.
  using WindowSink = absl::FunctionRef<absl::Status(absl::string_view window)>;

  // The distance from a point to the next one is at least `spacing` and at most `max_chunk_bytes`
  // decompressed bytes.
  RestartScan(uint64_t spacing, uint64_t max_chunk_bytes, WindowSink windows)
      : spacing_(spacing), max_chunk_bytes_(max_chunk_bytes), windows_(windows) {
    found_.points.push_back({});
  }

  bool Wants(uint64_t offset) const { return offset - last().offset >= spacing_; }
  // Offers a point, with its window or an empty `window`. The point is kept only if bytes follow
  // it.
  // REQUIRES: Wants(point.offset).
  void Offer(const RestartPoint& point, absl::string_view window);
  // Tells this object that the decompressed file has at least `size_bytes` bytes. Returns errors of
  // the sink. ResourceExhausted if a chunk would become too large (it is one zstd frame, or one
  // deflate block), or if there would be more than kMaxRestartPoints.
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

// The table as it is kept, for this state of the file:
//   points x (u64le compressed_bit, u64le offset, u64le window_hash)
//   u64le file bytes, XXH3-64 of its identity, compression, size_bytes, points, XXH3-64 of all
//         before it, magic
std::string RestartTableBytes(const StoredState& file, Compression compression,
                              const RestartPoints& points);

// The bytes of a table's last part, the trailer. It says how long the table is.
inline constexpr size_t kRestartTrailerBytes = 56;
// Bytes of the table that ends with `trailer`, including the trailer.
//   InvalidArgument  `trailer` is not a trailer, or names more than kMaxRestartPoints.
absl::StatusOr<uint64_t> RestartTableSize(absl::string_view trailer);

// Parses a whole table.
//   FailedPrecondition  the table was made for another state of the file, or the file has no
//                       identity.
//   InvalidArgument     the bytes are not such a table. The message says what is wrong.
absl::StatusOr<RestartPoints> ParseRestartTable(absl::string_view bytes, const StoredState& file,
                                                Compression compression, uint64_t max_chunk_bytes);

}  // namespace systole

#endif  // SYSTOLE_CORE_COMPRESSION_RESTART_POINTS_H_
