#include "client/feed/feed_client.h"

#include <atomic>
#include <cstdlib>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/concurrency/worker_pool.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/client/feed/drained_feed.h"
#include "tests/client/feed/fake_server.h"
#include "tests/core/storage/temp_folder.h"
#include "tests/dead_address.h"
#include "tests/status_matchers.h"
#include "tests/wait_until.h"

namespace systole {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST(FeedClientTest, DeliversEveryStepOnceInOrder) {
  const FakeFeed feed = {.epochs = 1, .steps_per_epoch = 50};
  const FakeServer server(feed);
  const auto client = MustCreate(feed, Quick({server.address()}));
  ASSERT_NE(client, nullptr);
  ExpectAllSteps(Drain(*client), 0, 50);
  EXPECT_THAT(client->Next(), IsOkAndHolds(testing::Eq(std::nullopt)));
  EXPECT_EQ(client->stats().steps_received, 50);
  EXPECT_EQ(client->stats().payload_bytes, 50 * client->info().bytes_per_step());
  EXPECT_EQ(client->stats().streams_lost, 0);
}

TEST(FeedClientTest, SharesTheStepsAmongServers) {
  const FakeFeed feed = {.epochs = 1, .steps_per_epoch = 31};
  const FakeServer a(feed), b(feed);
  const auto client = MustCreate(feed, Quick({a.address(), b.address()}));
  ASSERT_NE(client, nullptr);
  ExpectAllSteps(Drain(*client), 0, 31);
  // If a server is slow, as on a busy machine, the client also asks the other server for steps.
  const FeedClientStats stats = client->stats();
  const bool one_each = stats.hedges_won + stats.hedges_lost + stats.relieved_steps == 0;
  for (const FakeServer* server : {&a, &b}) {
    ASSERT_FALSE(server->requests().empty());
    EXPECT_EQ(server->requests()[0].stride(), 2);
    if (one_each) {
      EXPECT_EQ(server->requests().size(), 1u);
    }
  }
  // The client chooses which of the servers sends the first step.
  EXPECT_EQ(a.requests()[0].first_step() + b.requests()[0].first_step(), 1);
  EXPECT_EQ(stats.servers_in_use, 2);
}

TEST(FeedClientTest, UsesNoMoreServersThanItMay) {
  const FakeFeed feed = {.epochs = 1, .steps_per_epoch = 31};
  const FakeServer a(feed), b(feed);
  FeedClientOptions options = Quick({a.address(), b.address()});
  options.max_servers = 1;
  const auto client = MustCreate(feed, options);
  ASSERT_NE(client, nullptr);
  ExpectAllSteps(Drain(*client), 0, 31);
  EXPECT_EQ(a.requests().size() + b.requests().size(), 1u);
  EXPECT_EQ(client->stats().servers_in_use, 1);
}

TEST(FeedClientTest, ReachesAServerByItsUnixSocket) {
  const TempFolder folder;
  const FakeFeed feed;
  const FakeServer server(feed, "unix:" + folder / "socket");
  const auto client = MustCreate(feed, Quick({server.address()}));
  ASSERT_NE(client, nullptr);
  ExpectAllSteps(Drain(*client), 0, 20);
}

TEST(FeedClientTest, StartsAtAnyStepAndStopsAfterAnyNumber) {
  const FakeFeed feed = {.epochs = 1, .steps_per_epoch = 12};
  const FakeServer a(feed), b(feed);
  for (int64_t first = 0; first <= 12; ++first) {
    for (const int64_t steps : {0, 1, 5}) {
      FeedClientOptions options = Quick({a.address(), b.address()});
      options.first_step = first;
      options.steps = steps;
      const auto client = MustCreate(feed, options);
      ASSERT_NE(client, nullptr);
      ExpectAllSteps(Drain(*client), first, steps == 0 ? 12 : std::min<int64_t>(12, first + steps));
    }
  }
}

TEST(FeedClientTest, StopsAfterTheEpochsAskedForOrAtTheFeedsEnd) {
  const FakeFeed feed = {.epochs = 3, .steps_per_epoch = 10};
  const FakeServer server(feed);
  const struct {
    int64_t first_step, epochs, end;
  } kCases[] = {{0, 1, 10},  {0, 3, 30},  {4, 2, 24},
                {20, 2, 30}, {30, 1, 30}, {0, std::numeric_limits<int64_t>::max(), 30}};
  for (const auto& test : kCases) {
    FeedClientOptions options = Quick({server.address()});
    options.first_step = test.first_step;
    options.epochs = test.epochs;
    const auto client = MustCreate(feed, options);
    ASSERT_NE(client, nullptr);
    ExpectAllSteps(Drain(*client), test.first_step, test.end);
  }
}

TEST(FeedClientTest, OpensBoundedStreamsOneAfterTheOther) {
  const FakeFeed feed = {.num_cores = 1,
                         .per_core_batch = 1,
                         .example_bytes = 1,
                         .epochs = 1,
                         .steps_per_epoch = 2500};
  const FakeServer server(feed);
  const auto client = MustCreate(feed, Quick({server.address()}));
  ASSERT_NE(client, nullptr);
  ExpectAllSteps(Drain(*client), 0, 2500);
  ASSERT_EQ(server.requests().size(), 3u);
  EXPECT_EQ(server.requests()[1].first_step(), 1024);
  EXPECT_EQ(server.requests()[2].count(), 2500 - 2048);
}

TEST(FeedClientTest, AnEndlessFeedCanStartAtAVeryLargeStep) {
  const FakeFeed feed = {.epochs = 0};
  const FakeServer server(feed);
  FeedClientOptions options = Quick({server.address()});
  options.first_step = 1'000'000'000'000;
  options.steps = 3;
  const auto client = MustCreate(feed, options);
  ASSERT_NE(client, nullptr);
  ExpectAllSteps(Drain(*client), 1'000'000'000'000, 1'000'000'000'003);
}

TEST(FeedClientTest, TakesOnlyTheCoresAskedFor) {
  const FakeFeed feed = {.num_cores = 4, .epochs = 1, .steps_per_epoch = 5};
  const FakeServer server(feed);
  FeedClientOptions options = Quick({server.address()});
  options.core_begin = 1;
  options.core_end = 3;
  const auto client = MustCreate(feed, options);
  ASSERT_NE(client, nullptr);
  EXPECT_EQ(client->core_begin(), 1);
  EXPECT_EQ(client->core_end(), 3);
  ExpectAllSteps(Drain(*client), 0, 5);
  EXPECT_EQ(client->stats().payload_bytes, 5 * 2 * client->layout().payload_bytes());
}

TEST(FeedClientTest, TensorsAreAlignedAndNamed) {
  const FakeFeed feed;
  const FakeServer server(feed);
  const auto client = MustCreate(feed, Quick({server.address()}));
  ASSERT_NE(client, nullptr);
  absl::StatusOr<std::optional<Step>> step = client->Next();
  ASSERT_THAT(step, IsOk());
  ASSERT_TRUE(step->has_value());
  for (int core = 0; core < 2; ++core) {
    for (int i = 0; i < 3; ++i) {
      EXPECT_EQ(reinterpret_cast<uintptr_t>((*step)->Tensor(core, i).data) % 64, 0u);
    }
    EXPECT_THAT((*step)->Tensor(core, "label").shape, ElementsAre(3, 4));
    EXPECT_EQ((*step)->Tensor(core, "label").dtype, DType::kInt64);
  }
}

TEST(FeedClientTest, AStepOutlivesItsClientAndServer) {
  const FakeFeed feed;
  std::optional<Step> kept;
  {
    const FakeServer server(feed);
    const auto client = MustCreate(feed, Quick({server.address()}));
    ASSERT_NE(client, nullptr);
    absl::StatusOr<std::optional<Step>> step = client->Next();
    ASSERT_THAT(step, IsOk());
    kept = *std::move(step);
  }
  ASSERT_TRUE(kept.has_value());
  EXPECT_EQ(WrongBytesOf(*kept), "");
}

TEST(FeedClientTest, ATrainerMayHoldMoreStepsThanTheWindow) {
  const FakeFeed feed = {.epochs = 1, .steps_per_epoch = 40};
  const FakeServer server(feed);
  FeedClientOptions options = Quick({server.address()});
  options.prefetch_bytes = 0;
  const auto client = MustCreate(feed, options);
  ASSERT_NE(client, nullptr);
  EXPECT_EQ(client->window_steps(), 2);
  std::vector<Step> held;
  for (int i = 0; i < 40; ++i) {
    absl::StatusOr<std::optional<Step>> step = client->Next();
    ASSERT_THAT(step, IsOk());
    ASSERT_TRUE(step->has_value());
    held.push_back(**std::move(step));
  }
  for (const Step& step : held) EXPECT_EQ(WrongBytesOf(step), "");
}

TEST(FeedClientTest, StepsReuseFewBuffersOfTheCallersAllocatorAndFreeAll) {
  const FakeFeed feed = {.epochs = 1, .steps_per_epoch = 30};
  const FakeServer server(feed);
  std::atomic<int> live = 0;
  std::atomic<int> allocated = 0;
  FeedClientOptions options = Quick({server.address()});
  options.prefetch_bytes = 0;
  options.memory = {
      .allocate =
          [&](int64_t bytes) {
            ++live;
            ++allocated;
            return static_cast<uint8_t*>(std::aligned_alloc(64, static_cast<size_t>(bytes)));
          },
      .free =
          [&](uint8_t* memory, int64_t) {
            --live;
            std::free(memory);
          }};
  {
    const auto client = MustCreate(feed, options);
    ASSERT_NE(client, nullptr);
    ExpectAllSteps(Drain(*client), 0, 30);
    EXPECT_GT(live, 0);
  }
  EXPECT_EQ(live, 0);
  // Two buffers are in the window. The trainer has two more while it exchanges a step for the next
  // one. The client reuses these four buffers, whether the trainer or the server is faster.
  EXPECT_LE(allocated, 4);
}

TEST(FeedClientTest, MemoryThatIsNotAlignedIsRefused) {
  const FakeFeed feed;
  const FakeServer server(feed);
  alignas(64) static uint8_t block[1 << 20];
  FeedClientOptions options = Quick({server.address()});
  options.memory = {.allocate = [](int64_t) { return block + 1; },
                    .free = [](uint8_t*, int64_t) {}};
  const auto client = MustCreate(feed, options);
  ASSERT_NE(client, nullptr);
  EXPECT_THAT(client->Next(), StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("64-byte")));
}

