// The metrics of a FeedClient. Each metric changes when the thing that it counts happens.
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "client/feed/feed_client.h"
#include "client/feed/infeed_pump.h"
#include "client/infeed/infeed_queue.h"
#include "core/concurrency/worker_pool.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/client/feed/drained_feed.h"
#include "tests/client/feed/fake_server.h"
#include "tests/client/feed/metric_of.h"
#include "tests/status_matchers.h"
#include "tests/wait_until.h"

namespace systole {
namespace {

TEST(FeedClientMetricsTest, EveryStepThatIsTakenCounts) {
  const FakeFeed feed = {.epochs = 1, .steps_per_epoch = 12};
  const FakeServer server(feed);
  FeedClientOptions options = Quick({server.address()});
  options.first_step = 4;
  const auto client = MustCreate(feed, options);
  ASSERT_NE(client, nullptr);
  const int64_t examples = feed.num_cores * feed.per_core_batch;
  for (int64_t taken = 0; taken < 8; ++taken) {
    const std::vector<MetricFamily> metrics = client->Metrics();
    EXPECT_EQ(MetricOf(metrics, "next_step"), 4 + taken);
    EXPECT_EQ(MetricOf(metrics, "examples_taken_total"), taken * examples);
    // The wait for the first step is left out.
    EXPECT_EQ(MetricOf(metrics, "step_wait_seconds_count"), taken == 0 ? 0 : taken - 1);
    ASSERT_THAT(client->Next(), IsOk());
  }
  for (int ended = 0; ended < 2; ++ended) {  // A second Next() at the end changes nothing.
    EXPECT_THAT(client->Next(), IsOkAndHolds(testing::Eq(std::nullopt)));
    const std::vector<MetricFamily> metrics = client->Metrics();
    EXPECT_EQ(MetricOf(metrics, "next_step"), 12);
    EXPECT_EQ(MetricOf(metrics, "steps_received_total"), 8);
    EXPECT_EQ(MetricOf(metrics, "examples_taken_total"), 8 * examples);
    EXPECT_EQ(MetricOf(metrics, "step_wait_seconds_count"), 7);
    EXPECT_EQ(MetricOf(metrics, "ready_steps"), 0);
    EXPECT_EQ(MetricOf(metrics, "buffered_bytes"), 0);
    EXPECT_EQ(MetricOf(metrics, "waiting_seconds"), 0);
    double waited = 0;
    for (const char* cause : {"storage", "decode", "wire", "client", "unknown"}) {
      waited +=
          MetricOf(metrics, absl::StrCat("trainer_wait_seconds_total{cause=\"", cause, "\"}"));
    }
    EXPECT_NEAR(MetricOf(metrics, "step_wait_seconds_sum"), waited, 1e-6);
  }
}

TEST(FeedClientMetricsTest, StepsThatWaitForTheTrainerAreReadyAndTakeMemory) {
  const FakeFeed feed = {.epochs = 0};
  const FakeServer server(feed);
  FeedClientOptions options = Quick({server.address()});
  options.prefetch_bytes = 5 * feed.num_cores * 1000;
  options.start_at_once = false;  // So no step comes before the first Next().
  const auto client = MustCreate(feed, options);
  ASSERT_NE(client, nullptr);
  EXPECT_EQ(MetricOf(client->Metrics(), "ready_steps"), 0);
  ASSERT_THAT(client->Next(), IsOk());
  const auto full = static_cast<double>(client->window_steps());
  ASSERT_TRUE(WaitUntil([&] { return MetricOf(client->Metrics(), "ready_steps") == full; }));
  EXPECT_EQ(MetricOf(client->Metrics(), "buffered_bytes"),
            full * static_cast<double>(client->shape().bytes()));
}

TEST(FeedClientMetricsTest, WaitingSecondsGrowDuringAWaitAndThenReturnToZero) {
  const FakeFeed feed = {.spoil = [](int, int, FakeChunk& piece) {
    if (piece.header.step == 1) piece.hang = true;
  }};
  const FakeServer server(feed);
  const auto client = MustCreate(feed, Quick({server.address()}));
  ASSERT_NE(client, nullptr);
  ASSERT_THAT(client->Next(), IsOk());
  EXPECT_EQ(MetricOf(client->Metrics(), "waiting_seconds"), 0);
  WorkerPool trainer(1);
  trainer.Submit(
      [&] { EXPECT_THAT(client->Next(), StatusIs(absl::StatusCode::kCancelled, testing::_)); });
  double before = 0;
  for (int more = 0; more < 3; ++more) {  // The value grows.
    ASSERT_TRUE(WaitUntil([&] { return MetricOf(client->Metrics(), "waiting_seconds") > before; }));
    before = MetricOf(client->Metrics(), "waiting_seconds");
  }
  client->Cancel();
  ASSERT_TRUE(WaitUntil([&] { return MetricOf(client->Metrics(), "waiting_seconds") == 0; }));
}

// No value that a peer sends makes a new series.
TEST(FeedClientMetricsTest, AllFeedsHaveTheSameSeries) {
  const FakeFeed small;
  const FakeFeed other = {.num_cores = 4, .pixels = true, .content_version = "fake-\"2\\"};
  const FakeServer a(small), b(other);
  const auto first = MustCreate(small, Quick({a.address()}));
  const auto second = MustCreate(other, Quick({b.address()}));
  ASSERT_NE(first, nullptr);
  ASSERT_NE(second, nullptr);
  Drain(*first);
  EXPECT_EQ(Exposed(first->Metrics()).names(), Exposed(second->Metrics()).names());
}

TEST(FeedClientMetricsTest, APumpReportsTheReadyStepsOfTheShortestQueue) {
  const FakeFeed feed = {.epochs = 1, .steps_per_epoch = 3};
  const FakeServer server(feed);
  const auto client = MustCreate(feed, Quick({server.address()}));
  ASSERT_NE(client, nullptr);
  InfeedQueue left(8);
  InfeedQueue right(8);
  const InfeedPump pump(*client, {&left, &right});
  ASSERT_TRUE(WaitUntil([&] { return MetricOf(pump.Metrics(), "infeed_ready_steps") == 3; }));
  ASSERT_THAT(right.Pop(), IsOk());
  EXPECT_EQ(MetricOf(pump.Metrics(), "infeed_ready_steps"), 2);
  EXPECT_EQ(MetricOf(pump.Metrics(), "steps_received_total"), 3);
}

}  // namespace
}  // namespace systole
