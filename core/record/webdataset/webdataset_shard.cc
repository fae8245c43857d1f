#include "core/record/webdataset/webdataset_shard.h"

#include <algorithm>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "core/checksum/crc32c.h"
#include "core/record/source/content_hasher.h"
#include "core/record/source/index_path.h"
#include "core/record/webdataset/sample_index.h"
#include "core/record/webdataset/tar_entry.h"
#include "core/record/webdataset/webdataset_sample.h"
#include "core/status/status_macros.h"
#include "core/storage/stores/stored_file.h"

namespace systole {
namespace {

constexpr absl::string_view kName = "WebDataset";

absl::StatusOr<ScannedArchive> Scan(const ShardFile& file) {
  SYSTOLE_ASSIGN_OR_RETURN(ScannedArchive archive, ScanArchive(*file.bytes, file.max_records));
  SYSTOLE_RETURN_IF_ERROR(file.bytes->CheckUnchanged());
  return archive;
}

absl::StatusOr<ScannedArchive> ReadIndex(const ShardFile& file, const std::string& path,
                                         uint64_t archive_bytes) {
  const uint64_t max_samples = file.max_records.value_or(kMaxIndexedRecords);
  SYSTOLE_ASSIGN_OR_RETURN(const std::string text,
                           GetStored(path, MaxSampleIndexBytes(archive_bytes, max_samples)));
  return ParseSampleIndex(text, archive_bytes, file.state.identity);
}

std::string CrcCause(uint32_t computed, uint32_t stored) {
  return absl::StrFormat("CRC-32C of the sample is 0x%08x, the index says 0x%08x", computed,
                         stored);
}

// Marks the samples of `archive` whose bytes have changed since the index `before` was made.
void Compare(const ScannedArchive& before, ScannedArchive& archive) {
  const int64_t samples = archive.index.num_records();
  if (samples != before.index.num_records()) return;
  DamageList damage;
  auto known = archive.index.damaged().begin();
  for (int64_t i = 0; i < samples; ++i) {
    Sample& now = archive.samples[static_cast<size_t>(i)];
    const Sample& then = before.samples[static_cast<size_t>(i)];
    const RecordSpan span = archive.index.span(i);
    const bool listed = known != archive.index.damaged().end() && known->record == i;
    if (now.damaged) {
      damage.Add(i, span, listed ? known->cause : "");
    } else if (span == before.index.span(i) && now.crc != then.crc) {
      damage.Add(i, span, CrcCause(now.crc, then.crc));
      now.damaged = true;
    }
    if (listed) ++known;
  }
  archive.index = damage.MoveInto(std::move(archive.index));
}

// The samples of `file`. If its index was not used or cannot be kept, `note` says why. `is_kept` is
// set if a file holds the index for later starts.
absl::StatusOr<ScannedArchive> Load(const ShardFile& file, uint64_t archive_bytes,
                                    const ShardOptions& options, std::string& note, bool& is_kept) {
  const std::string path = IndexPath(std::string(file.bytes->name()), options.index_dir);
  if (options.index_use != IndexUse::kRebuild) {
    absl::StatusOr<ScannedArchive> stored = ReadIndex(file, path, archive_bytes);
    if (options.index_use == IndexUse::kIgnore) {
      SYSTOLE_ASSIGN_OR_RETURN(ScannedArchive archive, Scan(file));
      if (stored.ok()) Compare(*stored, archive);
      return archive;
    }
    if (stored.ok()) {
      is_kept = true;
      return stored;
    }
    if (!IsAbsent(stored.status(), path)) {
      note = absl::StrCat("index \"", ShownName(path), "\" not used: ", stored.status().message());
    }
  }
  SYSTOLE_ASSIGN_OR_RETURN(ScannedArchive archive, Scan(file));
  // The file seems not to be an archive, so no index is written beside it.
  if (archive.index.all_damaged()) return archive;
  const absl::Status written = KeepStored(
      path, SampleIndexText(archive, archive_bytes, file.state.identity), options.write_index);
  if (written.ok()) {
    is_kept = true;
    return archive;
  }
  if (MustKeepIndex(options.index_use)) {
    return absl::PermissionDeniedError(absl::StrCat("index not kept: ", written.message()));
  }
  absl::StrAppend(&note, note.empty() ? "" : "; ", "index not kept: ", written.message());
  return archive;
}

}  // namespace

const ShardFormat& WebDatasetFormat() {
  static constexpr ShardFormat format = {.name = kName,
                                         .begins = BeginsAsTar,
                                         .ending = ".tar",
                                         .open = WebDatasetShard::Open,
                                         .examples = WebDatasetSample};
  return format;
}

WebDatasetShard::WebDatasetShard(IndexedFile file, std::vector<Sample> samples)
    : SpanSource(std::move(file), /*framing_bytes=*/0, kName), samples_(std::move(samples)) {}

absl::StatusOr<std::unique_ptr<RecordSource>> WebDatasetShard::Open(ShardFile file,
                                                                    const ShardOptions& options) {
  SYSTOLE_ASSIGN_OR_RETURN(const uint64_t archive_bytes, file.bytes->Size());
  std::string note;
  bool is_kept = false;
  SYSTOLE_ASSIGN_OR_RETURN(ScannedArchive archive,
                           Load(file, archive_bytes, options, note, is_kept));
  ContentHasher hasher;
  for (int64_t i = 0; i < archive.index.num_records(); ++i) {
    hasher.Add(archive.index.span(i).size, archive.samples[static_cast<size_t>(i)].crc);
  }
  if (!file.note.empty() && !note.empty()) file.note += "; ";
  return std::unique_ptr<RecordSource>(
      new WebDatasetShard({.bytes = std::move(file.bytes),
                           .size_bytes = archive_bytes,
                           .file_bytes = file.state.size_bytes,
                           .index = std::move(archive.index),
                           .content_hash = hasher.Digest(),
                           .index_is_kept = is_kept,
                           .note = file.note + note,
                           .max_record_bytes = options.max_record_bytes},
                          std::move(archive.samples)));
}

const ExampleFormat& WebDatasetShard::examples() const { return WebDatasetSample(); }

std::string WebDatasetShard::CauseOf(int64_t record) const {
  const auto listed =
      std::find_if(damaged().begin(), damaged().end(),
                   [record](const DamagedRecord& each) { return each.record == record; });
  return listed == damaged().end() ? "damaged when the archive was scanned" : listed->cause;
}

absl::StatusOr<absl::string_view> WebDatasetShard::Check(int64_t record,
                                                         absl::string_view bytes) const {
  const Sample& sample = samples_[static_cast<size_t>(record)];
  if (sample.damaged) return Damaged(record, CauseOf(record));
  const uint32_t computed = Crc32c(bytes);
  if (computed != sample.crc) {
    return MarkedAsChecksumMismatch(Damaged(record, CrcCause(computed, sample.crc)));
  }
  return bytes;
}

absl::StatusOr<std::string> WebDatasetShard::CauseIfTooLarge(int64_t record) const {
  return samples_[static_cast<size_t>(record)].damaged ? CauseOf(record) : "";
}

}  // namespace systole
