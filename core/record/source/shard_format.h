// A row of the table of formats (core/record/shard_formats.h), and the options for opening a shard
// of any format.
//
// Thread-compatible.
#ifndef SYSTOLE_CORE_RECORD_SOURCE_SHARD_FORMAT_H_
#define SYSTOLE_CORE_RECORD_SOURCE_SHARD_FORMAT_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "core/compression/chunk_cache.h"
#include "core/compression/compression.h"
#include "core/example/example_format.h"
#include "core/record/source/record_source.h"
#include "core/record/source/shard_file.h"
#include "core/storage/store.h"

namespace systole {

struct ShardFormat;

// How the index files of a shard are used. To keep a file means to write it for later starts.
enum class IndexUse {
  kUse,      // Valid files are used, and the other files are made anew. If a file cannot be kept,
             // RecordSource::note() says so.
  kKeep,     // As kUse, but a file that cannot be kept is an error (PermissionDenied).
  kRebuild,  // All files are made anew. A file that cannot be kept is an error (PermissionDenied).
  // No file is trusted or written, and the shard is scanned. If the format has no checksums of its
  // own, and there is a valid index, the result of the scan is compared with this index.
  kIgnore,
};

// Whether valid index files are trusted.
inline bool TrustsIndex(IndexUse use) { return use == IndexUse::kUse || use == IndexUse::kKeep; }

// Whether it is an error if an index file cannot be kept.
inline bool MustKeepIndex(IndexUse use) {
  return use == IndexUse::kKeep || use == IndexUse::kRebuild;
}

struct ShardOptions {
  // Folder for index files. It must exist. Empty: beside each shard.
  std::string index_dir = {};
  IndexUse index_use = IndexUse::kUse;
  // Whether index files may be written into buckets (CheckMayKeep()). If not, RecordSource::note()
  // says how to allow it. If MustKeepIndex(index_use), OpenShard() acts as if write_index were
  // true.
  bool write_index = false;
  // Largest payload accepted, in bytes. Stops a hostile record from taking all memory.
  int64_t max_record_bytes = kDefaultMaxRecordBytes;
  // How the shards are compressed, and where their decompressed bytes are kept: see
  // ShardFileOptions.
  Compression compression = Compression::kDetect;
  std::shared_ptr<ChunkCache> chunks = {};
  // The formats that shards may have. Empty: those of ShardFormats(). For tests.
  absl::Span<const ShardFormat* const> formats = {};

  // Runs the work on the files of a group when the group is opened. The function calls work(i) for
  // each i in [0, count), in any order and perhaps on several threads, and returns when all calls
  // have ended. Each call works on one file, and may hold the whole file in memory. Null: the calls
  // are made one after the other.
  std::function<void(int64_t count, absl::FunctionRef<void(int64_t i)> work)> for_each = {};
  // Called after each file of a group was read, from any thread, with the size of the file. May be
  // null.
  std::function<void(uint64_t bytes)> file_done = {};
  // Returns the state that a list of the store's files shows for the file `name`. The list may be a
  // moment old. Null: no list shows the state. If this function is not set, the state of each file
  // is requested.
  //   A file of a group: if the index of the group has the file in this state, no request is sent.
  //   A shard that is one file: it is opened in this state (Store::OpenInState()).
  std::function<const StoredState*(absl::string_view name)> listed_state = {};
  // For code that needs only one record of a group: the number of this record. Then no index is
  // read or written. All other records count as empty files: they cannot be read, and the sizes and
  // the content_hash() of the shard have no meaning. Nullopt: all files are read.
  std::optional<int64_t> only_record = std::nullopt;
};

// The files of a group: each of them is a record.
struct FileGroup {
  std::string folder;              // The folder that all of them lie in. It ends with '/'.
  std::vector<std::string> files;  // By record number; names as ListShards() gave them.
};

// A format: a row of the table. All fields are constants.
struct ShardFormat {
  // For messages: "TFRecord".
  absl::string_view name;
  // Whether a file whose decompressed bytes begin with `begin` is surely a shard of this format.
  // `begin` is kFormatMagicBytes long, or the whole file. Null: bytes do not show the format.
  bool (*begins)(absl::string_view begin);
  // The ending of the names of this format's files, before ".gz" and the like: ".tar". If a file's
  // first bytes fit no format, the ending decides its format. So a shard with a damaged beginning
  // is still recognised. Empty: names do not show the format.
  absl::string_view ending;
  // The shard in `file`. Errors are those of reading the file and its index. Damaged records are no
  // error here; see RecordSource::CheckHoldsRecords(). Null if records are whole files.
  absl::StatusOr<std::unique_ptr<RecordSource>> (*open)(ShardFile file,
                                                        const ShardOptions& options);

  // How the records of all shards of this format hold features (RecordSource::examples()). Null:
  // shards may differ. Then each shard is opened when the dataset is opened, not at its first read
  // (DeferShard()).
  const ExampleFormat& (*examples)() = nullptr;

  // The fields from here on are for a format whose records are whole files. All files of a dataset
  // are then one shard.

  // Whether a file of this name is a record. The name alone decides, because there may be a million
  // such files. Null: records are not files.
  bool (*is_record)(absl::string_view name) = nullptr;
  // The base name of the index, without ".idx". The index lies in FileGroup::folder.
  absl::string_view index_base = {};
  // Puts files in the order of their records. InvalidArgument if they cannot be one group.
  absl::StatusOr<FileGroup> (*group)(std::vector<std::string> names) = nullptr;
  // Like `open`, for a group that `group` returned.
  absl::StatusOr<std::unique_ptr<RecordSource>> (*open_group)(
      FileGroup group, const ShardOptions& options) = nullptr;
};

// InvalidArgument if a number is out of range.
absl::Status CheckShardOptions(const ShardOptions& options);

}  // namespace systole

#endif  // SYSTOLE_CORE_RECORD_SOURCE_SHARD_FORMAT_H_
