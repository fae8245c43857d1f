#include "client/schedule/failure.h"

#include "gtest/gtest.h"

namespace systole {
namespace {

TEST(FailureTest, CodesHaveTheirKind) {
  EXPECT_EQ(FailureOf(absl::StatusCode::kUnavailable).kind, FailureKind::kLost);
  EXPECT_EQ(FailureOf(absl::StatusCode::kDeadlineExceeded).kind, FailureKind::kLost);
  EXPECT_EQ(FailureOf(absl::StatusCode::kInternal).kind, FailureKind::kSuspect);
  EXPECT_EQ(FailureOf(absl::StatusCode::kCancelled).kind, FailureKind::kSuspect);
  EXPECT_EQ(FailureOf(absl::StatusCode::kUnknown).kind, FailureKind::kSuspect);
  EXPECT_EQ(FailureOf(absl::StatusCode::kAborted).kind, FailureKind::kDamaged);
  EXPECT_EQ(FailureOf(absl::StatusCode::kDataLoss).kind, FailureKind::kFinal);
  EXPECT_EQ(FailureOf(absl::StatusCode::kFailedPrecondition).kind, FailureKind::kFinal);
  EXPECT_EQ(FailureOf(absl::StatusCode::kNotFound).kind, FailureKind::kFinal);
}

TEST(FailureTest, AFullServerIsTriedAgainOnlyIfItSaysWhen) {
  EXPECT_EQ(FailureOf(absl::StatusCode::kResourceExhausted).kind, FailureKind::kFinal);
  const Failure full = FailureOf(absl::StatusCode::kResourceExhausted, absl::Seconds(3));
  EXPECT_EQ(full.kind, FailureKind::kLost);
  EXPECT_EQ(full.pushback, absl::Seconds(3));
}

TEST(FailureTest, APauseThatAServerAsksForIsBounded) {
  EXPECT_EQ(FailureOf(absl::StatusCode::kUnavailable, absl::Hours(1000)).pushback, kMaxPushback);
  EXPECT_EQ(FailureOf(absl::StatusCode::kUnavailable, absl::Seconds(-1)).pushback,
            absl::ZeroDuration());
}

}  // namespace
}  // namespace systole
