#include "core/compression/decompressed_source.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/functional/function_ref.h"
#include "absl/strings/str_cat.h"
#include "core/checksum/xxh3.h"
#include "core/compression/compressing_sink.h"
#include "core/compression/deflate.h"
#include "core/compression/zstd.h"
#include "core/memory/aligned_buffer.h"
#include "core/status/check.h"
#include "core/status/status_macros.h"
#include "core/storage/stores/stored_file.h"
#include "core/text/foreign_text.h"

namespace systole {
namespace {

// At least this many decompressed bytes lie between two restart points of a deflate stream. A
// larger number costs time: to read a record, its whole chunk is decompressed. A smaller number
// costs space: with a window of 32 KiB for each point, the file of restart points already has an
// eighth of the size of the decompressed shard.
constexpr uint64_t kDeflateSpacing = 256 << 10;
// The spacing if the windows stay in memory. The windows then take 1/128 of the decompressed shard.
constexpr uint64_t kDeflateSpacingInMemory = 4 << 20;
constexpr size_t kMaxWindowsInMemory = size_t{256} << 20;
// The spacing for zstd: the size of the frames that `systole pack` writes.
constexpr uint64_t kZstdSpacing = kZstdFrameBytes;
// If a chunk has more bytes, a note says so, because each read in the chunk decompresses the whole
// chunk if the chunk is not cached.
constexpr uint64_t kLargeChunkBytes = 16 << 20;

absl::Status OfFile(const absl::Status& status, const ByteSource& file) {
  return absl::Status(status.code(), absl::StrCat("shard \"", ForeignName(BaseName(file.name())),
                                                  "\": ", status.message()));
}

void AddNote(std::string* note, absl::string_view more) {
  absl::StrAppend(note, note->empty() ? "" : "; ", more);
}

// Zeros the bytes of `out` after the first `done` bytes, because they could not be decompressed.
void ZeroFrom(size_t done, absl::Span<char> out) {
  std::fill(out.begin() + static_cast<ptrdiff_t>(done), out.end(), '\0');
}

// Another source without the bytes from `end` on.
class FrontOf final : public ByteSource {
 public:
  FrontOf(const ByteSource& source, uint64_t end) : source_(source), end_(end) {}

  absl::StatusOr<size_t> ReadAt(uint64_t offset, absl::Span<char> out) const override {
    return source_.ReadAt(offset, out.subspan(0, end_ - std::min(offset, end_)));
  }
  absl::StatusOr<uint64_t> Size() const override { return end_; }
  bool is_local() const override { return source_.is_local(); }
  absl::Status CheckUnchanged() const override { return source_.CheckUnchanged(); }
  absl::string_view name() const override { return source_.name(); }

 private:
  const ByteSource& source_;
  const uint64_t end_;
};

// Bytes that are in memory already.
class ViewSource final : public ByteSource {
 public:
  explicit ViewSource(absl::string_view bytes) : bytes_(bytes) {}

  absl::StatusOr<size_t> ReadAt(uint64_t offset, absl::Span<char> out) const override {
    if (offset >= bytes_.size()) return 0;
    return bytes_.copy(out.data(), out.size(), offset);
  }
  absl::StatusOr<uint64_t> Size() const override { return bytes_.size(); }
  bool is_local() const override { return true; }
  absl::Status CheckUnchanged() const override { return absl::OkStatus(); }
  absl::string_view name() const override { return "fetched bytes"; }

 private:
  const absl::string_view bytes_;
};

}  // namespace

// What a feed reads ahead: the file's bytes and, if a read of the windows may wait, after them the
// windows.
class DecompressedSource::Stored final : public ByteSource {
 public:
  explicit Stored(const DecompressedSource& source)
      : source_(source),
        file_bytes_(source.state_.size_bytes),
        windows_bytes_(source.windows_may_wait_ ? source.windows_bytes() : 0) {
    identity_ = source.state_.identity;
    if (windows_bytes_ > 0 && !identity_.empty()) {
      // Which window lies at which offset depends on the points, so the identity depends on them.
      absl::StrAppend(&identity_, "+",
                      Xxh3(RestartTableBytes(source.state_, source.compression_, source.points_)));
    }
  }

  bool has_windows() const { return windows_bytes_ > 0; }
  uint64_t file_bytes() const { return file_bytes_; }

