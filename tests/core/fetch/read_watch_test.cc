#include "core/fetch/read_watch.h"

#include <cstddef>
#include <memory>

#include "absl/time/time.h"
#include "gtest/gtest.h"

namespace systole {
namespace {

constexpr absl::Duration kTimeout = absl::Seconds(60);
constexpr absl::Duration kNow = absl::Hours(1);

// A read that is looked at each second.
class Watched {
 public:
  // Lets seconds pass until the read has timed out, but at most `seconds`. In each second `bytes`
  // bytes come. Returns how many seconds passed, or 0 if the read has not timed out.
  int PassSeconds(int seconds, size_t bytes) {
    for (int second = 1; second <= seconds; ++second) {
      now_ += absl::Seconds(1);
      watch_.progress()->Add(bytes);
      if (watch_.HasTimedOut(now_)) return second;
    }
    return 0;
  }
  // Lets `time` pass without a look at the read.
  void Stop(absl::Duration time) { now_ += time; }

 private:
  absl::Duration now_ = kNow;
  ReadWatch watch_{kTimeout, kNow};
};

TEST(ReadWatchTest, AReadWithoutBytesTimesOutAtTheSecondLookThatFindsItLate) {
  EXPECT_EQ(Watched().PassSeconds(100, 0), 61);
}

TEST(ReadWatchTest, AReadThatBringsEnoughBytesTimesOutAfterFiveTimeouts) {
  EXPECT_EQ(Watched().PassSeconds(1000, 1024), 301);
}

TEST(ReadWatchTest, AReadThatDripsTimesOutAsIfNothingCame) {
  EXPECT_EQ(Watched().PassSeconds(100, 1000), 61);
}

TEST(ReadWatchTest, TheTimeoutCountsFromTheLastBytes) {
  Watched read;
  EXPECT_EQ(read.PassSeconds(100, 100'000), 0);
  EXPECT_EQ(read.PassSeconds(100, 0), 61);
}

TEST(ReadWatchTest, AReadThatGoesOnAfterTheProcessWasStoppedHasNotTimedOut) {
  Watched read;
  EXPECT_EQ(read.PassSeconds(10, 100'000), 0);
  read.Stop(absl::Minutes(2));
  EXPECT_EQ(read.PassSeconds(1, 0), 0);
  EXPECT_EQ(read.PassSeconds(50, 100'000), 0);
}

}  // namespace
}  // namespace systole
