#include "core/order/shard_map.h"

#include <algorithm>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "core/random/keyed_permutation.h"
#include "core/status/check.h"

namespace systole {

absl::StatusOr<ShardMap> ShardMap::Create(absl::Span<const int64_t> records_per_shard) {
  std::vector<int64_t> begins;
  begins.reserve(records_per_shard.size() + 1);
  begins.push_back(0);
  for (const int64_t count : records_per_shard) {
    if (count < 0 || count > KeyedPermutation::kMaxSize - begins.back()) {
      return absl::InvalidArgumentError(absl::StrCat(
          "shard ", begins.size() - 1, " has ", count,
          " records, want 0 or more and at most 2^62 in all shards: rebuild its index"));
    }
    begins.push_back(begins.back() + count);
  }
  return ShardMap(std::move(begins));
}

ShardPlace ShardMap::Find(int64_t record) const {
  SYSTOLE_CHECK(record >= 0 && record < num_records());
  // Finds the last shard that begins at or before the record. This shard is not empty: an empty
  // shard begins at the same record as the next shard, which is later.
  const auto after = std::upper_bound(begins_.begin(), begins_.end(), record);
  const int64_t shard = (after - begins_.begin()) - 1;
  return {.shard = shard, .index = record - begins_[shard]};
}

}  // namespace systole
