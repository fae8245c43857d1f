// A row of the table of formats (core/record/shard_formats.h), and the options for opening a shard
// of any format.
//
// Thread-compatible.
#ifndef SYSTOLE_CORE_RECORD_SOURCE_SHARD_FORMAT_H_
#define SYSTOLE_CORE_RECORD_SOURCE_SHARD_FORMAT_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "core/compression/chunk_cache.h"
#include "core/compression/compression.h"
#include "core/record/source/record_source.h"
#include "core/record/source/shard_file.h"

namespace systole {

struct ShardFormat;

// What is done with the index files of a shard.
enum class IndexUse {
  kUse,      // Valid ones are used, others made anew. If one cannot be kept, a note says so.
  kRebuild,  // They are made anew. PermissionDenied if one cannot be kept.
  // None is trusted or written: the shard is scanned. A format without checksums of its own
  // compares what it finds with a valid index.
  kIgnore,
};

struct ShardOptions {
  // Folder for index files. It must exist. Empty: beside each shard.
  std::string index_dir = {};
  IndexUse index_use = IndexUse::kUse;
  // Largest payload accepted, in bytes. Stops a hostile record from taking all memory.
  int64_t max_record_bytes = kDefaultMaxRecordBytes;
  // How the shards are compressed, and where their decompressed bytes are kept: see
  // ShardFileOptions.
  Compression compression = Compression::kDetect;
  std::shared_ptr<ChunkCache> chunks = {};
  // The formats that shards may have. Empty: those of ShardFormats(). For tests.
  absl::Span<const ShardFormat* const> formats = {};
};

// A format: a row of the table. All fields are constants.
struct ShardFormat {
  // For messages: "TFRecord".
  absl::string_view name;
  // Whether a file that begins with `begin`, decompressed, is surely a shard of this format.
  // `begin` is kFormatMagicBytes long, or the whole file. Null: bytes do not show the format.
  bool (*begins)(absl::string_view begin);
  // How names of its files end, before ".gz" and the like: ".tar". The ending decides if no format
  // knows the first bytes, so that a shard with a damaged beginning is still recognised. Empty:
  // names do not show the format.
  absl::string_view ending;
  // The shard in `file`. Errors are those of reading it and its index. A shard whose records are
  // damaged is opened; see RecordSource::CheckHoldsRecords().
  absl::StatusOr<std::unique_ptr<RecordSource>> (*open)(ShardFile file,
                                                        const ShardOptions& options);
};

// InvalidArgument if a number is out of range.
absl::Status CheckShardOptions(const ShardOptions& options);

}  // namespace systole

#endif  // SYSTOLE_CORE_RECORD_SOURCE_SHARD_FORMAT_H_
