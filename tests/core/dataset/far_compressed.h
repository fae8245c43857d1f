// Datasets of compressed shards that are not on this machine.
//
// Thread-compatible.
#ifndef SYSTOLE_TESTS_CORE_DATASET_FAR_COMPRESSED_H_
#define SYSTOLE_TESTS_CORE_DATASET_FAR_COMPRESSED_H_

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "core/compression/compressing_sink.h"
#include "core/compression/compression.h"
#include "core/compression/decompressed_source.h"
#include "core/dataset/dataset.h"
#include "core/example/example_builder.h"
#include "core/record/tfrecord/tfrecord_shard.h"
#include "core/status/check.h"
#include "core/storage/byte_sink.h"
#include "tests/core/record/tfrecord/shard_builder.h"
#include "tests/core/storage/gated_source.h"

namespace systole {

inline constexpr Compression kCompressions[] = {Compression::kGzip, Compression::kZlib,
                                                Compression::kZstd};

// As `systole pack` would write it.
inline std::string Compressed(absl::string_view bytes, Compression compression) {
  std::string out;
  absl::StatusOr<std::unique_ptr<ByteSink>> sink =
      CompressingSink(std::make_unique<StringSink>(&out), compression);
  SYSTOLE_CHECK(sink.ok() && (*sink)->Append(bytes).ok() && (*sink)->Close().ok());
  return out;
}

// Shards whose records hardly compress and have up to `most_bytes`, so that a chunk has some of
// them. Record i has the features label, weight, and noise.
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

// A far source of `bytes`, compressed. Its reads pass `gate`; those of its restart points do not.
inline std::unique_ptr<ByteSource> FarCompressed(absl::string_view bytes, Compression compression,
                                                 const std::string& name,
                                                 std::shared_ptr<Gate> gate,
                                                 const std::string& restart_path) {
  std::string note;
  absl::StatusOr<std::unique_ptr<DecompressedSource>> source = DecompressedSource::Open(
      std::make_unique<GatedSource>(Compressed(bytes, compression), name, std::move(gate),
                                    /*is_local=*/false, /*identity=*/"v1"),
      {.compression = compression, .restart_path = restart_path}, &note);
  SYSTOLE_CHECK(source.ok() && note.empty());
  return *std::move(source);
}

// The dataset of these shards, compressed. The restart points of shard i are in the file
// `<restart_prefix><i>.restart`; none are kept if the prefix is empty.
inline std::shared_ptr<Dataset> OpenFarCompressed(const std::vector<std::string>& shard_bytes,
                                                  Compression compression,
                                                  const std::shared_ptr<Gate>& gate,
                                                  const std::string& restart_prefix,
                                                  const std::string& dataset_name = "test") {
  std::vector<std::unique_ptr<const RecordSource>> shards;
  for (const std::string& bytes : shard_bytes) {
    const std::string restart_path =
        restart_prefix.empty() ? "" : absl::StrCat(restart_prefix, shards.size(), ".restart");
    absl::StatusOr<TfRecordShard> shard = TfRecordShard::Create(FarCompressed(
        bytes, compression, absl::StrCat("far://data/shard-", shards.size(), ".tfrecord"), gate,
        restart_path));
    SYSTOLE_CHECK(shard.ok());
    shards.push_back(std::make_unique<TfRecordShard>(*std::move(shard)));
  }
  absl::StatusOr<std::shared_ptr<Dataset>> dataset =
      Dataset::Create(dataset_name, std::move(shards));
  SYSTOLE_CHECK(dataset.ok());
  return *dataset;
}

}  // namespace systole

#endif  // SYSTOLE_TESTS_CORE_DATASET_FAR_COMPRESSED_H_
