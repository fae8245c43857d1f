// How a thread has spent its time, according to the kernel. These times show whether the thread
// works or waits (mostly for storage).
//
// Thread-safe.
#ifndef SYSTOLE_CORE_CONCURRENCY_THREAD_TIMES_H_
#define SYSTOLE_CORE_CONCURRENCY_THREAD_TIMES_H_

#include <cstdint>
#include <optional>

#include "absl/time/time.h"

namespace systole {

// The kernel's number of a thread.
using ThreadId = int64_t;
ThreadId OwnThreadId();

// Times since the thread began. In the rest of the time the thread slept.
struct ThreadTimes {
  absl::Duration running;  // On a processor.
  absl::Duration queued;   // Ready to run, while others had the processors.
};

// The times of a thread of this process (/proc/self/task/ID/schedstat). Nullopt if the thread has
// ended, or if this kernel does not count times.
std::optional<ThreadTimes> TimesOf(ThreadId thread);

// The time that this thread has run on a processor.
absl::Duration OwnCpuTime();

}  // namespace systole

#endif  // SYSTOLE_CORE_CONCURRENCY_THREAD_TIMES_H_