  absl::StatusOr<size_t> ReadAt(uint64_t offset, absl::Span<char> out) const override {
    size_t done = 0;
    if (offset < file_bytes_) {
      const absl::Span<char> front = out.subspan(0, file_bytes_ - offset);
      SYSTOLE_ASSIGN_OR_RETURN(done, source_.file_->ReadAt(offset, front));
      if (done < front.size()) return done;
    }
    const uint64_t at = offset + done - file_bytes_;
    if (at >= windows_bytes_) return done;
    const absl::Span<char> rest = out.subspan(done, windows_bytes_ - at);
    if (rest.empty()) return done;
    SYSTOLE_RETURN_IF_ERROR(source_.ReadWindows(at, rest));
    return done + rest.size();
  }
  absl::StatusOr<uint64_t> Size() const override { return file_bytes_ + windows_bytes_; }
  bool may_wait() const override { return true; }
  std::string identity() const override { return identity_; }
  // Checks only the compressed file. A change of a window is found by the window's checksum.
  absl::Status CheckUnchanged() const override { return source_.file_->CheckUnchanged(); }
  absl::string_view name() const override { return source_.file_->name(); }

 private:
  const DecompressedSource& source_;
  const uint64_t file_bytes_;
  const uint64_t windows_bytes_;
  std::string identity_;
};

// The first pieces, one for each chunk, have the compressed bytes of chunks 0, 1, .. The other
// pieces are the windows of chunks 1, 2, .. Chunk 0 has no window.
class DecompressedSource::Pieces final : public StoredPieces {
 public:
  explicit Pieces(const DecompressedSource& source)
      : source_(source), stored_(source), chunks_(static_cast<int64_t>(source.points_.chunks())) {}

  const ByteSource& stored() const override { return stored_; }

  ByteStretch PlaceOf(int64_t piece) const override {
    if (piece < chunks_) return source_.StoredAt(static_cast<size_t>(piece));
    const uint64_t begin =
        stored_.file_bytes() + static_cast<uint64_t>(piece - chunks_) * kWindowBytes;
    return {.begin = begin, .end = begin + kWindowBytes};
  }

  PieceRanges PiecesOf(const ByteStretch& bytes) const override {
    const auto first = static_cast<int64_t>(source_.points_.ChunkAt(bytes.begin));
    const auto last = static_cast<int64_t>(source_.points_.ChunkAt(bytes.end - 1));
    PieceRanges pieces = {{{.begin = first, .end = last + 1}, {}}};
    if (stored_.has_windows()) {
      pieces[1] = {.begin = WindowOf(std::max<int64_t>(first, 1)), .end = WindowOf(last) + 1};
    }
    return pieces;
  }

  ByteStretch BytesOf(const PieceRange& pieces) const override {
    const size_t first = ChunkOf(pieces.begin);
    const size_t last = ChunkOf(pieces.end - 1);
    const RestartPoints& points = source_.points_;
    return {.begin = points.points[first].offset,
            .end = points.points[last].offset + points.chunk_bytes(last)};
  }

  absl::Status Make(uint64_t offset, absl::Span<char> out, Fetched fetched) const override {
    const auto fill = [&](size_t chunk, absl::Span<char> bytes) -> absl::Status {
      SYSTOLE_ASSIGN_OR_RETURN(const absl::string_view stored, fetched(source_.StoredAt(chunk)));
      if (!stored_.has_windows() || chunk == 0) {
        SYSTOLE_ASSIGN_OR_RETURN(const std::string window, source_.WindowOf(chunk));
        return source_.FillFrom(chunk, stored, window, bytes);
      }
      SYSTOLE_ASSIGN_OR_RETURN(const absl::string_view window,
                               fetched(PlaceOf(WindowOf(static_cast<int64_t>(chunk)))));
      SYSTOLE_RETURN_IF_ERROR(source_.CheckWindow(chunk, window));
      return source_.FillFrom(chunk, stored, window, bytes);
    };
    SYSTOLE_ASSIGN_OR_RETURN(const size_t made, source_.Copy(offset, out, fill));
    SYSTOLE_CHECK(made == out.size());
    return absl::OkStatus();
  }

 private:
  int64_t WindowOf(int64_t chunk) const { return chunks_ + chunk - 1; }
  size_t ChunkOf(int64_t piece) const {
    return static_cast<size_t>(piece < chunks_ ? piece : piece - chunks_ + 1);
  }

