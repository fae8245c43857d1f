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
#include "core/status/status_macros.h"
#include "core/storage/stores/stored_file.h"
#include "core/text/foreign_text.h"

namespace systole {
namespace {

// How many decompressed bytes lie between two restart points. A read of a record also decompresses
// about half as many other bytes. A point inside a deflate stream needs a window of 32 KiB, so the
// file of restart points is an eighth of the decompressed shard.
constexpr uint64_t kDeflateSpacing = 256 << 10;
// The spacing if the windows stay in memory. They then take 1/128 of the decompressed shard.
constexpr uint64_t kDeflateSpacingInMemory = 4 << 20;
constexpr size_t kMaxWindowsInMemory = size_t{256} << 20;
// The size of the frames of `systole pack`.
constexpr uint64_t kZstdSpacing = kZstdFrameBytes;
// A larger chunk is worth a note: a read in it decompresses the whole chunk, unless it is cached.
constexpr uint64_t kLargeChunkBytes = 16 << 20;

absl::Status OfFile(const absl::Status& status, const ByteSource& file) {
  return absl::Status(status.code(), absl::StrCat("shard \"", ForeignName(BaseName(file.name())),
                                                  "\": ", status.message()));
}

void AddNote(std::string* note, absl::string_view more) {
  absl::StrAppend(note, note->empty() ? "" : "; ", more);
}

uint64_t WindowBytesOf(Compression compression, const RestartPoints& points) {
  return compression == Compression::kZstd ? 0 : (points.chunks() - 1) * kWindowBytes;
}

}  // namespace

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
  const uint64_t largest = source->points_.largest_chunk_bytes();
  if (largest > kLargeChunkBytes) {
    AddNote(note, absl::StrCat("reading one of its records decompresses up to ", largest >> 20,
                               " MiB; `systole pack --compression zstd` writes small frames"));
  }
  return source;
}

absl::Status DecompressedSource::LoadPoints(const std::string& path) {
  SYSTOLE_ASSIGN_OR_RETURN(const std::unique_ptr<ByteSource> kept, OpenStored(path));
  SYSTOLE_ASSIGN_OR_RETURN(const uint64_t size, kept->Size());
  std::string table(std::min<uint64_t>(size, kRestartTrailerBytes), '\0');
  SYSTOLE_RETURN_IF_ERROR(ReadExactlyAt(*kept, size - table.size(), absl::MakeSpan(table)));
  SYSTOLE_ASSIGN_OR_RETURN(const uint64_t table_bytes, RestartTableSize(table));
  if (table_bytes > size) return absl::InvalidArgumentError("the file is cut short");
  table.resize(table_bytes);
  SYSTOLE_RETURN_IF_ERROR(ReadExactlyAt(*kept, size - table_bytes, absl::MakeSpan(table)));
  SYSTOLE_ASSIGN_OR_RETURN(
      points_, ParseRestartTable(table, state_, compression_, chunks_->max_chunk_bytes()));
  if (size - table_bytes != WindowBytesOf(compression_, points_)) {
    return absl::InvalidArgumentError("the file has more or fewer windows than points");
  }
  windows_path_ = path;
  return absl::OkStatus();
}

absl::Status DecompressedSource::Scan(uint64_t spacing, RestartScan::WindowSink windows) {
  // An empty file is a shard without records, although no compressed file is so short.
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
  // A server that was killed while it scanned may have left a file.
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
  windows_path_ = path;
  return absl::OkStatus();
}

absl::StatusOr<std::string> DecompressedSource::WindowOf(size_t chunk) const {
  if (chunk == 0) return "";
  const uint64_t offset = (chunk - 1) * kWindowBytes;
  if (windows_path_.empty()) return windows_.substr(offset, kWindowBytes);
  // The file is opened each time: a second descriptor for every shard would be too many.
  std::string window(kWindowBytes, '\0');
  const absl::StatusOr<std::unique_ptr<ByteSource>> file = OpenStored(windows_path_);
  absl::Status read = file.status();
  if (read.ok()) read = ReadExactlyAt(**file, offset, absl::MakeSpan(window));
  if (read.ok() && Xxh3(window) != points_.points[chunk].window_hash) {
    read = absl::DataLossError("a checksum does not match");
  }
  if (read.ok()) return window;
  const std::string what = absl::StrCat("the restart points of shard \"",
                                        ForeignName(BaseName(file_->name())), "\" cannot be read");
  // The points may lie on a storage server. Clients see the error, so it must not have that
  // server's address.
  if (absl::IsCancelled(read) || absl::IsDeadlineExceeded(read) || absl::IsUnavailable(read)) {
    return absl::Status(read.code(), absl::StrCat(what, " now; try again later"));
  }
  // Unavailable, not DataLoss: the machine is at fault, not the shard.
  return absl::UnavailableError(absl::StrCat(what, " any more; to make them again, remove \"",
                                             ForeignName(BaseName(windows_path_)),
                                             "\" and restart"));
}

absl::Status DecompressedSource::Fill(size_t chunk, absl::Span<char> out) const {
  const RestartPoint& point = points_.points[chunk];
  size_t done = 0;
  if (compression_ == Compression::kZstd) {
    const uint64_t begin = point.compressed_bit / 8;
    const uint64_t end = chunk + 1 < points_.chunks() ? points_.points[chunk + 1].compressed_bit / 8
                                                      : state_.size_bytes;
    if (end - begin > 2 * chunks_->max_chunk_bytes()) {
      return absl::ResourceExhaustedError(absl::StrCat(
          "shard \"", ForeignName(BaseName(file_->name())), "\": the frames from byte ", begin,
          " to ", end,
          " are large and hold very little; write the shard again without empty frames"));
    }
    SYSTOLE_ASSIGN_OR_RETURN(AlignedBuffer compressed,
                             AlignedBuffer::Create(static_cast<int64_t>(end - begin)));
    const absl::Span<char> bytes(reinterpret_cast<char*>(compressed.data()), compressed.size());
    SYSTOLE_ASSIGN_OR_RETURN(const size_t read, file_->ReadAt(begin, bytes));
    SYSTOLE_ASSIGN_OR_RETURN(done, DecompressZstd(absl::string_view(bytes.data(), read), out));
  } else {
    SYSTOLE_ASSIGN_OR_RETURN(const std::string window, WindowOf(chunk));
    SYSTOLE_ASSIGN_OR_RETURN(done, InflateAt(*file_, compression_, point, window, out));
  }
  std::fill(out.begin() + static_cast<ptrdiff_t>(done), out.end(), '\0');
  return absl::OkStatus();
}

absl::StatusOr<size_t> DecompressedSource::ReadAt(uint64_t offset, absl::Span<char> out) const {
  size_t done = 0;
  while (done < out.size() && offset + done < points_.size_bytes) {
    const size_t chunk = points_.ChunkAt(offset + done);
    const size_t skipped = offset + done - points_.points[chunk].offset;
    size_t copied = 0;
    SYSTOLE_RETURN_IF_ERROR(chunks_->Read(
        {.file = number_, .chunk = chunk}, points_.chunk_bytes(chunk),
        [&](absl::Span<char> bytes) { return Fill(chunk, bytes); },
        [&](absl::string_view bytes) {
          copied = std::min(bytes.size() - skipped, out.size() - done);
          std::memcpy(out.data() + done, bytes.data() + skipped, copied);
        }));
    done += copied;
  }
  return done;
}

}  // namespace systole
