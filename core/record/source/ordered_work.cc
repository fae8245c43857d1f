#include "core/record/source/ordered_work.h"

#include <atomic>
#include <cstddef>
#include <optional>
#include <vector>

#include "core/interrupt/interrupt.h"
#include "core/status/status_macros.h"

namespace systole {

absl::Status WorkInOrder(int64_t count, ForEachCall for_each,
                         absl::FunctionRef<absl::Status(int64_t i)> work) {
  std::vector<absl::Status> statuses(static_cast<size_t>(count));
  std::atomic<int64_t> first_failed = count;
  const InterruptFlag* const unwanted = HeededInterruptFlag();
  for_each(count, [&](int64_t i) {
    if (i > first_failed.load(std::memory_order_relaxed)) return;
    std::optional<InterruptScope> scope;  // The flag of the thread that waits.
    if (unwanted != nullptr) scope.emplace(*unwanted);
    absl::Status& status = statuses[static_cast<size_t>(i)];
    status = InterruptRequested() ? InterruptedError() : work(i);
    if (status.ok()) return;
    int64_t before = first_failed.load(std::memory_order_relaxed);
    while (i < before && !first_failed.compare_exchange_weak(before, i)) {
    }
  });
  for (const absl::Status& status : statuses) SYSTOLE_RETURN_IF_ERROR(status);
  return absl::OkStatus();
}

}  // namespace systole
