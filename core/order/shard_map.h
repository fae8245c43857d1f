// Global record numbers of a dataset: shards in order, records in file order, counted from 0.
//
// Thread-compatible: const throughout.
#ifndef SYSTOLE_CORE_ORDER_SHARD_MAP_H_
#define SYSTOLE_CORE_ORDER_SHARD_MAP_H_

#include <cstdint>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"

namespace systole {

struct ShardPlace {
  int64_t shard = 0;  // Index of the shard.
  int64_t index = 0;  // Record in that shard, from 0.

  bool operator==(const ShardPlace&) const = default;
};

class ShardMap {
 public:
  // `records_per_shard` may hold zeros and may be empty. InvalidArgument if a count is negative or
  // the sum exceeds 2^62. O(shards) time, 8 bytes per shard.
  static absl::StatusOr<ShardMap> Create(absl::Span<const int64_t> records_per_shard);

  int64_t num_shards() const { return static_cast<int64_t>(begins_.size()) - 1; }
  int64_t num_records() const { return begins_.back(); }

  // The place of `record`. O(log shards). REQUIRES: 0 <= record < num_records() (CHECK).
  ShardPlace Find(int64_t record) const;

 private:
  explicit ShardMap(std::vector<int64_t> begins) : begins_(std::move(begins)) {}

  std::vector<int64_t> begins_;  // The first record of each shard; then num_records().
};

}  // namespace systole

#endif  // SYSTOLE_CORE_ORDER_SHARD_MAP_H_
