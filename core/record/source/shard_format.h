// What a format of shards is to the table of formats (core/record/shard_formats.h), and how a shard
// is opened, whatever its format.
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
  kUse,      // Those that fit are used; others are made anew. One that cannot be kept is a note.
  kRebuild,  // They are made anew. One that cannot be kept is PermissionDenied.
  // None is believed or written: the shard is scanned. A format without checksums of its own
  // compares what it finds with an index that fits.
  kIgnore,
};

struct ShardOptions {
  // Folder for index files, which must exist; empty = beside each shard.
  std::string index_dir = {};
  IndexUse index_use = IndexUse::kUse;
  // Largest payload accepted, in bytes. Stops a hostile record from taking all memory.
  int64_t max_record_bytes = kDefaultMaxRecordBytes;
  // How the shards are compressed, and where their decompressed bytes are held: see
  // ShardFileOptions.
  Compression compression = Compression::kDetect;
  std::shared_ptr<ChunkCache> chunks = {};
  // The formats that shards may have; empty = those of ShardFormats(). For tests.
  absl::Span<const ShardFormat* const> formats = {};
};

// A format: a row of the table. All fields are constants.
struct ShardFormat {
  // For messages: "TFRecord".
  absl::string_view name;
  // Whether a file that begins with `begin`, decompressed, is surely a shard of this format.
  // `begin` is kFormatMagicBytes long, or the whole file. Null: bytes do not tell.
  bool (*begins)(absl::string_view begin);
  // How names of its files end, before ".gz" and the like: ".tar". It decides if no format knows
  // the first bytes, so that a shard with a damaged beginning is still recognised. Empty: names do
  // not tell.
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
