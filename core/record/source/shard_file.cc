#include "core/record/source/shard_file.h"

#include <array>
#include <cstddef>
#include <utility>

#include "core/compression/decompressed_source.h"
#include "core/compression/deflate.h"
#include "core/record/source/record_index.h"
#include "core/status/status_macros.h"
#include "core/storage/stores/stored_file.h"

namespace systole {
namespace {

using Begins = absl::FunctionRef<bool(absl::string_view begin)>;

// The compression of `file`, whose first bytes are `stored`.
absl::StatusOr<Compression> Detect(const ByteSource& file, absl::string_view stored,
                                   Begins begins) {
  // A plain TFRecord shard may begin like gzip, if its first record has 0x8b1f bytes.
  if (begins(stored)) return Compression::kNone;
  const Compression guess = CompressionOf(stored);
  // A zlib header has only two bytes, so a damaged plain shard may begin like zlib. That is why the
  // decompressed bytes must begin like a shard, too.
  if (guess != Compression::kZlib) return guess;
  std::array<char, kFormatMagicBytes> begin;
  SYSTOLE_ASSIGN_OR_RETURN(const size_t inflated,
                           InflateAt(file, guess, {}, "", absl::MakeSpan(begin)));
  // A compressed shard without records has no decompressed bytes.
  return inflated == 0 || begins(absl::string_view(begin.data(), inflated)) ? guess
                                                                            : Compression::kNone;
}

}  // namespace

absl::StatusOr<ShardFile> OpenShardFile(const std::string& path, const ShardFileOptions& options,
                                        Begins begins) {
  SYSTOLE_ASSIGN_OR_RETURN(
      std::unique_ptr<ByteSource> file,
      options.state == nullptr ? OpenStored(path) : OpenStoredInState(path, *options.state));
  SYSTOLE_ASSIGN_OR_RETURN(const uint64_t size_bytes, file->Size());
  ShardFile opened = {.bytes = nullptr,
                      .state = {.size_bytes = size_bytes, .identity = file->identity()},
                      .compression = options.compression,
                      .note = {}};
  if (!file->is_local()) opened.max_records = kMaxFarRecords;
  if (opened.compression == Compression::kDetect) {
    std::string stored(kFormatMagicBytes, '\0');
    SYSTOLE_ASSIGN_OR_RETURN(const size_t read, file->ReadAt(0, absl::MakeSpan(stored)));
    stored.resize(read);
    SYSTOLE_ASSIGN_OR_RETURN(opened.compression, Detect(*file, stored, begins));
    if (opened.compression == Compression::kNone) opened.begin = std::move(stored);
  }
  if (opened.compression == Compression::kNone) {
    opened.bytes = std::move(file);
    return opened;
  }
  const DecompressedOptions how = {.compression = opened.compression,
                                   .restart_path = options.restart_path,
                                   .rebuild = options.rebuild,
                                   .write_index = options.write_index,
                                   .chunks = options.chunks};
  SYSTOLE_ASSIGN_OR_RETURN(opened.bytes,
                           DecompressedSource::Open(std::move(file), how, &opened.note));
  return opened;
}

}  // namespace systole
