// Reads the decompressed bytes of a compressed file at any offset. To read a byte, only its chunk
// is decompressed (restart_points.h says what chunks and windows are).
//
// If a read of the file may wait (ByteSource::may_wait()), a feed can read the file ahead as
// StoredPieces. The compressed bytes of each chunk are a piece. If a read of the file with the
// windows may wait, each window is a piece, too.
//
// Thread-safe. Owns the file; shares the cache.
#ifndef SYSTOLE_CORE_COMPRESSION_DECOMPRESSED_SOURCE_H_
#define SYSTOLE_CORE_COMPRESSION_DECOMPRESSED_SOURCE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "core/compression/chunk_cache.h"
#include "core/compression/compression.h"
#include "core/compression/restart_points.h"
#include "core/storage/byte_source.h"
#include "core/storage/store.h"
#include "core/storage/stored_pieces.h"

namespace systole {

struct DecompressedOptions {
  // kGzip, kZlib or kZstd.
  Compression compression = Compression::kGzip;
  // The path, in any store, of the file that keeps the restart points. Empty: Open() scans for the
  // points, and keeps them in memory.
  std::string restart_path = {};
  // Whether to scan even if there is a valid file of restart points.
  bool rebuild = false;
  // Whether the file of restart points may be written into a bucket (CheckMayKeep()).
  bool write_index = false;
  // Null: the source makes a cache of its own.
  std::shared_ptr<ChunkCache> chunks = {};
};

class DecompressedSource final : public ByteSource {
 public:
  // Reads the restart points of `file` from restart_path. If this is not possible, scans `file` for
  // the points and writes them to restart_path. Adds to `note` what a person should know about the
  // points or about their file. A note is not an error.
  //   DataLoss           the file is damaged or cut short, or has another kind of compression.
  //   ResourceExhausted  a frame or block is larger than half of the cache, the file has more than
  //                      kMaxRestartPoints, or windows in memory take more than 256 MiB.
  //   FailedPrecondition the file changed meanwhile.
  // Each message names the file. All other errors are those of reading the file.
  static absl::StatusOr<std::unique_ptr<DecompressedSource>> Open(
      std::unique_ptr<ByteSource> file, const DecompressedOptions& options, std::string* note);
  ~DecompressedSource() override;

  // Bytes that can no longer be decompressed read as zeros. Records with such bytes are noticed,
  // because their CRCs do not match.
  absl::StatusOr<size_t> ReadAt(uint64_t offset, absl::Span<char> out) const override;
  // The size after decompression.
  absl::StatusOr<uint64_t> Size() const override { return points_.size_bytes; }
  // True even if the file is not local: the size is certain, and small reads are cheap, because
  // chunks are cached.
  bool is_local() const override { return true; }
  const StoredPieces* pieces() const override { return pieces_.get(); }
  std::string identity() const override { return state_.identity; }
  absl::Status CheckUnchanged() const override { return file_->CheckUnchanged(); }
  absl::string_view name() const override { return file_->name(); }

 private:
  class Stored;
  class Pieces;
  // Writes the decompressed bytes of a chunk to `out`.
  using FillChunk = absl::FunctionRef<absl::Status(size_t chunk, absl::Span<char> out)>;

  DecompressedSource(std::unique_ptr<ByteSource> file, StoredState state, Compression compression,
                     std::shared_ptr<ChunkCache> chunks);

  absl::Status LoadPoints(const std::string& path);
  // Scans for the points. Keeps their windows in memory if restart_path is empty, or if its file
  // cannot be written.
  absl::Status FindPoints(const DecompressedOptions& options, std::string* note);
  // Scans for the points, and writes them to restart_path. `kept` becomes the error of writing the
  // file, and OK after an error of the scan. Returns either error.
  absl::Status FindPointsInto(const DecompressedOptions& options, absl::Status& kept);
  absl::Status Scan(uint64_t spacing, RestartScan::WindowSink windows);
  // From now on, the windows are read from `file`, which was opened at `path`.
  void SetWindows(const std::string& path, std::unique_ptr<const ByteSource> file);
  // The bytes of all windows together.
  uint64_t windows_bytes() const {
    return compression_ == Compression::kZstd ? 0 : (points_.chunks() - 1) * kWindowBytes;
  }
  // Reads from the windows; `offset` counts from the first window. Errors are WindowsError().
  absl::Status ReadWindows(uint64_t offset, absl::Span<char> out) const;
  // OK if `status` is OK. Otherwise the error to return if `status` is why a window cannot be read.
  absl::Status WindowsError(const absl::Status& status) const;
  // Returns WindowsError() if the checksum of the chunk's window does not match `window`.
  absl::Status CheckWindow(size_t chunk, absl::string_view window) const;
  // The chunk's window; empty if it has none. Returns WindowsError() if the window cannot be read,
  // or was changed since it was written.
  absl::StatusOr<std::string> WindowOf(size_t chunk) const;
  // The part of the compressed file from which the chunk is decompressed.
  ByteStretch StoredAt(size_t chunk) const;
  // Sets pieces_ if a read of the file or of the windows may wait.
  void MakePieces();
  absl::Status Fill(size_t chunk, absl::Span<char> out) const;
  // Like Fill(), but reads no file: `stored` has the bytes at StoredAt().
  absl::Status FillFrom(size_t chunk, absl::string_view stored, absl::string_view window,
                        absl::Span<char> out) const;
  absl::StatusOr<size_t> Copy(uint64_t offset, absl::Span<char> out, FillChunk fill) const;

  const std::unique_ptr<ByteSource> file_;
  const StoredState state_;  // The file's state at the scan.
  const Compression compression_;
  const std::shared_ptr<ChunkCache> chunks_;
  const uint64_t number_;  // The number of this file in the cache.
  RestartPoints points_;
  // For gzip and zlib: the windows of all points but the first, one after the other, are in the
  // file at windows_path_. If this path is empty, the windows are in windows_.
  std::string windows_path_;
  std::string windows_;
  // The file at windows_path_, if it is on a server. It stays open, because each opening would be a
  // request. Null: the file is opened for each read.
  std::unique_ptr<const ByteSource> windows_file_;
  bool windows_may_wait_ = false;
  std::unique_ptr<const StoredPieces> pieces_;  // Null: see pieces().
};

}  // namespace systole

#endif  // SYSTOLE_CORE_COMPRESSION_DECOMPRESSED_SOURCE_H_
