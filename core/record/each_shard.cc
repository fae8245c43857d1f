#include "core/record/each_shard.h"

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <optional>
#include <vector>

#include "core/concurrency/worker_pool.h"
#include "core/interrupt/interrupt.h"
#include "core/status/status_macros.h"

namespace systole {

absl::Status ForEachShard(int64_t count, int at_once,
                          absl::FunctionRef<absl::Status(int64_t i)> work) {
  std::vector<absl::Status> statuses(static_cast<size_t>(count));
  std::atomic<int64_t> first_failed = count;
  const InterruptFlag* const unwanted = HeededInterruptFlag();
  const auto work_on = [&](int64_t i) {
    if (i > first_failed.load(std::memory_order_relaxed)) return;
    std::optional<InterruptScope> scope;  // The flag of the thread that waits.
    if (unwanted != nullptr) scope.emplace(*unwanted);
    absl::Status& status = statuses[static_cast<size_t>(i)];
    status = InterruptRequested() ? InterruptedError() : work(i);
    if (status.ok()) return;
    int64_t before = first_failed.load(std::memory_order_relaxed);
    while (i < before && !first_failed.compare_exchange_weak(before, i)) {
    }
  };
  const auto helpers = static_cast<int>(std::min<int64_t>(at_once, count)) - 1;
  if (helpers > 0) {
    WorkerPool pool(helpers);  // The calling thread works, too.
    ParallelFor(pool, count, work_on);
  } else {
    for (int64_t i = 0; i < count; ++i) work_on(i);
  }
  for (const absl::Status& status : statuses) SYSTOLE_RETURN_IF_ERROR(status);
  return absl::OkStatus();
}

}  // namespace systole
