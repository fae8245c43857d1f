// A shard's file, opened: its bytes after decompression.
//
// Thread-safe: no state.
#ifndef SYSTOLE_CORE_RECORD_SOURCE_SHARD_FILE_H_
#define SYSTOLE_CORE_RECORD_SOURCE_SHARD_FILE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "core/compression/chunk_cache.h"
#include "core/compression/compression.h"
#include "core/storage/byte_source.h"
#include "core/storage/store.h"

namespace systole {

// How many bytes of a file's beginning are read to find its format.
inline constexpr size_t kFormatMagicBytes = 512;

struct ShardFileOptions {
  // kDetect: a file that begins like a shard of some format counts as not compressed. For any other
  // file, the first bytes decide the compression.
  Compression compression = Compression::kDetect;
  // The cache of decompressed bytes, which the shards of a process share. Null: a cache for each
  // shard.
  std::shared_ptr<ChunkCache> chunks = {};
  // See DecompressedOptions. Empty: nothing is kept on disk.
  std::string restart_path = {};
  bool rebuild = false;
  bool write_index = false;  // ShardOptions::write_index.
  // The state in which the file is opened. Null: in its present state.
  const StoredState* state = nullptr;
};

struct ShardFile {
  std::unique_ptr<ByteSource> bytes;  // Decompressed.
  StoredState state;                  // The state of the stored file.
  Compression compression = Compression::kNone;
  // The first kFormatMagicBytes of `bytes`, or all bytes if there are fewer. Set if they were read
  // already, because to read them again may cost a request.
  std::optional<std::string> begin = {};
  // The most records that the file may have. Not set: any number, because the file is on this
  // machine.
  std::optional<uint64_t> max_records = {};
  std::string note;  // For a person to read; not an error. May be empty.
};

// `path` is a name in any store. `begins` gets at most kFormatMagicBytes and says whether a shard
// of some format begins with them. Returns the errors of OpenStored(),
// OpenStoredInState() and DecompressedSource::Open.
absl::StatusOr<ShardFile> OpenShardFile(const std::string& path, const ShardFileOptions& options,
                                        absl::FunctionRef<bool(absl::string_view begin)> begins);

}  // namespace systole

#endif  // SYSTOLE_CORE_RECORD_SOURCE_SHARD_FILE_H_