  const DecompressedSource& source_;
  const Stored stored_;
  const int64_t chunks_;
};

DecompressedSource::DecompressedSource(std::unique_ptr<ByteSource> file, StoredState state,
                                       Compression compression, std::shared_ptr<ChunkCache> chunks)
    : file_(std::move(file)),
      state_(std::move(state)),
      compression_(compression),
      chunks_(std::move(chunks)),
      number_(chunks_->NewFile()) {}

DecompressedSource::~DecompressedSource() { chunks_->Forget(number_); }

absl::StatusOr<std::unique_ptr<DecompressedSource>> DecompressedSource::Open(
    std::unique_ptr<ByteSource> file, const DecompressedOptions& options, std::string* note) {
  SYSTOLE_ASSIGN_OR_RETURN(const uint64_t file_bytes, file->Size());
  StoredState state = {.size_bytes = file_bytes, .identity = file->identity()};
  std::unique_ptr<DecompressedSource> source(new DecompressedSource(
      std::move(file), std::move(state), options.compression,
      options.chunks != nullptr ? options.chunks : std::make_shared<ChunkCache>()));
  const std::string& path = options.restart_path;
  absl::Status loaded = absl::NotFoundError("not asked for");
  if (!path.empty() && !options.rebuild) loaded = source->LoadPoints(path);
  if (!loaded.ok()) {
    if (!IsAbsent(loaded, path)) {
      AddNote(note, absl::StrCat("restart points \"", ShownName(path),
                                 "\" not used: ", loaded.message()));
    }
    const absl::Status found = source->FindPoints(options, note);
    if (!found.ok()) return OfFile(found, *source->file_);
    SYSTOLE_RETURN_IF_ERROR(source->CheckUnchanged());
  }
  source->MakePieces();
  const uint64_t largest = source->points_.largest_chunk_bytes();
  if (largest > kLargeChunkBytes) {
    AddNote(note, absl::StrCat("reading one of its records decompresses up to ", largest >> 20,
                               " MiB; `systole pack --compression zstd` writes small frames"));
  }
  return source;
}

absl::Status DecompressedSource::LoadPoints(const std::string& path) {
  SYSTOLE_ASSIGN_OR_RETURN(std::unique_ptr<ByteSource> kept, OpenStored(path));
  SYSTOLE_ASSIGN_OR_RETURN(const uint64_t size, kept->Size());
  std::string table(std::min<uint64_t>(size, kRestartTrailerBytes), '\0');
  SYSTOLE_RETURN_IF_ERROR(ReadExactlyAt(*kept, size - table.size(), absl::MakeSpan(table)));
  SYSTOLE_ASSIGN_OR_RETURN(const uint64_t table_bytes, RestartTableSize(table));
  if (table_bytes > size) return absl::InvalidArgumentError("the file is cut short");
  table.resize(table_bytes);
  SYSTOLE_RETURN_IF_ERROR(ReadExactlyAt(*kept, size - table_bytes, absl::MakeSpan(table)));
  SYSTOLE_ASSIGN_OR_RETURN(
      points_, ParseRestartTable(table, state_, compression_, chunks_->max_chunk_bytes()));
  if (size - table_bytes != windows_bytes()) {
    return absl::InvalidArgumentError("the file has more or fewer windows than points");
  }
  SetWindows(path, std::move(kept));
  return absl::OkStatus();
}

void DecompressedSource::SetWindows(const std::string& path,
                                    std::unique_ptr<const ByteSource> file) {
  windows_path_ = path;
  windows_may_wait_ = windows_bytes() > 0 && file->may_wait();
  if (windows_may_wait_ && IsOnServer(path)) windows_file_ = std::move(file);
}

absl::Status DecompressedSource::Scan(uint64_t spacing, RestartScan::WindowSink windows) {
  // An empty file counts as a shard without records, although no compressor writes an empty file.
  if (state_.size_bytes == 0) {
    points_ = {.points = {{}}, .size_bytes = 0};
    return absl::OkStatus();
  }
  RestartScan scan(spacing, chunks_->max_chunk_bytes(), windows);
  SYSTOLE_RETURN_IF_ERROR(compression_ == Compression::kZstd
                              ? ScanZstd(*file_, scan)
                              : ScanDeflate(*file_, compression_, scan));
  points_ = std::move(scan).Take();
  return absl::OkStatus();
}

absl::Status DecompressedSource::FindPoints(const DecompressedOptions& options, std::string* note) {
  if (!options.restart_path.empty()) {
    absl::Status kept;
    const absl::Status found = FindPointsInto(options, kept);
    if (kept.ok()) return found;
    AddNote(note,
            absl::StrCat("restart points not kept: ", kept.message(),
                         "; reading the shard is slower and takes more memory; set --index-dir"));
  }
  const auto keep = [this](absl::string_view window) -> absl::Status {
    if (windows_.size() >= kMaxWindowsInMemory) {
      return absl::ResourceExhaustedError(
          absl::StrCat("its restart points take more than ", kMaxWindowsInMemory >> 20,
                       " MiB of memory; set --index-dir to a folder that can be written"));
    }
    windows_.append(window.data(), window.size());
    return absl::OkStatus();
  };
  return Scan(compression_ == Compression::kZstd ? kZstdSpacing : kDeflateSpacingInMemory, keep);
}

absl::Status DecompressedSource::FindPointsInto(const DecompressedOptions& options,
                                                absl::Status& kept) {
  const std::string& path = options.restart_path;
  kept = CheckMayKeep(path, options.write_index);
  if (!kept.ok()) return kept;
  // A server that was killed during a scan may have left a temporary file.
  RemoveLeftovers({path});
  absl::StatusOr<std::unique_ptr<ByteSink>> sink = CreateStored(path);
  kept = sink.status();
  if (!kept.ok()) return kept;
  const auto keep = [&](absl::string_view window) {
    kept = (*sink)->Append(window);
    return kept;
  };
  SYSTOLE_RETURN_IF_ERROR(
      Scan(compression_ == Compression::kZstd ? kZstdSpacing : kDeflateSpacing, keep));
  kept = (*sink)->Append(RestartTableBytes(state_, compression_, points_));
  if (kept.ok()) kept = (*sink)->Close();
  if (!kept.ok()) return kept;
  absl::StatusOr<std::unique_ptr<ByteSource>> written = OpenStored(path);
  kept = written.status();
  if (kept.ok()) SetWindows(path, *std::move(written));
  return kept;
}

absl::Status DecompressedSource::ReadWindows(uint64_t offset, absl::Span<char> out) const {
  if (windows_file_ != nullptr) {
    return WindowsError(ReadExactlyAt(*windows_file_, offset, out));
  }
  // The file is opened for each read, because keeping it open would need a second descriptor for
  // every shard.
  const absl::StatusOr<std::unique_ptr<ByteSource>> file = OpenStored(windows_path_);
  return WindowsError(file.ok() ? ReadExactlyAt(**file, offset, out) : file.status());
}

absl::Status DecompressedSource::WindowsError(const absl::Status& status) const {
  if (status.ok()) return status;
  const std::string what = absl::StrCat("the restart points of shard \"",
                                        ForeignName(BaseName(file_->name())), "\" cannot be read");
  // The file of the points may be on a storage server. Clients see this error, so the error must
  // not have the storage server's address.
  if (absl::IsCancelled(status) || absl::IsDeadlineExceeded(status) ||
      absl::IsUnavailable(status)) {
    return absl::Status(status.code(), absl::StrCat(what, " now; try again later"));
  }
  // Unavailable, not DataLoss, because the shard itself is not damaged.
  return absl::UnavailableError(absl::StrCat(what, " any more; to make them again, remove \"",
                                             ForeignName(BaseName(windows_path_)),
                                             "\" and restart"));
}

absl::Status DecompressedSource::CheckWindow(size_t chunk, absl::string_view window) const {
  if (Xxh3(window) == points_.points[chunk].window_hash) return absl::OkStatus();
  return WindowsError(absl::DataLossError("a checksum does not match"));
}

absl::StatusOr<std::string> DecompressedSource::WindowOf(size_t chunk) const {
  if (chunk == 0 || windows_bytes() == 0) return "";
  const uint64_t offset = (chunk - 1) * kWindowBytes;
  if (windows_path_.empty()) return windows_.substr(offset, kWindowBytes);
  std::string window(kWindowBytes, '\0');
  SYSTOLE_RETURN_IF_ERROR(ReadWindows(offset, absl::MakeSpan(window)));
  SYSTOLE_RETURN_IF_ERROR(CheckWindow(chunk, window));
  return window;
}

ByteStretch DecompressedSource::StoredAt(size_t chunk) const {
  // Round up: if a point lies within a byte, the chunks before and after it share this byte.
  const uint64_t end = chunk + 1 < points_.chunks()
                           ? (points_.points[chunk + 1].compressed_bit + 7) / 8
                           : state_.size_bytes;
  return {.begin = points_.points[chunk].compressed_bit / 8,
          .end = std::min(end, state_.size_bytes)};
}

void DecompressedSource::MakePieces() {
  if (!file_->may_wait() && !windows_may_wait_) return;
  // A feed reads a piece as a whole. So a piece with many empty frames, or with many zeros between
  // members, could fill the memory. If a file has such a piece, no pieces are made. Fill() then
  // reads deflate data little by little, and refuses such frames.
  for (size_t chunk = 0; chunk < points_.chunks(); ++chunk) {
    const ByteStretch stored = StoredAt(chunk);
    if (stored.begin >= stored.end || stored.end - stored.begin > 2 * chunks_->max_chunk_bytes()) {
      return;
    }
  }
  pieces_ = std::make_unique<Pieces>(*this);
}

absl::Status DecompressedSource::FillFrom(size_t chunk, absl::string_view stored,
                                          absl::string_view window, absl::Span<char> out) const {
  size_t done = 0;
  if (compression_ == Compression::kZstd) {
    SYSTOLE_ASSIGN_OR_RETURN(done, DecompressZstd(stored, out));
  } else {
    RestartPoint point = points_.points[chunk];
    point.compressed_bit %= 8;
    SYSTOLE_ASSIGN_OR_RETURN(done, InflateAt(ViewSource(stored), compression_, point, window, out));
  }
  ZeroFrom(done, out);
  return absl::OkStatus();
}

absl::Status DecompressedSource::Fill(size_t chunk, absl::Span<char> out) const {
  if (compression_ != Compression::kZstd) {
    SYSTOLE_ASSIGN_OR_RETURN(const std::string window, WindowOf(chunk));
    SYSTOLE_ASSIGN_OR_RETURN(const size_t done,
                             InflateAt(FrontOf(*file_, StoredAt(chunk).end), compression_,
                                       points_.points[chunk], window, out));
    ZeroFrom(done, out);
    return absl::OkStatus();
  }
  const auto [begin, end] = StoredAt(chunk);
  if (end - begin > 2 * chunks_->max_chunk_bytes()) {
    return absl::ResourceExhaustedError(absl::StrCat(
        "shard \"", ForeignName(BaseName(file_->name())), "\": the frames from byte ", begin,
        " to ", end,
        " have many bytes but decompress to few; write the shard again without empty frames"));
  }
  SYSTOLE_ASSIGN_OR_RETURN(AlignedBuffer stored,
                           AlignedBuffer::Create(static_cast<int64_t>(end - begin)));
  const absl::Span<char> bytes(reinterpret_cast<char*>(stored.data()), stored.size());
  SYSTOLE_ASSIGN_OR_RETURN(const size_t read, file_->ReadAt(begin, bytes));
  return FillFrom(chunk, absl::string_view(bytes.data(), read), "", out);
}

absl::StatusOr<size_t> DecompressedSource::ReadAt(uint64_t offset, absl::Span<char> out) const {
  return Copy(offset, out,
              [this](size_t chunk, absl::Span<char> bytes) { return Fill(chunk, bytes); });
}

absl::StatusOr<size_t> DecompressedSource::Copy(uint64_t offset, absl::Span<char> out,
                                                FillChunk fill) const {
  size_t done = 0;
  while (done < out.size() && offset + done < points_.size_bytes) {
    const size_t chunk = points_.ChunkAt(offset + done);
    const size_t skipped = offset + done - points_.points[chunk].offset;
    size_t copied = 0;
    SYSTOLE_RETURN_IF_ERROR(chunks_->Read(
        {.file = number_, .chunk = chunk}, points_.chunk_bytes(chunk),
        [&](absl::Span<char> bytes) { return fill(chunk, bytes); },
        [&](absl::string_view bytes) {
          copied = std::min(bytes.size() - skipped, out.size() - done);
          std::memcpy(out.data() + done, bytes.data() + skipped, copied);
        }));
    done += copied;
  }
  return done;
}

}  // namespace systole
