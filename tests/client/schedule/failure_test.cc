#include "client/schedule/failure.h"

#include "gtest/gtest.h"

namespace systole {
namespace {

FailureKind KindOf(absl::StatusCode code, bool running) {
  return FailureOf(code, std::nullopt, running).kind;
}

TEST(FailureTest, StatusCodesMapToFailureKinds) {
  for (const bool running : {false, true}) {
    EXPECT_EQ(KindOf(absl::StatusCode::kUnavailable, running), FailureKind::kLost);
    EXPECT_EQ(KindOf(absl::StatusCode::kDeadlineExceeded, running), FailureKind::kLost);
    EXPECT_EQ(KindOf(absl::StatusCode::kInternal, running), FailureKind::kSuspect);
    EXPECT_EQ(KindOf(absl::StatusCode::kCancelled, running), FailureKind::kSuspect);
    EXPECT_EQ(KindOf(absl::StatusCode::kUnknown, running), FailureKind::kSuspect);
    EXPECT_EQ(KindOf(absl::StatusCode::kAborted, running), FailureKind::kDamaged);
    EXPECT_EQ(KindOf(absl::StatusCode::kDataLoss, running), FailureKind::kFinal);
    EXPECT_EQ(KindOf(absl::StatusCode::kFailedPrecondition, running), FailureKind::kFinal);
    EXPECT_EQ(KindOf(absl::StatusCode::kNotFound, running), FailureKind::kFinal);
    EXPECT_EQ(KindOf(absl::StatusCode::kInvalidArgument, running), FailureKind::kFinal);
  }
}

TEST(FailureTest, RefusalsAreFinalOnlyIfNoServerHasServedTheFeedYet) {
  for (const absl::StatusCode code :
       {absl::StatusCode::kUnimplemented, absl::StatusCode::kUnauthenticated,
        absl::StatusCode::kPermissionDenied, absl::StatusCode::kResourceExhausted}) {
    EXPECT_EQ(KindOf(code, /*running=*/false), FailureKind::kFinal) << code;
    EXPECT_EQ(KindOf(code, /*running=*/true), FailureKind::kSuspect) << code;
  }
}

TEST(FailureTest, ResourceExhaustedWithAPushbackIsLostAndKeepsThePushback) {
  const Failure full =
      FailureOf(absl::StatusCode::kResourceExhausted, absl::Seconds(3), /*running=*/false);
  EXPECT_EQ(full.kind, FailureKind::kLost);
  EXPECT_EQ(full.pushback, absl::Seconds(3));
}

TEST(FailureTest, APauseThatAServerAsksForIsBounded) {
  EXPECT_EQ(FailureOf(absl::StatusCode::kUnavailable, absl::Hours(1000), false).pushback,
            kMaxPushback);
  EXPECT_EQ(FailureOf(absl::StatusCode::kUnavailable, absl::Seconds(-1), false).pushback,
            absl::ZeroDuration());
}

}  // namespace
}  // namespace systole
