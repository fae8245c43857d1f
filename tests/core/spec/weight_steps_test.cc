// Tests at which step or example a change of a spec's `weights` takes effect. The changes are tried
// in small feeds with a dropped and a padded tail, at every step from the first step of the feed to
// the second step of the third epoch.
#include <cstdint>
#include <string>
#include <vector>

#include "absl/numeric/int128.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "core/order/feed_position.h"
#include "core/order/order.h"
#include "core/random/counter_rng.h"
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

// The order of an endless mixture without a shuffle. The members have equal weights, except where
// `weights` changes them.
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

// A change of weights: from `step` on, only `member` has turns.
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

TEST(WeightStepsTest, AWeightChangeTakesEffectAtItsStepAndMembersContinueInOrder) {
  for (const SmallFeed& feed : SmallFeeds()) {
    const size_t members = feed.sizes.size();
    const Order never = OrderOf(feed, "");
    const int64_t per_epoch = never.steps_per_epoch();
    for (int64_t step = 0; step <= 2 * per_epoch + 1; ++step) {
      SCOPED_TRACE(absl::StrCat(feed.tail, ", members of ", absl::StrJoin(feed.sizes, ", "),
                                ", batch ", feed.global_batch, ", step ", step));
      // At `step` only the last member has turns, and after `step` only the first member.
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

// Compares the fingerprints of a feed with a change at `step`, and of the feed without the change.
// The fingerprints before each step up to `step` are equal. Those before each later step differ.
TEST(WeightStepsTest, AWeightChangeAffectsFingerprintsOnlyAfterItsStep) {
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

std::string Change(absl::string_view field, int64_t number, absl::Span<const int64_t> weights) {
  return absl::StrCat(" weights { ", field, ": ", number, " weights: [",
                      absl::StrJoin(weights, ", "), "] }");
}

std::vector<int64_t> DrawWeights(size_t members, CounterRng& rng) {
  std::vector<int64_t> weights(members);
  for (int64_t& weight : weights) weight = rng.UniformInt(0, 5);
  weights[static_cast<size_t>(rng.UniformInt(0, static_cast<int64_t>(members)))] += 1;
  return weights;
}

v1::FeedSpec WeightsOf(const std::string& text) {
  v1::FeedSpec spec;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &spec)) << text;
  return spec;
}

// Draws the steps at which weights change. The spec is then written in three ways: with the step of
// each change; with the first example of each change; and with one of the two, drawn for each
// change. All three must give the same order.
TEST(WeightStepsTest, WeightChangesByExampleAndByStepGiveTheSameOrder) {
  CounterRng rng(/*seed=*/21, 0, 0, 0);
  for (const SmallFeed& feed : SmallFeeds()) {
    const size_t members = feed.sizes.size();
    const Order never = OrderOf(feed, "");
    std::string by_step;
    std::string by_example;
    std::string by_either;
    int64_t step = rng.UniformInt(0, 2);
    for (int64_t i = rng.UniformInt(1, 6); i > 0; --i) {
      const std::vector<int64_t> weights = DrawWeights(members, rng);
      const auto example =
          static_cast<int64_t>(absl::Uint128Low64(TurnsBefore(never, PositionBefore(never, step))));
      const std::string in_steps = Change("from_step", step, weights);
      const std::string in_examples = Change("from_example", example, weights);
      by_step += in_steps;
      by_example += in_examples;
      by_either += rng.UniformInt(0, 2) == 0 ? in_steps : in_examples;
      step += rng.UniformInt(1, 2 * never.steps_per_epoch() + 2);
    }
    SCOPED_TRACE(absl::StrCat(absl::StrJoin(feed.sizes, ","), " ", feed.tail, ", batch ",
                              feed.global_batch, by_either));
    const Order order = OrderOf(feed, by_step);
    for (const std::string& other_way : {by_example, by_either}) {
      const Order other = OrderOf(feed, other_way);
      ASSERT_EQ(other.Fingerprint(7), order.Fingerprint(7));
      for (int64_t at = 0; at < step + 3; ++at) {
        ASSERT_EQ(RecordsOf(other, at), RecordsOf(order, at)) << "step " << at;
      }
      v1::FeedSpec spec = WeightsOf(other_way);
      WriteChangesBySteps(order, spec);
      ASSERT_EQ(spec.SerializeAsString(), WeightsOf(by_step).SerializeAsString());
    }
  }
}

// With every batch and tail, a change takes effect at the example that `from_example` says. If this
// example is not the first one of a step, WriteChangesBySteps() keeps `from_example`.
TEST(WeightStepsTest, FromExampleTakesEffectAtTheSameExampleForAnyBatchAndTail) {
  CounterRng rng(/*seed=*/22, 0, 0, 0);
  for (int round = 0; round < 40; ++round) {
    SCOPED_TRACE(round);
    const Sizes sizes = {rng.UniformInt(1, 9), rng.UniformInt(1, 9), rng.UniformInt(1, 9)};
    const int64_t records = sizes[0] + sizes[1] + sizes[2];
    std::string weights;
    std::vector<int64_t> begins;
    int64_t example = rng.UniformInt(0, 5);
    for (int64_t i = rng.UniformInt(1, 6); i > 0; --i) {
      weights += Change("from_example", example, DrawWeights(3, rng));
      begins.push_back(example);
      example += rng.UniformInt(1, 20);
    }
    const Order single = OrderOf({sizes, 1, "PAD"}, weights);
    std::vector<int64_t> wanted;
    for (int64_t at = 0; at < example + 40; ++at) wanted.push_back(RecordsOf(single, at)[0]);
    for (int64_t batch = 1; batch <= records; ++batch) {
      for (const std::string tail : {"PAD", "DROP"}) {
        const Order order = OrderOf({sizes, batch, tail}, weights);
        std::vector<int64_t> got;
        for (int64_t at = 0; got.size() < wanted.size(); ++at) {
          for (const int64_t record : RecordsOf(order, at)) got.push_back(record);
        }
        got.resize(wanted.size());
        ASSERT_EQ(got, wanted) << tail << ", batch " << batch;
        v1::FeedSpec spec = WeightsOf(weights);
        WriteChangesBySteps(order, spec);
        for (size_t i = 0; i < begins.size(); ++i) {
          // With PAD, each epoch begins with a new step.
          const int64_t in_epoch = tail == "PAD" ? begins[i] % records : begins[i];
          const v1::Weights& change = spec.weights(static_cast<int>(i));
          ASSERT_EQ(change.from_example(), in_epoch % batch == 0 ? 0 : begins[i]);
        }
      }
    }
  }
}

// If a change lies beyond the end of a feed, WriteChangesBySteps() must not move it to the end.
TEST(WeightStepsTest, WritingChangesByStepsKeepsChangesBeyondTheEndOfTheFeed) {
  const Order endless = OrderOf({{5, 2}, 2, "DROP"}, "");
  OrderSpec spec = endless.spec();
  spec.epochs = 1;  // Three steps of 2 examples.
  const absl::StatusOr<Order> order = Order::Create(spec);
  ASSERT_THAT(order, IsOk());
  for (const int64_t example : {7, 9, 1000001}) {
    v1::FeedSpec written = WeightsOf(Change("from_example", example, {1, 1}));
    WriteChangesBySteps(*order, written);
    EXPECT_EQ(written.weights(0).from_example(), example);
  }
}

}  // namespace
}  // namespace systole
