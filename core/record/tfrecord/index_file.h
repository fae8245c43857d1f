// Index files keep a shard's index on disk, so that a server starts without scanning. The index
// file is text in the format of DALI's tfrecord2idx. The file `<index>.hash` beside it keeps the
// facts that this format cannot hold: the state of the shard that was indexed, the content hash,
// and the damage.
//
// Thread-safe: no state. Several processes may use the same files: each write is a rename.
#ifndef SYSTOLE_CORE_RECORD_TFRECORD_INDEX_FILE_H_
#define SYSTOLE_CORE_RECORD_TFRECORD_INDEX_FILE_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "core/record/source/record_index.h"
#include "core/record/tfrecord/scan_shard.h"
#include "core/storage/byte_source.h"

namespace systole {

struct IndexFileOptions {
  // Folder for index files. It must exist. Empty: beside each shard.
  std::string index_dir = {};
  // Whether to scan even if there are valid index files.
  bool rebuild = false;
  bool write_index = false;  // ShardOptions::write_index.
  // ShardFile::max_records.
  std::optional<uint64_t> max_records = {};
};

struct LoadedIndex {
  RecordIndex index;
  uint64_t content_hash = 0;  // See ScannedShard.
  bool scanned = false;       // Whether the shard had to be scanned.
  bool kept = true;           // False: a file of the index could not be kept, and `note` says why.
  // A note for a person: why a file of the index was not used, or could not be written. It is not
  // an error. Empty: there is none.
  std::string note;
};

// The hash file's text:
//   systole-hash-1 <shard identity> <records> <damaged> <content hash, 16 hex>\n
// and a line `<record> <cause>\n` for each of index.damaged().
std::string HashFileText(absl::string_view identity, const RecordIndex& index,
                         uint64_t content_hash);

// The most bytes of a hash file's text.
inline constexpr uint64_t kMaxHashFileBytes = 32 << 10;

// Returns `index`, the shard's index that was read before, with the content hash and the damage
// from `text`.
//   FailedPrecondition  the text was made for another state of the shard.
//   InvalidArgument     `text` is not the text of a hash file. The message says what is wrong.
absl::StatusOr<ScannedShard> ParseHashFile(absl::string_view text, absl::string_view identity,
                                           RecordIndex index);

// Reads the index of `shard` from its files. The files are used only if the index covers exactly
// the bytes of `shard` and the hash file names `identity`. If there is no hash file, or `identity`
// is empty, the framing of the records is checked instead. If the files cannot be used, this
// function scans the shard, and writes the files if at least one record can be read. Files that
// cannot be read or written give LoadedIndex::note, not an error. Errors are those of reading the
// shard, and FailedPrecondition if the shard changed during the scan.
//   `shard`     has decompressed bytes. The index counts these.
//   `identity`  is the identity of the stored file (StoredState), which may be compressed.
absl::StatusOr<LoadedIndex> LoadIndex(const ByteSource& shard, absl::string_view identity,
                                      const IndexFileOptions& options);

}  // namespace systole

#endif  // SYSTOLE_CORE_RECORD_TFRECORD_INDEX_FILE_H_
