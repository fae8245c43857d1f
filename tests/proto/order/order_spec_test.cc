#include "proto/order/order_spec.h"

#include "gtest/gtest.h"

namespace systole {
namespace {

TEST(OrderSpecOfTest, TakesEveryFieldThatDecidesTheOrder) {
  v1::FeedSpec spec;
  spec.set_seed(7);
  spec.set_epochs(3);
  spec.set_global_batch(32);
  spec.set_tail(v1::PAD);
  spec.mutable_shuffle()->set_mode(v1::Shuffle::WINDOW);
  spec.mutable_shuffle()->set_block_records(4);
  spec.mutable_shuffle()->set_window_records(50);
  const OrderSpec order = OrderSpecOf(spec, 1000);
  EXPECT_EQ(order.seed, 7u);
  EXPECT_EQ(order.epochs, 3);
  EXPECT_EQ(order.global_batch, 32);
  EXPECT_EQ(order.tail, Tail::kPad);
  EXPECT_EQ(order.mode, ShuffleMode::kWindow);
  EXPECT_EQ(order.block_records, 4);
  EXPECT_EQ(order.window_records, 50);
  EXPECT_EQ(order.num_records, 1000);
}

TEST(OrderSpecOfTest, AnUnsetShuffleKeepsTheRecordsInOrder) {
  EXPECT_EQ(OrderSpecOf(v1::FeedSpec(), 1).mode, ShuffleMode::kNone);
  EXPECT_EQ(OrderSpecOf(v1::FeedSpec(), 1).tail, Tail::kDrop);
  v1::FeedSpec global;
  global.mutable_shuffle()->set_mode(v1::Shuffle::GLOBAL);
  EXPECT_EQ(OrderSpecOf(global, 1).mode, ShuffleMode::kGlobal);
}

}  // namespace
}  // namespace systole
