// Compressed shards of sources that are not local.
//
// Thread-safe: no state.
#ifndef SYSTOLE_TESTS_CORE_RECORD_TFRECORD_COMPRESSED_SHARDS_H_
#define SYSTOLE_TESTS_CORE_RECORD_TFRECORD_COMPRESSED_SHARDS_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "core/compression/chunk_cache.h"
#include "core/compression/compressing_sink.h"
#include "core/compression/compression.h"
#include "core/compression/decompressed_source.h"
#include "core/example/example_builder.h"
#include "core/status/check.h"
#include "core/storage/byte_sink.h"
#include "core/storage/byte_source.h"
#include "tests/core/record/tfrecord/shard_builder.h"
#include "tests/core/storage/gated_source.h"

namespace systole {

inline constexpr Compression kCompressions[] = {Compression::kGzip, Compression::kZlib,
                                                Compression::kZstd};

// The bytes, compressed as `systole pack` would compress them.
inline std::string Compressed(absl::string_view bytes, Compression compression) {
  std::string out;
  absl::StatusOr<std::unique_ptr<ByteSink>> sink =
      CompressingSink(std::make_unique<StringSink>(&out), compression);
  SYSTOLE_CHECK(sink.ok() && (*sink)->Append(bytes).ok() && (*sink)->Close().ok());
  return out;
}

// Shards whose records have the features label, weight, and noise. The noise has less than
// `most_bytes` bytes, and hardly compresses.
inline std::vector<std::string> NoisyShards(const std::vector<int>& records_per_shard,
                                            int most_bytes) {
  std::vector<std::string> shards;
  uint64_t state = 1;
  int64_t number = 0;
  for (const int records : records_per_shard) {
    ShardBuilder builder;
    for (int i = 0; i < records; ++i, ++number) {
      const auto bytes = static_cast<size_t>(number * 7919 % most_bytes);
      std::string noise;
      while (noise.size() < bytes) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        noise.push_back(static_cast<char>(state >> 56));
      }
      builder.Add(ExampleBuilder()
                      .AddBytes("noise", noise)
                      .AddInt64s("label", {number % 5})
                      .AddFloats("weight", {static_cast<float>(number) / 4})
                      .Serialize());
    }
    shards.push_back(builder.Build());
  }
  return shards;
}

// A cache with room for a shard of the tests.
inline std::shared_ptr<ChunkCache> SmallChunkCache() {
  return std::make_shared<ChunkCache>(uint64_t{16} << 20);
}

// Removes from the cache what a scan has left in it, so that the next read decompresses.
inline void Evict(ChunkCache& chunks) {
  const uint64_t file = chunks.NewFile();
  for (const size_t chunk : {0, 1}) {
    SYSTOLE_CHECK(chunks
                      .Read(
                          {.file = file, .chunk = chunk}, chunks.max_chunk_bytes(),
                          [](absl::Span<char>) { return absl::OkStatus(); },
                          [](absl::string_view) {})
                      .ok());
  }
}

// A compressed source of `bytes` that is not local. Reads of the compressed bytes pass `gate`.
// Reads of the restart points, which lie in the file `restart_path`, do not pass it.
inline std::unique_ptr<ByteSource> FarCompressed(absl::string_view bytes, Compression compression,
                                                 const std::string& name,
                                                 std::shared_ptr<Gate> gate,
                                                 const std::string& restart_path,
                                                 std::shared_ptr<ChunkCache> chunks) {
  std::string note;
  absl::StatusOr<std::unique_ptr<DecompressedSource>> source = DecompressedSource::Open(
      std::make_unique<GatedSource>(Compressed(bytes, compression), name, std::move(gate),
                                    /*is_local=*/false, /*identity=*/"v1"),
      {.compression = compression, .restart_path = restart_path, .chunks = std::move(chunks)},
      &note);
  SYSTOLE_CHECK(source.ok() && note.empty());
  return *std::move(source);
}

}  // namespace systole

#endif  // SYSTOLE_TESTS_CORE_RECORD_TFRECORD_COMPRESSED_SHARDS_H_
