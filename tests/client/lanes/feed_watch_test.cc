#include "client/lanes/feed_watch.h"

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "client/feed/feed_client.h"
#include "core/concurrency/mutex.h"
#include "core/concurrency/worker_pool.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/client/feed/drained_feed.h"
#include "tests/client/feed/fake_server.h"
#include "tests/dead_address.h"
#include "tests/status_matchers.h"
#include "tests/wait_until.h"

namespace systole {
namespace {

using testing::HasSubstr;

// Waits until `watch` shows a wait that `wanted` accepts. Returns nullopt if none comes.
std::optional<FeedWaiting> Await(const FeedWatch& watch,
                                 const std::function<bool(const FeedWaiting&)>& wanted) {
  std::optional<FeedWaiting> seen;
  EXPECT_TRUE(WaitUntil([&] {
    seen = watch.waiting();
    return seen.has_value() && wanted(*seen);
  }));
  return seen;
}

// Twenty steps of 2 MB, more than buffers between a server and a trainer can hold.
FakeFeed LargeSteps() { return {.example_bytes = 1 << 18, .chunk_bytes = 1 << 17}; }

bool IsLost(const FeedWaiting& waiting) { return !waiting.lost.empty(); }

TEST(FeedWatchTest, ShowsTheUnreachableServerWhileCreateWaits) {
  const std::string dead = DeadAddress();
  FeedClientOptions options = Quick({dead});
  std::atomic<bool> looked = false;
  options.interrupted = [&] { return looked.load(); };
  options.watch = std::make_shared<FeedWatch>();
  absl::Status created;
  std::optional<FeedWaiting> seen;
  {
    WorkerPool thread(1);
    thread.Submit([&] { created = FeedClient::Create(SpecOf({}), options).status(); });
    seen = Await(*options.watch, IsLost);
    looked = true;
  }
  EXPECT_THAT(created, StatusIs(absl::StatusCode::kCancelled, HasSubstr("interrupted")));
  ASSERT_TRUE(seen.has_value());
  EXPECT_EQ(seen->lost, dead);
  EXPECT_EQ(seen->asking, dead);
  EXPECT_NE(seen->error, "");
  EXPECT_FALSE(seen->started);
  EXPECT_EQ(seen->limit, options.connect_timeout);
  EXPECT_FALSE(options.watch->waiting().has_value());  // The feed is gone.
}

TEST(FeedWatchTest, ShowsTheLostServerAndTheServerAskedNext) {
  auto lost = std::make_unique<FakeServer>(LargeSteps());
  const std::string address = lost->address();
  FeedClientOptions options = Quick({address});
  options.watch = std::make_shared<FeedWatch>();
  options.prefetch_bytes = 0;
  std::unique_ptr<FeedClient> client = MustCreate(LargeSteps(), options);
  ASSERT_NE(client, nullptr);
  ASSERT_THAT(client->Next(), IsOk());
  lost.reset();
  DrainedFeed drained;
  WorkerPool trainer(1);  // Takes the steps that are left, and then waits.
  trainer.Submit([&] { drained = Drain(*client); });
  const std::optional<FeedWaiting> seen = Await(*options.watch, IsLost);
  client->Cancel();
  ASSERT_TRUE(seen.has_value());
  EXPECT_EQ(seen->lost, address);
  EXPECT_EQ(seen->asking, address);  // There is no other server.
  EXPECT_TRUE(seen->started);
  EXPECT_EQ(seen->limit, options.retry_for);
  EXPECT_FALSE(options.watch->waiting().has_value());  // Nobody waits for a cancelled feed.
}

TEST(FeedWatchTest, ShowsTheServerThatTakesOverAndNoWaitAfterTheEnd) {
  auto lost = std::make_unique<FakeServer>(LargeSteps());
  const std::string address = lost->address();
  Mutex mu;
  CondVar changed;
  bool go = false;
  // The lost server has the even steps, which move to this server. This server holds them back
  // until the test has seen the client wait for them.
  FakeFeed feed = LargeSteps();
  feed.spoil = [&](int, int, FakeChunk& piece) {
    if (piece.header.step % 2 == 1) return;  // This server's own steps.
    MutexLock lock(mu);
    while (!go) changed.Wait(mu);
  };
  const FakeServer other(feed);
  FeedClientOptions options = Quick({address, other.address()});
  options.watch = std::make_shared<FeedWatch>();
  options.prefetch_bytes = 0;
  std::unique_ptr<FeedClient> client = MustCreate(LargeSteps(), options);
  ASSERT_NE(client, nullptr);
  ASSERT_THAT(client->Next(), IsOk());
  lost.reset();
  DrainedFeed drained;
  auto trainer = std::make_unique<WorkerPool>(1);
  trainer->Submit([&] { drained = Drain(*client); });
  const std::optional<FeedWaiting> seen = Await(*options.watch, [&](const FeedWaiting& w) {
    return IsLost(w) && w.asking == other.address();
  });
  EXPECT_EQ(seen.value_or(FeedWaiting()).lost, address);
  {
    MutexLock lock(mu);
    go = true;
    changed.SignalAll();
  }
  trainer.reset();  // Waits until the feed has ended.
  ExpectAllSteps(drained, 1, 20);
  EXPECT_FALSE(options.watch->waiting().has_value());
}

TEST(FeedWatchTest, ShowsASilentServerAsAskedAndNotLost) {
  const FakeServer silent({.spoil = [](int, int, FakeChunk& piece) { piece.hang = true; }});
  FeedClientOptions options = Quick({silent.address()});
  options.watch = std::make_shared<FeedWatch>();
  std::unique_ptr<FeedClient> client = MustCreate({}, options);
  ASSERT_NE(client, nullptr);
  const std::optional<FeedWaiting> seen =
      Await(*options.watch, [](const FeedWaiting& w) { return w.waited > absl::ZeroDuration(); });
  ASSERT_TRUE(seen.has_value());
  EXPECT_EQ(seen->lost, "");
  EXPECT_EQ(seen->asking, silent.address());
  EXPECT_FALSE(seen->started);
}

}  // namespace
}  // namespace systole
