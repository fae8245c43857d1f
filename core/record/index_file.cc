#include "core/record/index_file.h"

#include <charconv>
#include <filesystem>
#include <memory>
#include <optional>
#include <system_error>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "core/checksum/xxh3.h"
#include "core/record/scan_shard.h"
#include "core/status/status_macros.h"
#include "core/storage/byte_source.h"
#include "core/storage/file_sink.h"

namespace systole {
namespace {

// The hash file: one line `systole-hash-1 <size> <mtime_ns> <num_records> <16 hex digits>\n`, the
// first two of the shard it was made for.
std::string HashFileText(const FileIdentity& shard, int64_t num_records, uint64_t content_hash) {
  return absl::StrFormat("systole-hash-1 %d %d %d %016x\n", shard.size_bytes, shard.mtime_ns,
                         num_records, content_hash);
}

std::string HashPath(absl::string_view index_path) { return absl::StrCat(index_path, ".hash"); }

struct SmallFile {
  std::string bytes;
  FileIdentity identity;
};

// Refuses to read more than `max_bytes`: what lies there may be anything.
absl::StatusOr<SmallFile> ReadFile(const std::string& path, uint64_t max_bytes) {
  SYSTOLE_ASSIGN_OR_RETURN(const std::unique_ptr<FileSource> file, FileSource::Open(path));
  const uint64_t size = file->identity().size_bytes;
  if (size > max_bytes) {
    return absl::InvalidArgumentError(
        absl::StrCat("file has ", size, " bytes, want at most ", max_bytes));
  }
  SmallFile result{.bytes = std::string(size, '\0'), .identity = file->identity()};
  SYSTOLE_RETURN_IF_ERROR(ReadExactlyAt(*file, 0, absl::MakeSpan(result.bytes)));
  return result;
}

// The content hash kept for `shard` with this many records; nullopt if none is kept.
// FailedPrecondition if it was made for another state of the shard.
absl::StatusOr<std::optional<uint64_t>> ReadHashFile(const std::string& path,
                                                     const FileIdentity& shard,
                                                     int64_t num_records) {
  const std::string with_zero = HashFileText(shard, num_records, 0);
  const absl::StatusOr<SmallFile> file = ReadFile(path, /*max_bytes=*/256);
  if (absl::IsNotFound(file.status())) return std::nullopt;
  SYSTOLE_RETURN_IF_ERROR(file.status());
  constexpr size_t kTailBytes = 17;  // Digits and newline.
  const absl::string_view bytes = file->bytes;
  const absl::string_view head =
      absl::string_view(with_zero).substr(0, with_zero.size() - kTailBytes);
  uint64_t hash = 0;
  if (bytes.size() != with_zero.size() || bytes.substr(0, head.size()) != head) {
    return absl::FailedPreconditionError("hash file was made for another state of the shard");
  }
  const char* const digits = bytes.data() + head.size();
  const auto [stop, error] = std::from_chars(digits, digits + 16, hash, 16);
  if (error != std::errc() || stop != digits + 16 || *stop != '\n') {
    return absl::InvalidArgumentError("hash file does not end in 16 hex digits");
  }
  return hash;
}

// What the files hold; an error says why they cannot be used, NotFound that there are none.
struct StoredIndex {
  RecordIndex index;
  std::optional<uint64_t> content_hash;
};
absl::StatusOr<StoredIndex> ReadIndexFiles(const std::string& index_path,
                                           const FileIdentity& shard) {
  SYSTOLE_ASSIGN_OR_RETURN(const SmallFile file,
                           ReadFile(index_path, RecordIndex::MaxTextBytes(shard.size_bytes)));
  if (file.identity.mtime_ns < shard.mtime_ns) {
    return absl::FailedPreconditionError("index is older than the shard");
  }
  SYSTOLE_ASSIGN_OR_RETURN(RecordIndex index, RecordIndex::Parse(file.bytes, shard.size_bytes));
  SYSTOLE_ASSIGN_OR_RETURN(const std::optional<uint64_t> content_hash,
                           ReadHashFile(HashPath(index_path), shard, index.num_records()));
  return StoredIndex{.index = std::move(index), .content_hash = content_hash};
}

void AddNote(std::string& note, absl::string_view more) {
  absl::StrAppend(&note, note.empty() ? "" : "; ", more);
}

// An index is made again if a power cut takes it: no waiting for the device.
constexpr FileSinkOptions kIndexSink = {.sync = false};

void WriteHashFile(const std::string& index_path, const FileIdentity& shard, LoadedIndex& loaded) {
  const absl::Status written = WriteFileAtomically(
      HashPath(index_path), HashFileText(shard, loaded.index.num_records(), loaded.content_hash),
      kIndexSink);
  if (!written.ok()) AddNote(loaded.note, absl::StrCat("hash not kept: ", written.message()));
}

}  // namespace

std::string IndexPath(const std::string& shard_path, absl::string_view index_dir) {
  if (index_dir.empty()) return absl::StrCat(shard_path, ".idx");
  std::error_code error;  // Only a missing current folder; the path as given serves then.
  std::filesystem::path absolute = std::filesystem::absolute(shard_path, error);
  if (error) absolute = shard_path;
  return absl::StrFormat("%s/%s-%016x.idx", index_dir, BaseName(shard_path),
                         Xxh3(absolute.lexically_normal().string()));
}

absl::StatusOr<LoadedIndex> LoadIndex(const FileSource& shard, const IndexFileOptions& options) {
  const std::string index_path = IndexPath(std::string(shard.name()), options.index_dir);
  LoadedIndex loaded;
  if (!options.rebuild) {
    absl::StatusOr<StoredIndex> stored = ReadIndexFiles(index_path, shard.identity());
    if (stored.ok()) {
      loaded.index = std::move(stored->index);
      if (stored->content_hash.has_value()) {
        loaded.content_hash = *stored->content_hash;
        return loaded;
      }
      SYSTOLE_ASSIGN_OR_RETURN(loaded.content_hash, HashContent(shard, loaded.index));
      SYSTOLE_RETURN_IF_ERROR(shard.CheckUnchanged());
      WriteHashFile(index_path, shard.identity(), loaded);
      return loaded;
    }
    if (!absl::IsNotFound(stored.status())) {
      AddNote(loaded.note,
              absl::StrCat("index \"", index_path, "\" not used: ", stored.status().message()));
    }
  }
  SYSTOLE_ASSIGN_OR_RETURN(ScannedShard scanned, ScanShard(shard));
  SYSTOLE_RETURN_IF_ERROR(shard.CheckUnchanged());
  loaded.index = std::move(scanned.index);
  loaded.content_hash = scanned.content_hash;
  loaded.scanned = true;
  const absl::Status written = WriteFileAtomically(index_path, loaded.index.ToText(), kIndexSink);
  if (written.ok()) {
    WriteHashFile(index_path, shard.identity(), loaded);
  } else {
    AddNote(loaded.note, absl::StrCat("index not kept: ", written.message()));
  }
  return loaded;
}

}  // namespace systole
