#include "client/feed/lane_retry.h"

#include <optional>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace systole {
namespace {

using testing::ElementsAre;
using testing::Eq;
using testing::Optional;

constexpr absl::Duration kLimit = absl::Minutes(10);

TEST(LaneRetryTest, TriesEveryServerOnceBeforeItPausesAndThenDoubles) {
  LaneRetry retry(
      {.servers = 3, .backoff = absl::Milliseconds(50), .max_backoff = absl::Milliseconds(150)});
  std::vector<absl::Duration> waits;
  for (int i = 0; i < 6; ++i) {
    waits.push_back(*retry.Failed(FailureKind::kLost, absl::Seconds(i), kLimit));
  }
  EXPECT_THAT(waits, ElementsAre(absl::ZeroDuration(), absl::ZeroDuration(), absl::Milliseconds(50),
                                 absl::Milliseconds(100), absl::Milliseconds(150),
                                 absl::Milliseconds(150)));
}

TEST(LaneRetryTest, GivesUpWhenTheLimitIsOverSinceTheFirstFailure) {
  LaneRetry retry({.max_backoff = absl::Hours(1)});
  const absl::Duration start = absl::Hours(1000);
  ASSERT_TRUE(retry.Failed(FailureKind::kLost, start, kLimit).has_value());
  // The last pause ends with the limit, so that there is an attempt at its end.
  for (int i = 0; i < 15; ++i) retry.Failed(FailureKind::kLost, start, kLimit);
  EXPECT_THAT(retry.Failed(FailureKind::kLost, start + absl::Minutes(9), kLimit),
              Optional(Eq(absl::Minutes(1))));
  EXPECT_EQ(retry.Failed(FailureKind::kLost, start + kLimit, kLimit), std::nullopt);
}

TEST(LaneRetryTest, ProgressForgetsWhatWasBefore) {
  LaneRetry retry({.backoff = absl::Seconds(1), .max_backoff = absl::Seconds(64)});
  for (int i = 0; i < 5; ++i) retry.Failed(FailureKind::kLost, absl::Seconds(i), kLimit);
  EXPECT_TRUE(retry.is_failing());
  retry.Progress();
  EXPECT_FALSE(retry.is_failing());
  EXPECT_THAT(retry.Failed(FailureKind::kLost, absl::Hours(5), kLimit),
              Optional(Eq(absl::Seconds(1))));
}

TEST(LaneRetryTest, SuspectAndDamagedHaveFewAttempts) {
  LaneRetry suspect({});
  for (int i = 1; i < kMaxSuspectFailures; ++i) {
    EXPECT_TRUE(suspect.Failed(FailureKind::kSuspect, absl::ZeroDuration(), kLimit).has_value());
  }
  EXPECT_EQ(suspect.Failed(FailureKind::kSuspect, absl::ZeroDuration(), kLimit), std::nullopt);
  LaneRetry damaged({});
  for (int i = 1; i < kMaxDamagedFailures; ++i) {
    EXPECT_TRUE(damaged.Failed(FailureKind::kDamaged, absl::ZeroDuration(), kLimit).has_value());
    // Others between them do not make them fewer.
    EXPECT_TRUE(damaged.Failed(FailureKind::kLost, absl::ZeroDuration(), kLimit).has_value());
  }
  EXPECT_EQ(damaged.Failed(FailureKind::kDamaged, absl::ZeroDuration(), kLimit), std::nullopt);
}

TEST(LaneRetryTest, FinalIsFinal) {
  LaneRetry retry({});
  EXPECT_EQ(retry.Failed(FailureKind::kFinal, absl::ZeroDuration(), kLimit), std::nullopt);
}

TEST(LaneRetryTest, ThousandsOfFailuresDoNotOverflowThePause) {
  LaneRetry retry({.backoff = absl::Hours(1), .max_backoff = absl::Hours(2)});
  for (int i = 0; i < 5000; ++i) {
    const auto wait = retry.Failed(FailureKind::kLost, absl::ZeroDuration(), absl::Hours(9000));
    ASSERT_TRUE(wait.has_value());
    ASSERT_GE(*wait, absl::Hours(1));
    ASSERT_LE(*wait, absl::Hours(2));
  }
}

TEST(LaneRetryTest, CodesHaveTheirKind) {
  EXPECT_EQ(KindOf(absl::StatusCode::kUnavailable), FailureKind::kLost);
  EXPECT_EQ(KindOf(absl::StatusCode::kDeadlineExceeded), FailureKind::kLost);
  EXPECT_EQ(KindOf(absl::StatusCode::kInternal), FailureKind::kSuspect);
  EXPECT_EQ(KindOf(absl::StatusCode::kCancelled), FailureKind::kSuspect);
  EXPECT_EQ(KindOf(absl::StatusCode::kDataLoss), FailureKind::kFinal);
  EXPECT_EQ(KindOf(absl::StatusCode::kFailedPrecondition), FailureKind::kFinal);
  EXPECT_EQ(KindOf(absl::StatusCode::kNotFound), FailureKind::kFinal);
}

}  // namespace
}  // namespace systole