TEST(FeedClientTest, AFailedAllocationIsResourceExhausted) {
  const FakeFeed feed;
  const FakeServer server(feed);
  FeedClientOptions options = Quick({server.address()});
  options.memory = {.allocate = [](int64_t) -> uint8_t* { return nullptr; },
                    .free = [](uint8_t*, int64_t) {}};
  const auto client = MustCreate(feed, options);
  ASSERT_NE(client, nullptr);
  EXPECT_THAT(client->Next(),
              StatusIs(absl::StatusCode::kResourceExhausted, HasSubstr("no memory for a step")));
}

TEST(FeedClientTest, BackpressureStopsTheServerWhileTheTrainerPauses) {
  // Steps of 4 MiB and a window of 3 steps. Besides, sockets and gRPC's windows can hold some
  // 10 MiB. The test allows 8 steps for these.
  const FakeFeed feed = {.num_cores = 1,
                         .per_core_batch = 1,
                         .example_bytes = 4 << 20,
                         .epochs = 1,
                         .steps_per_epoch = 12,
                         .chunk_bytes = 1 << 20};
  const FakeServer server(feed);
  FeedClientOptions options = Quick({server.address()});
  options.prefetch_bytes = 3 * (int64_t{4} << 20) + 1024;
  const auto client = MustCreate(feed, options);
  ASSERT_NE(client, nullptr);
  ASSERT_EQ(client->window_steps(), 3);
  // The client reads no further than its window. The test waits until another client has received a
  // whole feed from the same server. Then it checks that the first client has got nothing more.
  ASSERT_TRUE(WaitUntil([&] { return client->stats().steps_received >= 3; }));
  const auto other = MustCreate(feed, Quick({server.address()}));
  ASSERT_NE(other, nullptr);
  ExpectAllSteps(Drain(*other), 0, 12);
  EXPECT_EQ(client->stats().steps_received, 3);
  EXPECT_LT(server.steps_written(), 12 + 3 + 8);
  // For each step that the trainer takes, the client receives one more.
  ASSERT_THAT(client->Next(), IsOk());
  ASSERT_TRUE(WaitUntil([&] { return client->stats().steps_received >= 4; }));
  ExpectAllSteps(Drain(*client), 1, 12);
}

