#include "core/concurrency/bounded_queue.h"

#include <memory>
#include <optional>
#include <thread>

#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/status_matchers.h"

namespace systole {
namespace {

using ::testing::Eq;
using ::testing::HasSubstr;
using ::testing::Optional;

TEST(BoundedQueueTest, ItemsComeOutInOrder) {
  BoundedQueue<int> queue(/*capacity=*/2);
  ASSERT_THAT(queue.Push(1), IsOk());
  ASSERT_THAT(queue.Push(2), IsOk());
  EXPECT_EQ(queue.size(), 2);
  EXPECT_THAT(queue.Pop(), IsOkAndHolds(Optional(Eq(1))));
  EXPECT_THAT(queue.Pop(), IsOkAndHolds(Optional(Eq(2))));
}

TEST(BoundedQueueTest, CloseDrainsThenEnds) {
  BoundedQueue<int> queue(2);
  ASSERT_THAT(queue.Push(7), IsOk());
  queue.Close();
  EXPECT_THAT(queue.Push(8), StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("closed")));
  EXPECT_THAT(queue.Pop(), IsOkAndHolds(Optional(Eq(7))));
  EXPECT_THAT(queue.Pop(), IsOkAndHolds(Eq(std::nullopt)));
}

TEST(BoundedQueueTest, CancelDropsWhatIsQueuedAndTheFirstStatusStays) {
  BoundedQueue<std::shared_ptr<int>> queue(2);
  const auto item = std::make_shared<int>(7);
  ASSERT_THAT(queue.Push(item), IsOk());
  queue.Cancel(absl::UnavailableError("gone"));
  queue.Cancel(absl::InternalError("later"));
  EXPECT_EQ(item.use_count(), 1);
  EXPECT_THAT(queue.Pop(), StatusIs(absl::StatusCode::kUnavailable, HasSubstr("gone")));
  EXPECT_THAT(queue.Push(item), StatusIs(absl::StatusCode::kUnavailable, HasSubstr("gone")));
}

TEST(BoundedQueueTest, AFullQueueHoldsTheProducerUntilAnItemIsTaken) {
  BoundedQueue<int> queue(1);
  std::thread producer([&queue] {
    for (int i = 0; i < 1000; ++i) ASSERT_THAT(queue.Push(i), IsOk());
    queue.Close();
  });
  for (int i = 0; i < 1000; ++i) {
    EXPECT_LE(queue.size(), 1);
    EXPECT_THAT(queue.Pop(), IsOkAndHolds(Optional(Eq(i))));
  }
  EXPECT_THAT(queue.Pop(), IsOkAndHolds(Eq(std::nullopt)));
  producer.join();
}

TEST(BoundedQueueTest, CancelWakesAWaitingProducerAndAWaitingConsumer) {
  BoundedQueue<int> full(1);
  BoundedQueue<int> empty(1);
  ASSERT_THAT(full.Push(0), IsOk());
  std::thread producer([&] {
    EXPECT_THAT(full.Push(1), StatusIs(absl::StatusCode::kCancelled, HasSubstr("stop")));
  });
  std::thread consumer(
      [&] { EXPECT_THAT(empty.Pop(), StatusIs(absl::StatusCode::kCancelled, HasSubstr("stop"))); });
  full.Cancel(absl::CancelledError("stop"));
  empty.Cancel(absl::CancelledError("stop"));
  producer.join();
  consumer.join();
}

}  // namespace
}  // namespace systole
