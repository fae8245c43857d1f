// The steps at which a spec's `weights` change, at every step of small feeds: the first one, the
// last one of an epoch, whether the tail drops or pads it, and those beyond.
#include <cstdint>
#include <string>
#include <vector>

#include "absl/numeric/int128.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/types/span.h"
#include "core/order/feed_position.h"
#include "core/order/order.h"
#include "core/spec/order_spec.h"
#include "gmock/gmock.h"
#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"
#include "tests/status_matchers.h"

namespace systole {
namespace {

using Sizes = std::vector<int64_t>;

struct SmallFeed {
  Sizes sizes;  // Records of each member.
  int64_t global_batch = 0;
  std::string tail;
  int num_cores = 1;
};

// Members of equal weight, in the order of their records.
Order OrderOf(const SmallFeed& feed, const std::string& weights) {
  std::string text = absl::StrCat("epochs: 0 global_batch: ", feed.global_batch,
                                  " tail: ", feed.tail, " num_cores: ", feed.num_cores, weights);
  std::vector<DatasetRecords> datasets;
  for (const int64_t size : feed.sizes) {
    absl::StrAppend(&text, " mixture { dataset: 'd' weight: 1 }");
    datasets.push_back({.num_records = size, .per_shard = {}});
  }
  v1::FeedSpec spec;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &spec)) << text;
  const absl::StatusOr<OrderSpec> order_spec = OrderSpecOf(spec, datasets);
  EXPECT_THAT(order_spec, IsOk());
  const absl::StatusOr<Order> order = Order::Create(*order_spec);
  EXPECT_THAT(order, IsOk());
  return *order;
}

// From `step` on, only `member` has turns.
std::string Only(size_t member, size_t members, int64_t step) {
  std::vector<int> weights(members, 0);
  weights[member] = 5;
  return absl::StrCat(" weights { from_step: ", step, " weights: [", absl::StrJoin(weights, ", "),
                      "] }");
}

std::vector<int64_t> RecordsOf(const Order& order, int64_t step) {
  std::vector<int64_t> records;
  std::vector<Place> places(static_cast<size_t>(order.split().per_core_batch()));
  for (int core = 0; core < order.spec().num_cores; ++core) {
    order.PlacesOnCore(step, core, 0, absl::MakeSpan(places));
    for (const Place& place : places) {
      if (place.record.has_value()) records.push_back(*place.record);
    }
  }
  return records;
}

std::vector<SmallFeed> SmallFeeds() {
  std::vector<SmallFeed> feeds;
  for (const Sizes& sizes : {Sizes{1}, {1, 1}, {1, 9}, {8, 1}, {5, 1, 4}, {3, 3, 3, 3}}) {
    int64_t records = 0;
    for (const int64_t size : sizes) records += size;
    for (int64_t batch = 1; batch <= records + 2; ++batch) {
      if (batch <= records)
        feeds.push_back({sizes, batch, "DROP", 1 + static_cast<int>(batch % 3)});
      feeds.push_back({sizes, batch, "PAD", 1 + static_cast<int>(batch % 3)});
    }
  }
  return feeds;
}

TEST(WeightStepsTest, AChangeBeginsWithItsStepAndEachMemberGoesOn) {
  for (const SmallFeed& feed : SmallFeeds()) {
    const size_t members = feed.sizes.size();
    const Order never = OrderOf(feed, "");
    const int64_t per_epoch = never.steps_per_epoch();
    for (int64_t step = 0; step <= 2 * per_epoch + 1; ++step) {
      SCOPED_TRACE(absl::StrCat(feed.tail, ", members of ", absl::StrJoin(feed.sizes, ", "),
                                ", batch ", feed.global_batch, ", step ", step));
      // The last member alone for one step, then the first one.
      const Order order =
          OrderOf(feed, Only(members - 1, members, step) + Only(0, members, step + 1));
      ASSERT_EQ(order.steps_per_epoch(), per_epoch);
      std::vector<int64_t> next(members, 0);  // The next record of each member.
      for (int64_t at = 0; at <= step + 3; ++at) {
        const std::vector<int64_t> records = RecordsOf(order, at);
        ASSERT_EQ(static_cast<int64_t>(records.size()), order.RecordsIn(at));
        if (at < step) {
          ASSERT_EQ(records, RecordsOf(never, at)) << "at " << at;
        }
        for (const int64_t record : records) {
          int64_t in_member = record;
          size_t member = 0;
          while (in_member >= feed.sizes[member]) in_member -= feed.sizes[member++];
          if (at == step) {
            ASSERT_EQ(member, members - 1);
          } else if (at > step) {
            ASSERT_EQ(member, 0u) << "at " << at;
          }
          ASSERT_EQ(in_member, next[member]) << "at " << at;
          next[member] = (in_member + 1) % feed.sizes[member];
        }
      }
    }
  }
}

// A token of the feed with the change fits the feed without it, up to and including the step of the
// change.
TEST(WeightStepsTest, ThePastBeforeAStepKnowsNothingOfAChangeAtIt) {
  for (const SmallFeed& feed : SmallFeeds()) {
    const size_t members = feed.sizes.size();
    const Order never = OrderOf(feed, "");
    const int64_t per_epoch = never.steps_per_epoch();
    for (int64_t step = 1; step <= 2 * per_epoch + 1; ++step) {
      const Order order = OrderOf(feed, Only(members - 1, members, step));
      for (int64_t at = 0; at <= step + 2; ++at) {
        const FeedPosition position = PositionBefore(order, at);
        ASSERT_EQ(position, PositionBefore(never, at));
        const absl::uint128 turns = TurnsBefore(order, position);
        ASSERT_EQ(order.WeightChangesBefore(turns).size(), at > step ? 1u : 0u);
        ASSERT_EQ(order.FingerprintBefore(7, turns) == never.Fingerprint(7), at <= step);
      }
    }
  }
}

}  // namespace
}  // namespace systole
