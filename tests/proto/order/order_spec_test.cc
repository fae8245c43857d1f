#include "proto/order/order_spec.h"

#include <cstdint>
#include <string>
#include <vector>

#include "core/order/selection.h"
#include "gmock/gmock.h"
#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"
#include "tests/status_matchers.h"

namespace systole {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(OrderSpecOfTest, TakesEveryFieldThatDecidesTheOrder) {
  v1::FeedSpec spec;
  spec.set_seed(7);
  spec.set_epochs(3);
  spec.set_global_batch(32);
  spec.set_tail(v1::PAD);
  spec.mutable_shuffle()->set_mode(v1::Shuffle::WINDOW);
  spec.mutable_shuffle()->set_block_records(4);
  spec.mutable_shuffle()->set_window_records(50);
  const OrderSpec order = *OrderSpecOf(spec, 1000, {});
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
  EXPECT_EQ((*OrderSpecOf(v1::FeedSpec(), 1, {})).mode, ShuffleMode::kNone);
  EXPECT_EQ((*OrderSpecOf(v1::FeedSpec(), 1, {})).tail, Tail::kDrop);
  v1::FeedSpec global;
  global.mutable_shuffle()->set_mode(v1::Shuffle::GLOBAL);
  EXPECT_EQ((*OrderSpecOf(global, 1, {})).mode, ShuffleMode::kGlobal);
}

TEST(OrderSpecOfTest, SelectionsAreThoseOfTheMessage) {
  const auto spec = [](const std::string& select) {
    v1::FeedSpec spec;
    EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(select, &spec));
    return spec;
  };
  const std::vector<int64_t> shards = {3, 4, 2};
  const auto records = [&](const std::string& select) {
    const absl::StatusOr<OrderSpec> order = OrderSpecOf(spec(select), 9, shards);
    EXPECT_THAT(order, IsOk());
    std::vector<int64_t> records;
    for (int64_t i = 0; i < order->num_records; ++i) {
      records.push_back(order->selection == nullptr ? i : order->selection->RecordAt(i));
    }
    return records;
  };
  EXPECT_THAT(records("select { skip: 6 }"), ElementsAre(6, 7, 8));
  EXPECT_THAT(records("select { take: 2 }"), ElementsAre(0, 1));
  EXPECT_THAT(records("select { shard { count: 4 index: 1 } }"), ElementsAre(1, 5));
  EXPECT_THAT(records("select { interleave { cycle_length: 3 } } select { take: 4 }"),
              ElementsAre(0, 3, 7, 1));
  EXPECT_THAT(records("select { auto_shard { policy: FILE count: 2 index: 1 } }"),
              ElementsAre(3, 4, 5, 6));
  EXPECT_THAT(records("select { auto_shard { policy: AUTO count: 2 index: 1 } }"),
              ElementsAre(3, 4, 5, 6));
  EXPECT_THAT(records("select { auto_shard { policy: DATA count: 4 index: 1 } }"),
              ElementsAre(1, 5));
  EXPECT_EQ(records("select { auto_shard { policy: OFF count: 2 } }").size(), 9u);
  EXPECT_TRUE(SelectsByShards(spec("select { interleave { cycle_length: 3 } }")));
  EXPECT_FALSE(SelectsByShards(spec("select { skip: 3 }")));
  EXPECT_THAT(OrderSpecOf(spec("select {}"), 9, shards),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("select[0] names no step")));
}

}  // namespace
}  // namespace systole
