#include "core/record/each_shard.h"

#include "core/concurrency/worker_pool.h"
#include "core/record/source/ordered_work.h"

namespace systole {

absl::Status ForEachShard(int64_t count, int at_once,
                          absl::FunctionRef<absl::Status(int64_t i)> work) {
  return WorkInOrder(
      count,
      [at_once](int64_t shards, absl::FunctionRef<void(int64_t i)> call) {
        ParallelFor(at_once, shards, call);
      },
      work);
}

}  // namespace systole
