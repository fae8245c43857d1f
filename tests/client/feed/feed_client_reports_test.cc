// Tests the reports of a client about its trainer.
#include <cstddef>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/time/time.h"
#include "client/feed/feed_client.h"
#include "core/concurrency/mutex.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/client/feed/drained_feed.h"
#include "tests/client/feed/fake_server.h"
#include "tests/status_matchers.h"
#include "tests/wait_until.h"

namespace systole {
namespace {

FeedClientOptions Reporting(std::vector<std::string> servers,
                            absl::Duration every = absl::Milliseconds(1)) {
  FeedClientOptions options = Quick(std::move(servers));
  options.report_every = every;
  options.prefetch_bytes = 0;  // Room for two steps: a trainer that pauses keeps its stream open.
  return options;
}

// Keeps the reports that come.
struct Reports {
  absl::Status Take(const v1::TrainerReport& report) {
    MutexLock lock(mu);
    reports.push_back(report);
    return answer;
  }
  size_t count() {
    MutexLock lock(mu);
    return reports.size();
  }
  v1::TrainerReport last() {
    MutexLock lock(mu);
    return reports.back();
  }

  const absl::Status answer;
  Mutex mu;
  std::vector<v1::TrainerReport> reports;
};

FakeFeed ReportingTo(Reports& reports) {
  FakeFeed feed = {.epochs = 1, .steps_per_epoch = 2000};
  feed.example_bytes = 1;
  feed.report = [&reports](const v1::TrainerReport& report) { return reports.Take(report); };
  return feed;
}

TEST(FeedClientReportsTest, EachStreamRequestHasTheClientNumberAndTheWaitRatioOnceKnown) {
  FakeFeed feed = {.epochs = 1, .steps_per_epoch = 1500};  // A stream has 1,024 steps.
  feed.example_bytes = 1;
  const FakeServer server(feed);
  const auto client = MustCreate(feed, Reporting({server.address()}, absl::InfiniteDuration()));
  ASSERT_NE(client, nullptr);
  ExpectAllSteps(Drain(*client), 0, 1500);
  const std::vector<v1::StreamStepsRequest> requests = server.requests();
  ASSERT_EQ(requests.size(), 2u);
  EXPECT_NE(requests[0].trainer().client(), 0u);
  EXPECT_FALSE(requests[0].trainer().has_wait_ratio());
  EXPECT_EQ(requests[1].trainer().client(), requests[0].trainer().client());
  EXPECT_TRUE(requests[1].trainer().has_wait_ratio());
  EXPECT_GT(requests[1].trainer().steps_per_second(), 0);
  EXPECT_EQ(server.reports(), 0);
}

TEST(FeedClientReportsTest, AServerThatSendsStepsGetsRepeatedReports) {
  Reports reports;
  const FakeFeed feed = ReportingTo(reports);
  const FakeServer server(feed);
  const auto client = MustCreate(feed, Reporting({server.address()}));
  ASSERT_NE(client, nullptr);
  // The stream stays open, because the trainer takes none of its steps for now.
  ASSERT_TRUE(WaitUntil([&] { return reports.count() >= 3; }));
  EXPECT_FALSE(reports.last().has_wait_ratio());
  ASSERT_THAT(client->Next(), IsOk());
  ASSERT_THAT(client->Next(), IsOk());
  ASSERT_TRUE(WaitUntil([&] { return reports.last().has_wait_ratio(); }));
  EXPECT_EQ(reports.last().client(), server.requests()[0].trainer().client());
  ExpectAllSteps(Drain(*client), 2, 2000);
}

TEST(FeedClientReportsTest, TwoClientsHaveDifferentNumbers) {
  const FakeFeed feed = {.epochs = 1, .steps_per_epoch = 5};
  const FakeServer server(feed);
  for (int i = 0; i < 2; ++i) {
    const auto client = MustCreate(feed, Quick({server.address()}));
    ASSERT_NE(client, nullptr);
    ExpectAllSteps(Drain(*client), 0, 5);
  }
  ASSERT_EQ(server.requests().size(), 2u);
  EXPECT_NE(server.requests()[0].trainer().client(), server.requests()[1].trainer().client());
}

TEST(FeedClientReportsTest, AServerWithoutTheReportMethodGetsOneReportAndServesTheFeed) {
  Reports reports;
  FakeFeed feed = ReportingTo(reports);
  feed.report = nullptr;
  const FakeServer older(feed);
  const auto client = MustCreate(feed, Reporting({older.address()}));
  ASSERT_NE(client, nullptr);
  ASSERT_TRUE(WaitUntil([&] { return older.reports() == 1; }));
  ExpectAllSteps(Drain(*client), 0, 2000);
  EXPECT_EQ(older.reports(), 1);
  EXPECT_EQ(client->stats().streams_lost, 0);
}

TEST(FeedClientReportsTest, AFailedReportIsNoErrorOfTheFeed) {
  for (const absl::StatusCode code :
       {absl::StatusCode::kUnavailable, absl::StatusCode::kInternal, absl::StatusCode::kAborted,
        absl::StatusCode::kUnauthenticated, absl::StatusCode::kPermissionDenied,
        absl::StatusCode::kResourceExhausted}) {
    Reports reports = {.answer = absl::Status(code, "no")};
    const FakeFeed feed = ReportingTo(reports);
    const FakeServer server(feed);
    const auto client = MustCreate(feed, Reporting({server.address()}));
    ASSERT_NE(client, nullptr);
    ASSERT_TRUE(WaitUntil([&] { return reports.count() >= 2; }));
    ExpectAllSteps(Drain(*client), 0, 2000);
    EXPECT_EQ(client->stats().streams_lost, 0);
  }
}

TEST(FeedClientReportsTest, AReportWithoutAnAnswerHoldsUpNothing) {
  // Reports that the server does not answer until `released`.
  struct Hanging {
    Mutex mu;
    CondVar changed;
    bool released ABSL_GUARDED_BY(mu) = false;
    bool came ABSL_GUARDED_BY(mu) = false;
  } hanging;
  Reports unused;
  FakeFeed feed = ReportingTo(unused);
  feed.report = [&hanging](const v1::TrainerReport&) {
    MutexLock lock(hanging.mu);
    hanging.came = true;
    while (!hanging.released) hanging.changed.Wait(hanging.mu);
    return absl::OkStatus();
  };
  const FakeServer server(feed);
  auto client = MustCreate(feed, Reporting({server.address()}));
  ASSERT_NE(client, nullptr);
  ASSERT_TRUE(WaitUntil([&] {
    MutexLock lock(hanging.mu);
    return hanging.came;
  }));
  ExpectAllSteps(Drain(*client), 0, 2000);
  client.reset();  // Does not wait for the answer.
  MutexLock lock(hanging.mu);
  EXPECT_FALSE(hanging.released);
  hanging.released = true;
  hanging.changed.SignalAll();
}

}  // namespace
}  // namespace systole
