#include "core/record/tfrecord/index_file.h"

#include <algorithm>
#include <charconv>
#include <memory>
#include <optional>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/strip.h"
#include "core/record/source/consume_number.h"
#include "core/record/source/index_path.h"
#include "core/record/tfrecord/dali_index.h"
#include "core/status/status_macros.h"
#include "core/storage/byte_source.h"
#include "core/storage/stores/store_table.h"
#include "core/storage/stores/stored_file.h"

namespace systole {
namespace {

// The most bytes of a cause in a hash file. Causes that we write are shorter, but a file may
// contain anything.
constexpr size_t kMaxCauseBytes = 256;

// The beginning of a hash file's text for this state of the shard.
std::string HashHead(absl::string_view identity, int64_t num_records) {
  return absl::StrCat("systole-hash-1 ", identity, " ", num_records, " ");
}

std::string HashPath(absl::string_view index_path) { return WithEnding(index_path, ".hash"); }

// The content of the index files. Without a hash file, `content_hash` is nullopt, and the index
// lists no damage.
struct StoredIndex {
  RecordIndex index;
  std::optional<uint64_t> content_hash;
};
// An error says why the files cannot be used. NotFound: there are none.
absl::StatusOr<StoredIndex> ReadIndexFiles(const std::string& index_path, uint64_t shard_bytes,
                                           uint64_t max_records, absl::string_view identity) {
  SYSTOLE_ASSIGN_OR_RETURN(const std::string text,
                           GetStored(index_path, MaxDaliIndexBytes(shard_bytes, max_records)));
  SYSTOLE_ASSIGN_OR_RETURN(RecordIndex index, ParseDaliIndex(text, shard_bytes));
  const absl::StatusOr<std::string> hash = GetStored(HashPath(index_path), kMaxHashFileBytes);
  if (identity.empty() || IsAbsent(hash.status(), index_path)) {
    return StoredIndex{.index = std::move(index), .content_hash = {}};
  }
  SYSTOLE_RETURN_IF_ERROR(hash.status());
  SYSTOLE_ASSIGN_OR_RETURN(ScannedShard stored, ParseHashFile(*hash, identity, std::move(index)));
  return StoredIndex{.index = std::move(stored.index), .content_hash = stored.content_hash};
}

void AddNote(std::string& note, absl::string_view more) {
  absl::StrAppend(&note, note.empty() ? "" : "; ", more);
}

void WriteHashFile(const std::string& index_path, absl::string_view identity, bool write_index,
                   LoadedIndex& loaded) {
  if (identity.empty()) return;
  const absl::Status written = KeepStored(
      HashPath(index_path), HashFileText(identity, loaded.index, loaded.content_hash), write_index);
  if (written.ok()) return;
  loaded.kept = false;
  AddNote(loaded.note, absl::StrCat("hash not kept: ", written.message()));
}

}  // namespace

std::string HashFileText(absl::string_view identity, const RecordIndex& index,
                         uint64_t content_hash) {
  std::string text = absl::StrFormat("%s%d %016x\n", HashHead(identity, index.num_records()),
                                     index.num_damaged(), content_hash);
  for (const DamagedRecord& damaged : index.damaged()) {
    absl::StrAppend(&text, damaged.record, " ", damaged.cause, "\n");
  }
  return text;
}

absl::StatusOr<ScannedShard> ParseHashFile(absl::string_view text, absl::string_view identity,
                                           RecordIndex index) {
  if (!absl::ConsumePrefix(&text, HashHead(identity, index.num_records()))) {
    return absl::FailedPreconditionError("hash file was made for another state of the shard");
  }
  int64_t num_damaged = 0;
  if (!ConsumeNumber(text, ' ', num_damaged) || num_damaged > index.num_records()) {
    return absl::InvalidArgumentError("hash file has no number of damaged records");
  }
  constexpr size_t kDigits = 16;
  uint64_t hash = 0;
  const auto [stop, error] =
      std::from_chars(text.data(), text.data() + std::min(text.size(), kDigits), hash, 16);
  const absl::string_view digits = text.substr(0, kDigits);
  if (error != std::errc() || stop != text.data() + kDigits || text.size() == kDigits ||
      *stop != '\n' || absl::StrFormat("%016x", hash) != digits) {
    return absl::InvalidArgumentError("hash file has no content hash of 16 hex digits");
  }
  text.remove_prefix(kDigits + 1);
  std::vector<DamagedRecord> damaged;
  while (!text.empty()) {
    const int64_t before = damaged.empty() ? -1 : damaged.back().record;
    int64_t record = 0;
    const bool good = ConsumeNumber(text, ' ', record) && record > before &&
                      record < index.num_records() && text.find('\n') <= kMaxCauseBytes;
    if (!good) return absl::InvalidArgumentError("hash file has a malformed list of damage");
    const absl::string_view cause = text.substr(0, text.find('\n'));
    damaged.push_back({.record = record, .span = index.span(record), .cause = std::string(cause)});
    text.remove_prefix(cause.size() + 1);
  }
  if (damaged.size() != std::min<uint64_t>(num_damaged, kMaxDamagedListed)) {
    return absl::InvalidArgumentError(
        absl::StrCat("hash file lists ", damaged.size(), " of ", num_damaged, " damaged records"));
  }
  return ScannedShard{.index = std::move(index).WithDamage(std::move(damaged), num_damaged),
                      .content_hash = hash};
}

absl::StatusOr<LoadedIndex> LoadIndex(const ByteSource& shard, absl::string_view identity,
                                      const IndexFileOptions& options) {
  SYSTOLE_ASSIGN_OR_RETURN(const uint64_t shard_bytes, shard.Size());
  const std::string index_path = IndexPath(std::string(shard.name()), options.index_dir);
  LoadedIndex loaded;
  if (!options.rebuild) {
    absl::StatusOr<StoredIndex> stored = ReadIndexFiles(
        index_path, shard_bytes, options.max_records.value_or(kMaxIndexedRecords), identity);
    if (stored.ok()) {
      loaded.index = std::move(stored->index);
      if (stored->content_hash.has_value()) {
        loaded.content_hash = *stored->content_hash;
        return loaded;
      }
      SYSTOLE_ASSIGN_OR_RETURN(ScannedShard looked_at, ScanIndexed(shard, std::move(loaded.index)));
      SYSTOLE_RETURN_IF_ERROR(shard.CheckUnchanged());
      if (looked_at.index.num_damaged() == 0) {
        loaded.index = std::move(looked_at.index);
        loaded.content_hash = looked_at.content_hash;
        WriteHashFile(index_path, identity, options.write_index, loaded);
        return loaded;
      }
      // A damaged shard is divided into records only by our own scan. Another program's index may
      // divide it in another way, and then two servers might serve different records.
      AddNote(loaded.note, absl::StrCat("index \"", ShownName(index_path),
                                        "\" not used: ", looked_at.index.num_damaged(),
                                        " of its records have damaged framing"));
    } else if (!IsAbsent(stored.status(), index_path)) {
      AddNote(loaded.note, absl::StrCat("index \"", ShownName(index_path),
                                        "\" not used: ", stored.status().message()));
    }
  }
  SYSTOLE_ASSIGN_OR_RETURN(ScannedShard scanned,
                           ScanShard(shard, {.max_records = options.max_records}));
  SYSTOLE_RETURN_IF_ERROR(shard.CheckUnchanged());
  loaded.index = std::move(scanned.index);
  loaded.content_hash = scanned.content_hash;
  loaded.scanned = true;
  // The file seems not to be a shard, so no index is written beside it.
  if (loaded.index.all_damaged()) return loaded;
  const absl::Status written =
      KeepStored(index_path, DaliIndexText(loaded.index), options.write_index);
  if (written.ok()) {
    WriteHashFile(index_path, identity, options.write_index, loaded);
  } else {
    loaded.kept = false;
    AddNote(loaded.note, absl::StrCat("index not kept: ", written.message()));
  }
  return loaded;
}

}  // namespace systole
