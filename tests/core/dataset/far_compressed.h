// Datasets of compressed shards that are not on this machine.
//
// Thread-compatible.
#ifndef SYSTOLE_TESTS_CORE_DATASET_FAR_COMPRESSED_H_
#define SYSTOLE_TESTS_CORE_DATASET_FAR_COMPRESSED_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "core/compression/chunk_cache.h"
#include "core/compression/compression.h"
#include "core/dataset/dataset.h"
#include "core/record/tfrecord/tfrecord_shard.h"
#include "core/status/check.h"
#include "tests/core/record/tfrecord/compressed_shards.h"
#include "tests/core/storage/gated_source.h"

namespace systole {

// Compresses these shards and opens them as a dataset. The cache holds no decompressed part of them
// yet. The restart points of shard i are in the file `<restart_prefix><i>.restart`. With an empty
// prefix none are kept.
inline std::shared_ptr<Dataset> OpenFarCompressed(const std::vector<std::string>& shard_bytes,
                                                  Compression compression,
                                                  const std::shared_ptr<Gate>& gate,
                                                  const std::string& restart_prefix,
                                                  const std::string& dataset_name = "test") {
  std::vector<std::unique_ptr<const RecordSource>> shards;
  const std::shared_ptr<ChunkCache> chunks = SmallChunkCache();
  for (const std::string& bytes : shard_bytes) {
    const std::string restart_path =
        restart_prefix.empty() ? "" : absl::StrCat(restart_prefix, shards.size(), ".restart");
    absl::StatusOr<TfRecordShard> shard = TfRecordShard::Create(FarCompressed(
        bytes, compression, absl::StrCat("far://data/shard-", shards.size(), ".tfrecord"), gate,
        restart_path, chunks));
    SYSTOLE_CHECK(shard.ok());
    shards.push_back(std::make_unique<TfRecordShard>(*std::move(shard)));
  }
  absl::StatusOr<std::shared_ptr<Dataset>> dataset =
      Dataset::Create(dataset_name, std::move(shards));
  SYSTOLE_CHECK(dataset.ok());
  Evict(*chunks);
  return *dataset;
}

}  // namespace systole

#endif  // SYSTOLE_TESTS_CORE_DATASET_FAR_COMPRESSED_H_
