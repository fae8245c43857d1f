#include "client/cli/thread_count.h"

#include <sched.h>

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace systole {

absl::StatusOr<int> ThreadCount(int64_t threads) {
  constexpr int64_t kMost = 1024;
  if (threads < 0 || threads > kMost) {
    return absl::InvalidArgumentError(
        absl::StrCat("--threads is ", threads, ", want 0 (all processors) to ", kMost));
  }
  if (threads > 0) return static_cast<int>(threads);
  cpu_set_t allowed;
  if (sched_getaffinity(0, sizeof(allowed), &allowed) != 0) return 1;
  return std::max(1, CPU_COUNT(&allowed));
}

}  // namespace systole
