#include "core/concurrency/pace.h"

#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace systole {
namespace {

using testing::ElementsAre;

// Each reading of the clock advances it by a microsecond. Each sleep takes `oversleep` longer than
// was asked for.
struct ManualClock {
  absl::Duration now;
  absl::Duration oversleep = absl::Microseconds(60);
  std::vector<absl::Duration> sleeps;

  Pacer pacer() {
    return {.now = [this] { return now += absl::Microseconds(1); },
            .sleep =
                [this](absl::Duration length) {
                  sleeps.push_back(length);
                  now += length + oversleep;
                },
            .spin = absl::Microseconds(100)};
  }
};

TEST(PaceTest, SleepsUntilShortlyBeforeTheDeadlineThenSpins) {
  ManualClock clock;
  EXPECT_EQ(PaceUntil(absl::Microseconds(1000), clock.pacer()), absl::Microseconds(1000));
  EXPECT_THAT(clock.sleeps, ElementsAre(absl::Microseconds(899)));  // The first reading took 1 us.
}

TEST(PaceTest, ASleepThatEndsEarlyIsRepeated) {
  ManualClock clock;
  Pacer pacer = clock.pacer();
  pacer.sleep = [&clock](absl::Duration length) {
    clock.sleeps.push_back(length);
    clock.now += clock.sleeps.size() == 1 ? length / 2 : length;
  };
  EXPECT_EQ(PaceUntil(absl::Microseconds(1001), pacer), absl::Microseconds(1001));
  // The first sleep begins at 1 us, asks for 900 us and ends half way. The second one sleeps the
  // rest.
  EXPECT_THAT(clock.sleeps, ElementsAre(absl::Microseconds(900), absl::Microseconds(449)));
}

TEST(PaceTest, AShortWaitSpinsWithoutSleeping) {
  ManualClock clock;
  EXPECT_EQ(PaceUntil(absl::Microseconds(90), clock.pacer()), absl::Microseconds(90));
  EXPECT_THAT(clock.sleeps, ElementsAre());
}

TEST(PaceTest, APassedDeadlineReturnsTheCurrentTimeAtOnce) {
  ManualClock clock = {.now = absl::Microseconds(500)};
  EXPECT_EQ(PaceUntil(absl::Microseconds(90), clock.pacer()), absl::Microseconds(501));
}

TEST(PaceTest, OversleepingIsSeenInTheResult) {
  ManualClock clock = {.oversleep = absl::Microseconds(250)};
  EXPECT_EQ(PaceUntil(absl::Microseconds(1000), clock.pacer()), absl::Microseconds(1151));
}

TEST(PaceTest, DeadlinesThatAdvanceByThePeriodDoNotDrift) {
  // A sleep shall end 100 us before the deadline, but it ends 30 us after the deadline.
  ManualClock clock = {.oversleep = absl::Microseconds(130)};
  absl::Duration deadline;
  for (int i = 1; i <= 1000; ++i) {
    deadline += absl::Microseconds(375);
    const absl::Duration late = PaceUntil(deadline, clock.pacer()) - deadline;
    EXPECT_GE(late, absl::ZeroDuration());
    EXPECT_LE(late, absl::Microseconds(32));
  }
}

TEST(PaceTest, TheMachinesClockWaitsAtLeastUntilTheDeadline) {
  const Pacer pacer;
  const absl::Duration deadline = pacer.now() + absl::Microseconds(300);
  EXPECT_GE(PaceUntil(deadline, pacer), deadline);
}

}  // namespace
}  // namespace systole
