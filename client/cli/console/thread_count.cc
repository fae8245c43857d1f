#include "client/cli/console/thread_count.h"

#include "absl/strings/str_cat.h"
#include "core/concurrency/processors.h"

namespace systole {

absl::StatusOr<int> ThreadCount(int64_t threads) {
  constexpr int64_t kMost = 1024;
  if (threads < 0 || threads > kMost) {
    return absl::InvalidArgumentError(
        absl::StrCat("--threads is ", threads, ", want 0 (all processors) to ", kMost));
  }
  return threads > 0 ? static_cast<int>(threads) : UsableProcessors();
}

}  // namespace systole
