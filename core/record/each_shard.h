// Does the same work for each shard of a set, several shards at a time, because work on a shard
// mostly waits for a disk or a server.
//
// Thread-safe: no state.
#ifndef SYSTOLE_CORE_RECORD_EACH_SHARD_H_
#define SYSTOLE_CORE_RECORD_EACH_SHARD_H_

#include <cstdint>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"

namespace systole {

// How many shards are opened at a time. A scan of a far shard holds up to kMostFarReadBytes (8 MiB)
// of it, so 16 scans hold 128 MiB.
inline constexpr int kShardsOpenedAtOnce = 16;

// WorkInOrder() for `count` shards, on this thread and others. Works on `at_once` shards at a time,
// or on fewer if the system gives no more threads. The returned error is always the error of the
// first shard, in order, that has one. REQUIRES: at_once > 0. A task of a WorkerPool may call this
// function, too: the function does not use the pool's threads, but makes threads of its own, and
// ends them before it returns.
absl::Status ForEachShard(int64_t count, int at_once,
                          absl::FunctionRef<absl::Status(int64_t i)> work);

}  // namespace systole

#endif  // SYSTOLE_CORE_RECORD_EACH_SHARD_H_
