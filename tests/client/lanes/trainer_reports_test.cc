// Tests when the client sends its report to each server. The calls themselves are tested in
// tests/client/feed.
#include "client/lanes/trainer_reports.h"

#include <set>
#include <vector>

#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace systole {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::SizeIs;

constexpr absl::Duration kBegin = absl::Seconds(1000);

class TrainerReportsTest : public testing::Test {
 protected:
  // Sends the reports that are due `seconds` after the beginning, and ends the calls with `status`.
  // Returns the servers.
  std::vector<int> TellAt(int seconds, const std::set<int>& streaming,
                          const absl::Status& status = absl::OkStatus()) {
    const std::vector<int> due = reports_.Due(streaming, kBegin + absl::Seconds(seconds));
    for (const int server : due) {
      reports_.Tell(server, {.waits = 0.5}, [](const absl::Status&) {});
      reports_.Ended(server, status);
    }
    EXPECT_THAT(reports_.TakeEnded(), SizeIs(due.size()));
    EXPECT_TRUE(reports_.idle());
    return due;
  }

  TrainerReports reports_{/*client=*/77, absl::Seconds(10), kBegin};
};

TEST_F(TrainerReportsTest, EachServerThatSendsStepsGetsAReportEvery10Seconds) {
  EXPECT_EQ(reports_.due_at(), kBegin + absl::Seconds(10));
  EXPECT_THAT(TellAt(0, {1, 2}), IsEmpty());
  EXPECT_THAT(TellAt(9, {1, 2}), IsEmpty());
  EXPECT_THAT(TellAt(10, {1, 2}), ElementsAre(1, 2));
  EXPECT_EQ(reports_.due_at(), kBegin + absl::Seconds(20));
  EXPECT_THAT(TellAt(11, {1, 2, 3}), IsEmpty());
  EXPECT_THAT(TellAt(20, {2, 3}), ElementsAre(2, 3));
  // A client that was stopped for a while does not send the missed reports later.
  EXPECT_THAT(TellAt(95, {3}), ElementsAre(3));
  EXPECT_EQ(reports_.due_at(), kBegin + absl::Seconds(105));
}

TEST_F(TrainerReportsTest, WithoutAStreamNoReportIsDue) {
  EXPECT_THAT(TellAt(10, {}), IsEmpty());
  // A time in the past would make the client's keeper thread look again and again.
  EXPECT_EQ(reports_.due_at(), kBegin + absl::Seconds(20));
}

TEST_F(TrainerReportsTest, AServerWithoutTheReportMethodGetsOneReportUntilForgotten) {
  EXPECT_THAT(TellAt(10, {1}, absl::UnimplementedError("")), ElementsAre(1));
  EXPECT_THAT(TellAt(20, {1, 2}), ElementsAre(2));
  EXPECT_THAT(TellAt(3000, {1}), IsEmpty());
  reports_.Forget(1);
  EXPECT_THAT(TellAt(3010, {1}), ElementsAre(1));
}

TEST_F(TrainerReportsTest, AFailedReportDoesNotStopLaterReports) {
  EXPECT_THAT(TellAt(10, {1}, absl::UnavailableError("")), ElementsAre(1));
  EXPECT_THAT(TellAt(20, {1}, absl::DeadlineExceededError("")), ElementsAre(1));
  EXPECT_THAT(TellAt(30, {1}), ElementsAre(1));
}

TEST_F(TrainerReportsTest, AServerHasOneCallAtATime) {
  ASSERT_THAT(reports_.Due({1}, kBegin + absl::Seconds(10)), ElementsAre(1));
  reports_.Tell(1, {.waits = 0.5}, [](const absl::Status&) {});
  EXPECT_THAT(reports_.Due({1}, kBegin + absl::Seconds(20)), IsEmpty());
  EXPECT_THAT(reports_.TakeEnded(), IsEmpty());
  // The server leaves while its call is under way. Its answer does not put it on the list of
  // servers without the method.
  reports_.Forget(1);
  reports_.Ended(1, absl::UnimplementedError(""));
  EXPECT_THAT(reports_.TakeEnded(), SizeIs(1));
  EXPECT_THAT(TellAt(30, {1}), ElementsAre(1));
}

TEST_F(TrainerReportsTest, AfterTheEndNoServerIsDueEverAgain) {
  ASSERT_THAT(reports_.Due({1}, kBegin + absl::Seconds(10)), ElementsAre(1));
  ReportCall* const call = reports_.Tell(1, {.waits = 0.5}, [](const absl::Status&) {});
  EXPECT_THAT(reports_.CancelAll(), ElementsAre(call));
  EXPECT_THAT(reports_.CancelAll(), IsEmpty());
  // No report becomes due any more. If one were due at once, the client would wake up for it again
  // and again.
  EXPECT_EQ(reports_.due_at(), absl::InfiniteDuration());
  EXPECT_THAT(reports_.Due({1, 2}, kBegin + absl::Hours(100)), IsEmpty());
  reports_.Ended(1, absl::CancelledError(""));
  EXPECT_THAT(reports_.TakeEnded(), SizeIs(1));
}

TEST_F(TrainerReportsTest, TheClientsNumberIsInEachMessageAndNeverZero) {
  EXPECT_EQ(reports_.MessageOf({}).client(), 77u);
  EXPECT_FALSE(reports_.MessageOf({}).has_wait_ratio());
  EXPECT_EQ(reports_.MessageOf({.waits = 0.5}).wait_ratio(), 0.5);
  const TrainerReports unlucky(/*client=*/0, absl::Seconds(10), kBegin);
  EXPECT_EQ(unlucky.MessageOf({}).client(), 1u);
}

}  // namespace
}  // namespace systole
