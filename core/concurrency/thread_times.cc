#include "core/concurrency/thread_times.h"

#include <unistd.h>

#include <ctime>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "core/concurrency/kernel_text.h"

namespace systole {

ThreadId OwnThreadId() { return ::gettid(); }

std::optional<ThreadTimes> TimesOf(ThreadId thread) {
  const std::string text = KernelText(absl::StrCat("/proc/self/task/", thread, "/schedstat"));
  // Nanoseconds on a processor, nanoseconds in the queue, number of time slices.
  const std::vector<absl::string_view> fields = absl::StrSplit(text, ' ');
  int64_t running_ns = 0;
  int64_t queued_ns = 0;
  if (fields.size() != 3 || !absl::SimpleAtoi(fields[0], &running_ns) ||
      !absl::SimpleAtoi(fields[1], &queued_ns)) {
    return std::nullopt;
  }
  return ThreadTimes{.running = absl::Nanoseconds(running_ns),
                     .queued = absl::Nanoseconds(queued_ns)};
}

absl::Duration OwnCpuTime() {
  timespec time = {};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return absl::DurationFromTimespec(time);
}

}  // namespace systole
