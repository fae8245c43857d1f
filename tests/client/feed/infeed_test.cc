// The queues of the cores, and the pump that fills the queues.
#include <atomic>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "client/feed/infeed_pump.h"
#include "client/infeed/infeed_queue.h"
#include "core/concurrency/worker_pool.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/client/feed/drained_feed.h"
#include "tests/client/feed/fake_server.h"
#include "tests/status_matchers.h"
#include "tests/wait_until.h"

namespace systole {
namespace {

using testing::HasSubstr;

CoreStep Numbered(int64_t step) { return {.step = step}; }

TEST(InfeedQueueTest, ClosingDrainsAndThenTellsTheEnd) {
  InfeedQueue queue(2);
  ASSERT_THAT(queue.Push(Numbered(7)), IsOk());
  queue.Close();
  EXPECT_THAT(queue.Push(Numbered(8)),
              StatusIs(absl::StatusCode::kFailedPrecondition, "push into a closed queue"));
  absl::StatusOr<std::optional<CoreStep>> step = queue.Pop();
  ASSERT_THAT(step, IsOk());
  EXPECT_EQ((*step)->step, 7);
  for (int i = 0; i < 2; ++i) {
    step = queue.Pop();
    ASSERT_THAT(step, IsOk());
    EXPECT_FALSE(step->has_value());
  }
}

TEST(InfeedQueueTest, ClosingWithAnErrorDrainsAndThenTellsIt) {
  InfeedQueue queue(2);
  ASSERT_THAT(queue.Push(Numbered(7)), IsOk());
  queue.Close(absl::DataLossError("shard-3"));
  queue.Close();  // Too late: the queue is closed.
  EXPECT_THAT(queue.Pop(), IsOk());
  EXPECT_THAT(queue.Pop(), StatusIs(absl::StatusCode::kDataLoss, "shard-3"));
  EXPECT_THAT(queue.Pop(), StatusIs(absl::StatusCode::kDataLoss, "shard-3"));
}

TEST(InfeedQueueTest, CancellingDropsWhatIsQueued) {
  InfeedQueue queue(2);
  const auto memory = std::make_shared<uint8_t>(1);
  ASSERT_THAT(queue.Push({.step = 7, .slice = memory}), IsOk());
  EXPECT_EQ(memory.use_count(), 2);
  queue.Cancel(absl::CancelledError("enough"));
  EXPECT_EQ(memory.use_count(), 1);
  EXPECT_THAT(queue.Pop(), StatusIs(absl::StatusCode::kCancelled, "enough"));
  EXPECT_THAT(queue.Push(Numbered(8)), StatusIs(absl::StatusCode::kCancelled, "enough"));
}

TEST(InfeedQueueTest, ASliceSaysWhenItArrived) {
  absl::Duration now = absl::Seconds(5);
  InfeedQueue queue(4, [&now] { return now; });
  ASSERT_THAT(queue.Push(Numbered(0)), IsOk());
  now = absl::Seconds(7);
  ASSERT_THAT(queue.Push(Numbered(1)), IsOk());
  now = absl::Seconds(100);  // The time when a slice is taken does not matter.
  for (const int seconds : {5, 7}) {
    const absl::StatusOr<std::optional<CoreStep>> step = queue.Pop();
    ASSERT_THAT(step, IsOk());
    EXPECT_EQ((*step)->arrived_at, absl::Seconds(seconds));
  }
}

TEST(InfeedQueueTest, ArrivedAtIsTheStartOfAPushThatWaitsForRoom) {
  std::atomic<int> now_s = 5;
  InfeedQueue queue(1, [&now_s] { return absl::Seconds(now_s++); });
  ASSERT_THAT(queue.Push(Numbered(0)), IsOk());
  WorkerPool pool(1);
  pool.Submit([&] { EXPECT_THAT(queue.Push(Numbered(1)), IsOk()); });
  ASSERT_TRUE(WaitUntil([&now_s] { return now_s >= 7; }));
  now_s = 100;
  ASSERT_THAT(queue.Pop(), IsOk());
  const absl::StatusOr<std::optional<CoreStep>> second = queue.Pop();
  ASSERT_THAT(second, IsOk());
  EXPECT_EQ((*second)->arrived_at, absl::Seconds(6));
}

TEST(InfeedQueueTest, FindsATensorByName) {
  absl::StatusOr<SliceLayout> layout = SliceLayout::Create(
      {{.spec = {.name = "valid", .shape = {2}}}, {.spec = {.name = "x", .shape = {2, 3}}}});
  ASSERT_THAT(layout, IsOk());
  const CoreStep step = {.layout = std::make_shared<SliceLayout>(*layout),
                         .slice = std::shared_ptr<const uint8_t>(
                             new uint8_t[128](), [](const uint8_t* memory) { delete[] memory; })};
  ASSERT_TRUE(step.Find("x").has_value());
  EXPECT_EQ(step.Find("x")->data, step.slice.get() + 64);
  EXPECT_FALSE(step.Find("y").has_value());
}

// Queues of the given capacity, one for each core.
struct Queues {
  Queues(int cores, int64_t capacity) {
    for (int i = 0; i < cores; ++i) {
      owned.push_back(std::make_unique<InfeedQueue>(capacity));
      all.push_back(owned.back().get());
    }
  }
  std::vector<std::unique_ptr<InfeedQueue>> owned;
  std::vector<InfeedQueue*> all;
};

TEST(InfeedPumpTest, EachCoreGetsItsSliceOfEveryStep) {
  const FakeFeed feed = {.num_cores = 4, .epochs = 1, .steps_per_epoch = 25};
  const FakeServer server(feed);
  FeedClientOptions options = Quick({server.address()});
  options.core_begin = 1;
  options.core_end = 4;
  const auto client = MustCreate(feed, options);
  ASSERT_NE(client, nullptr);
  Queues queues(3, 2);
  const InfeedPump pump(*client, queues.all);
  for (int64_t step = 0; step < 25; ++step) {
    for (int i = 0; i < 3; ++i) {
      absl::StatusOr<std::optional<CoreStep>> popped = queues.all[i]->Pop();
      ASSERT_THAT(popped, IsOk());
      ASSERT_TRUE(popped->has_value());
      EXPECT_EQ((*popped)->step, step);
      EXPECT_EQ((*popped)->core, 1 + i);
      const TensorView x = (*popped)->Tensor((*popped)->layout->IndexOf("x"));
      ASSERT_EQ(x.num_bytes(), 400);
      for (int64_t at = 0; at < 400; ++at) {
        ASSERT_EQ(x.data[at], FakeByte(step, 1 + i, (*popped)->layout->IndexOf("x"), at));
      }
    }
  }
  for (InfeedQueue* queue : queues.all) {
    absl::StatusOr<std::optional<CoreStep>> end = queue->Pop();
    ASSERT_THAT(end, IsOk());
    EXPECT_FALSE(end->has_value());
  }
}

TEST(InfeedPumpTest, AnErrorComesAfterTheStepsBefore) {
  const FakeFeed feed = {.spoil = [](int, int, FakeChunk& piece) {
    if (piece.header.step == 3) piece.end = absl::DataLossError("shard-3");
  }};
  const FakeServer server(feed);
  const auto client = MustCreate(feed, Quick({server.address()}));
  ASSERT_NE(client, nullptr);
  Queues queues(2, 8);
  const InfeedPump pump(*client, queues.all);
  for (InfeedQueue* queue : queues.all) {
    for (int64_t step = 0; step < 3; ++step) {
      absl::StatusOr<std::optional<CoreStep>> popped = queue->Pop();
      ASSERT_THAT(popped, IsOk());
      EXPECT_EQ((*popped)->step, step);
    }
    EXPECT_THAT(queue->Pop(), StatusIs(absl::StatusCode::kDataLoss, HasSubstr("shard-3")));
  }
}

TEST(InfeedPumpTest, ACancelledQueueStopsTheOthers) {
  const FakeFeed feed = {.epochs = 0};
  const FakeServer server(feed);
  const auto client = MustCreate(feed, Quick({server.address()}));
  ASSERT_NE(client, nullptr);
  Queues queues(2, 2);
  const InfeedPump pump(*client, queues.all);
  ASSERT_THAT(queues.all[0]->Pop(), IsOk());
  queues.all[1]->Cancel(absl::InternalError("core 1 is broken"));
  absl::Status status;
  while (status.ok()) status = queues.all[0]->Pop().status();
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kInternal, "core 1 is broken"));
}

TEST(InfeedPumpTest, StopsInAnyState) {
  const FakeFeed feed = {.epochs = 0};
  const FakeServer server(feed);
  for (int popped = 0; popped < 10; ++popped) {
    const auto client = MustCreate(feed, Quick({server.address()}));
    ASSERT_NE(client, nullptr);
    Queues queues(2, 2);
    std::optional<CoreStep> kept;  // Shares memory of the client, and outlives the pump.
    {
      const InfeedPump pump(*client, queues.all);
      for (int i = 0; i < popped; ++i) {
        for (InfeedQueue* queue : queues.all) {
          absl::StatusOr<std::optional<CoreStep>> step = queue->Pop();
          ASSERT_THAT(step, IsOk());
          kept = *step;
        }
      }
    }
    EXPECT_THAT(queues.all[0]->Pop(), StatusIs(absl::StatusCode::kCancelled, HasSubstr("stopped")));
  }
}

}  // namespace
}  // namespace systole
