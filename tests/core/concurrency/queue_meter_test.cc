#include "core/concurrency/queue_meter.h"

#include <sched.h>

#include <atomic>
#include <optional>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "core/concurrency/monotonic_clock.h"
#include "core/concurrency/thread_times.h"
#include "core/concurrency/worker_pool.h"
#include "gtest/gtest.h"

namespace systole {
namespace {

// While it lives, this thread and the threads that it starts share one processor.
class OneProcessor {
 public:
  OneProcessor() {
    EXPECT_EQ(::sched_getaffinity(0, sizeof(all_), &all_), 0);
    int first = 0;
    while (!CPU_ISSET(first, &all_)) ++first;
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(first, &one);
    EXPECT_EQ(::sched_setaffinity(0, sizeof(one), &one), 0);
  }
  ~OneProcessor() { EXPECT_EQ(::sched_setaffinity(0, sizeof(all_), &all_), 0); }

 private:
  cpu_set_t all_;
};

absl::Duration Queued() { return TimesOf(OwnThreadId()).value_or(ThreadTimes()).queued; }

TEST(QueueMeterTest, TimeWaitingForABusyProcessorCounts) {
  const OneProcessor shared;
  std::atomic<bool> ends = false;
  WorkerPool other(1);
  other.Submit([&] {
    while (!ends) {
    }
  });
  const MonotonicClock clock = SteadyClock();
  QueueMeter meter;
  EXPECT_EQ(meter.Begin(clock()), absl::ZeroDuration());  // The first piece.
  const absl::Duration end = clock();
  meter.End(end);
  const bool told = TimesOf(OwnThreadId()).has_value();  // Not every kernel counts times.
  const absl::Duration before = Queued();
  while (clock() - end < absl::Milliseconds(10) ||
         (told && Queued() - before < absl::Milliseconds(10))) {
  }
  const absl::Duration now = clock();
  const absl::Duration queued = meter.Begin(now);
  ends = true;
  EXPECT_EQ(queued > absl::ZeroDuration(), told);
  EXPECT_LE(queued, now - end);
}

TEST(QueueMeterTest, SleepDoesNotCount) {
  const MonotonicClock clock = SteadyClock();
  QueueMeter meter;
  const absl::Duration before = Queued();
  meter.Begin(clock());
  meter.End(clock());
  absl::SleepFor(absl::Milliseconds(20));
  const absl::Duration queued = meter.Begin(clock());
  EXPECT_LE(queued, Queued() - before);
}

TEST(QueueMeterTest, AShortBreakIsNotMeasured) {
  QueueMeter meter;
  meter.Begin(absl::Seconds(1));
  meter.End(absl::Seconds(2));
  EXPECT_EQ(meter.Begin(absl::Seconds(2) + absl::Milliseconds(1)), absl::ZeroDuration());
}

}  // namespace
}  // namespace systole
