// Record sources in memory, and a zip of them: a source whose records join one record of each
// member.
//
// Thread-compatible.
#ifndef SYSTOLE_TESTS_CORE_RECORD_ZIP_ZIPPED_H_
#define SYSTOLE_TESTS_CORE_RECORD_ZIP_ZIPPED_H_

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "core/example/example_builder.h"
#include "core/record/source/record_source.h"
#include "core/record/source/shard_format.h"
#include "core/record/tfrecord/tfrecord_shard.h"
#include "core/record/zip/zip_names.h"
#include "core/record/zip/zip_shards.h"
#include "core/status/check.h"
#include "core/storage/memory_source.h"
#include "tests/core/record/tfrecord/shard_builder.h"

namespace systole {

using Sources = std::vector<std::shared_ptr<const RecordSource>>;

// A record with the int64 `number` and some bytes `text`, whose size depends on the number.
inline std::string NumberedRecord(int64_t number) {
  return ExampleBuilder()
      .AddInt64s("number", {number})
      .AddBytes("text", std::string(static_cast<size_t>(number % 7) * 11, 'a'))
      .Serialize();
}

inline std::shared_ptr<const RecordSource> ShardOfBytes(std::string bytes, const std::string& name,
                                                        const ShardOptions& options = {}) {
  absl::StatusOr<TfRecordShard> shard = TfRecordShard::Create(
      std::make_unique<MemorySource>(std::move(bytes), absl::StrCat("/data/", name)), options);
  SYSTOLE_CHECK(shard.ok());
  return std::make_shared<const TfRecordShard>(*std::move(shard));
}

inline std::string NumberedBytes(int64_t first, int64_t records) {
  ShardBuilder builder;
  for (int64_t i = first; i < first + records; ++i) builder.Add(NumberedRecord(i));
  return builder.Build();
}

// Shards with the names name-0, name-1 .. `sizes` has the number of records of each shard. The
// records of all shards are numbered from `first` on.
inline Sources NumberedShards(const std::vector<int64_t>& sizes, int64_t first,
                              const std::string& name) {
  Sources shards;
  for (const int64_t size : sizes) {
    shards.push_back(ShardOfBytes(NumberedBytes(first, size),
                                  absl::StrCat(name, "-", shards.size(), ".tfrecord")));
    first += size;
  }
  return shards;
}

inline ZipMember ZipMemberOf(const Sources& shards) {
  std::vector<int64_t> sizes;
  for (const auto& shard : shards) sizes.push_back(shard->num_records());
  absl::StatusOr<ShardMap> map = ShardMap::Create(sizes);
  SYSTOLE_CHECK(map.ok());
  return {.shards = std::make_shared<const Sources>(shards),
          .map = std::make_shared<const ShardMap>(*std::move(map))};
}

// A zip of members m0, m1 .. with these shards and prefixes.
inline Sources Zipped(const std::vector<Sources>& members,
                      const std::vector<std::string>& prefixes) {
  std::vector<ZipNamesOfMember> names;
  std::vector<ZipMember> shards;
  for (size_t i = 0; i < members.size(); ++i) {
    names.push_back(
        {.dataset = absl::StrCat("m", i), .prefix = prefixes[i], .features = {"number"}});
    shards.push_back(ZipMemberOf(members[i]));
  }
  absl::StatusOr<Sources> zipped =
      ZippedShards(std::move(shards), std::make_shared<const ZipNames>(std::move(names)));
  SYSTOLE_CHECK(zipped.ok());
  return *std::move(zipped);
}

}  // namespace systole

#endif  // SYSTOLE_TESTS_CORE_RECORD_ZIP_ZIPPED_H_