TEST(FeedClientTest, CancelWakesATrainerThatWaits) {
  const FakeFeed feed = {.spoil = [](int, int, FakeChunk& piece) { piece.hang = true; }};
  const FakeServer server(feed);
  const auto client = MustCreate(feed, Quick({server.address()}));
  ASSERT_NE(client, nullptr);
  WorkerPool other(1);
  other.Submit([&] { client->Cancel(); });
  EXPECT_THAT(client->Next(), StatusIs(absl::StatusCode::kCancelled, HasSubstr("cancelled")));
  EXPECT_THAT(client->Next(), StatusIs(absl::StatusCode::kCancelled, HasSubstr("cancelled")));
}

TEST(FeedClientTest, IsDestroyedInAnyState) {
  const FakeFeed feed = {.epochs = 0};
  const FakeServer a(feed), b(feed);
  for (int taken = 0; taken < 40; ++taken) {
    FeedClientOptions options = Quick({a.address(), b.address(), DeadAddress()});
    options.prefetch_bytes = 0;
    const auto client = MustCreate(feed, options);
    ASSERT_NE(client, nullptr);
    for (int i = 0; i < taken; ++i) ASSERT_THAT(client->Next(), IsOk());
    if (taken % 2 == 0) client->Cancel();
  }
}

TEST(FeedClientTest, IsDestroyedWhileServersAreSilentOrPaused) {
  const FakeFeed feed = {.epochs = 0, .spoil = [](int, int chunk, FakeChunk& piece) {
                           if (chunk == 5) piece.hang = true;
                         }};
  for (int i = 0; i < 10; ++i) {
    const FakeServer server(feed);
    const auto client = MustCreate(feed, Quick({server.address()}));
    ASSERT_NE(client, nullptr);
    server.WaitForChunks(5);
  }
}

}  // namespace
}  // namespace systole
