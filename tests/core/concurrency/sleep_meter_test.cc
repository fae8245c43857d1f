#include "core/concurrency/sleep_meter.h"

#include "absl/time/time.h"
#include "core/concurrency/monotonic_clock.h"
#include "core/concurrency/mutex.h"
#include "core/concurrency/thread_times.h"
#include "gtest/gtest.h"

namespace systole {
namespace {

void Sleep(absl::Duration time) {
  Mutex mu;
  CondVar never;
  const MonotonicClock clock = SteadyClock();
  const absl::Duration end = clock() + time;
  MutexLock lock(mu);
  while (clock() < end) never.WaitFor(mu, end - clock());
}

TEST(SleepMeterTest, SleepCountsAndWorkDoesNot) {
  const bool told = TimesOf(OwnThreadId()).has_value();  // Not every kernel counts times.
  const MonotonicClock clock = SteadyClock();
  SleepMeter meter;
  meter.Begin(clock());
  Sleep(absl::Milliseconds(50));
  const absl::Duration slept = meter.End(clock());
  // A busy machine wakes the thread late, which does not count as sleep.
  if (told) {
    EXPECT_GT(slept, absl::Milliseconds(25));
  } else {
    EXPECT_EQ(slept, absl::ZeroDuration());
  }
  meter.Begin(clock());
  const absl::Duration begin = OwnCpuTime();
  while (OwnCpuTime() - begin < absl::Milliseconds(50)) {
  }
  EXPECT_LT(meter.End(clock()), absl::Milliseconds(25));
}

// Short pieces are not measured one by one.
TEST(SleepMeterTest, SleepCountsAfterAnyNumberOfShortPieces) {
  if (!TimesOf(OwnThreadId()).has_value()) return;  // This kernel does not count times.
  const MonotonicClock clock = SteadyClock();
  SleepMeter meter;
  for (int shorts = 0; shorts < 40; ++shorts) {
    for (int i = 0; i < shorts; ++i) {
      meter.Begin(clock());
      meter.End(clock());
    }
    meter.Begin(clock());
    Sleep(absl::Milliseconds(5));
    EXPECT_GT(meter.End(clock()), absl::Milliseconds(1)) << shorts;
  }
}

}  // namespace
}  // namespace systole
