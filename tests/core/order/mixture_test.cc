#include "core/order/mixture.h"

#include <cstdint>
#include <cstdlib>
#include <limits>
#include <map>
#include <memory>
#include <set>
#include <utility>
#include <vector>

#include "core/order/order.h"
#include "core/random/counter_rng.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/status_matchers.h"

namespace systole {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Makes members with these weights. Member i has sizes[i] records, or 10 if `sizes` is empty. The
// records are numbered through all members, in the order of the members.
std::vector<MixtureMember> Members(const std::vector<int64_t>& weights,
                                   const std::vector<int64_t>& sizes = {}) {
  std::vector<MixtureMember> members;
  int64_t begin = 0;
  for (size_t i = 0; i < weights.size(); ++i) {
    const int64_t size = sizes.empty() ? 10 : sizes[i];
    members.push_back({.weight = weights[i], .records = {.begin = begin, .num_records = size}});
    begin += size;
  }
  return members;
}

Mixture Mixed(const std::vector<int64_t>& weights, const std::vector<int64_t>& sizes = {}) {
  absl::StatusOr<Mixture> mixture = Mixture::Create(Members(weights, sizes));
  EXPECT_THAT(mixture, IsOk());
  return *std::move(mixture);
}

Order OrderOf(Mixture mixture, OrderSpec spec) {
  spec.num_records = mixture.num_records();
  spec.mixture = std::make_shared<const Mixture>(std::move(mixture));
  const absl::StatusOr<Order> order = Order::Create(spec);
  EXPECT_THAT(order, IsOk());
  return *order;
}

TEST(MixtureTest, TurnsAreSpreadEvenly) {
  const auto turns = [](const std::vector<int64_t>& weights, int count) {
    const Mixture mixture = Mixed(weights);
    std::vector<int> turns;
    for (int i = 0; i < count; ++i) {
      turns.push_back(mixture.TurnAt(static_cast<uint64_t>(i)).member);
    }
    return turns;
  };
  EXPECT_THAT(turns({5}, 3), ElementsAre(0, 0, 0));
  EXPECT_THAT(turns({1, 1}, 4), ElementsAre(0, 1, 0, 1));
  EXPECT_THAT(turns({3, 1}, 8), ElementsAre(0, 0, 1, 0, 0, 0, 1, 0));
  EXPECT_EQ(turns({30, 10}, 8), turns({3, 1}, 8));
}

TEST(MixtureTest, EveryPrefixHasEachShareToWithinOneExample) {
  CounterRng rng(/*seed=*/7, 0, 0, 0);
  for (int round = 0; round < 300; ++round) {
    std::vector<int64_t> weights(static_cast<size_t>(rng.UniformInt(1, 21)));
    int64_t total = 0;
    for (int64_t& weight : weights) {
      weight = rng.UniformInt(1, round % 2 == 0 ? 6 : 301);
      total += weight;
    }
    const Mixture mixture = Mixed(weights);
    const auto k = static_cast<int64_t>(weights.size());
    std::vector<int64_t> had(weights.size(), 0);
    for (int64_t n = 1; n <= 2 * total + 3; ++n) {
      const Mixture::Turn turn = mixture.TurnAt(static_cast<uint64_t>(n - 1));
      ASSERT_EQ(turn.count, had[static_cast<size_t>(turn.member)]++);
      for (size_t i = 0; i < weights.size(); ++i) {
        // |had - n * weight / total| <= 1 - 1 / (2k - 2)
        const int64_t off = std::abs(had[i] * total - n * weights[i]);
        if (k == 1) {
          ASSERT_EQ(off, 0);
        } else {
          ASSERT_LE(off * (2 * k - 2), total * (2 * k - 3)) << "turn " << n << " of member " << i;
        }
      }
    }
  }
}

TEST(MixtureTest, ATurnFarAwayIsFoundAtOnce) {
  const Mixture mixture = Mixed({2, 1});
  const absl::uint128 far = absl::uint128(3) << 90;
  EXPECT_EQ(mixture.TurnAt(far).member, mixture.TurnAt(0).member);
  EXPECT_EQ(mixture.TurnAt(far).count, absl::uint128(2) << 90);
}

TEST(MixtureTest, WeightsMembersAndRecordCountsAreBounded) {
  std::vector<int64_t> weights(64, 1023);
  weights[0] += 64;
  EXPECT_THAT(Mixture::Create(Members(weights)), IsOk());
  weights[1] += 1;
  EXPECT_THAT(Mixture::Create(Members(weights)),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("mixture[63].weight")));
  EXPECT_THAT(Mixture::Create(Members(std::vector<int64_t>(65, 1))),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("65 members")));
  EXPECT_THAT(Mixture::Create({}),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("0 members")));
  EXPECT_THAT(Mixture::Create(Members({1, -1})),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("mixture[1].weight is -1")));
  EXPECT_THAT(Mixture::Create(Members({1, 1}, {5, 0})),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("mixture[1] has no records")));
  EXPECT_THAT(Mixture::Create(Members({1, 1, 1}, {int64_t{1} << 61, int64_t{1} << 61, 1})),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("2^62")));
}

// Maps each record of one member to the passes in which it came.
using PassesOfRecords = std::map<int64_t, std::multiset<int64_t>>;

TEST(MixtureTest, EachRecordComesOnceInEachPassOfItsMember) {
  for (const Tail tail : {Tail::kDrop, Tail::kPad}) {
    for (const ShuffleMode mode :
         {ShuffleMode::kNone, ShuffleMode::kGlobal, ShuffleMode::kWindow}) {
      const std::vector<int64_t> sizes = {7, 23, 3};
      const Order order = OrderOf(Mixed({5, 2, 4}, sizes), {.seed = 3,
                                                            .mode = mode,
                                                            .block_records = 2,
                                                            .window_records = 5,
                                                            .global_batch = 4,
                                                            .tail = tail,
                                                            .epochs = 0});
      std::vector<PassesOfRecords> members(3);
      std::vector<int64_t> counts(3, 0);
      for (int64_t step = 0; step < 200; ++step) {
        for (int64_t slot = 0; slot < 4; ++slot) {
          const Place place = order.PlaceOf(step, slot);
          if (!place.record.has_value()) continue;
          const size_t member = *place.record < 7 ? 0 : *place.record < 30 ? 1 : 2;
          members[member][*place.record].insert(place.pass);
          ++counts[member];
        }
      }
      for (size_t m = 0; m < members.size(); ++m) {
        const int64_t whole = counts[m] / sizes[m];
        EXPECT_EQ(static_cast<int64_t>(members[m].size()), sizes[m]);
        for (const auto& [record, passes] : members[m]) {
          for (int64_t pass = 0; pass < whole; ++pass) EXPECT_EQ(passes.count(pass), 1u);
          EXPECT_LE(passes.count(whole), 1u);
          EXPECT_LE(static_cast<int64_t>(passes.size()), whole + 1);
        }
      }
    }
  }
}

TEST(MixtureTest, AnEpochHasAsManyExamplesAsAllMembers) {
  const OrderSpec spec = {.global_batch = 4, .tail = Tail::kPad, .epochs = 2};
  const Order order = OrderOf(Mixed({5, 2}, {7, 15}), spec);
  EXPECT_EQ(order.steps_per_epoch(), 6);
  EXPECT_EQ(order.total_steps(), 12);
  EXPECT_EQ(order.RecordsIn(5), 2);
  EXPECT_FALSE(order.PlaceOf(5, 2).record.has_value());
  EXPECT_TRUE(order.PlaceOf(5, 1).record.has_value());
  // No record is lost between two epochs or by dropping the tail.
  const auto sequence = [](const Order& order, int64_t count) {
    std::vector<int64_t> records;
    for (int64_t step = 0; static_cast<int64_t>(records.size()) < count; ++step) {
      for (int64_t slot = 0; slot < 4; ++slot) {
        const Place place = order.PlaceOf(step, slot);
        if (place.record.has_value()) records.push_back(*place.record);
      }
    }
    records.resize(static_cast<size_t>(count));
    return records;
  };
  OrderSpec drop = spec;
  drop.tail = Tail::kDrop;
  EXPECT_EQ(sequence(order, 100), sequence(OrderOf(Mixed({5, 2}, {7, 15}), drop), 100));
}

TEST(MixtureTest, MembersOfEqualSizeAreShuffledDifferently) {
  const Order order = OrderOf(Mixed({1, 1}, {50, 50}),
                              {.seed = 1, .mode = ShuffleMode::kGlobal, .global_batch = 100});
  int alike = 0;
  for (int64_t i = 0; i < 100; i += 2) {
    if (*order.PlaceOf(0, i).record + 50 == *order.PlaceOf(0, i + 1).record) ++alike;
  }
  EXPECT_LT(alike, 10);
}

TEST(MixtureTest, FingerprintCoversWeightRatiosSizesAndSelections) {
  const OrderSpec spec = {.global_batch = 4};
  const auto fingerprint = [&](Mixture mixture) {
    return OrderOf(std::move(mixture), spec).Fingerprint(9);
  };
  const uint64_t first = fingerprint(Mixed({2, 1}, {8, 8}));
  EXPECT_EQ(fingerprint(Mixed({4, 2}, {8, 8})), first);
  EXPECT_NE(fingerprint(Mixed({3, 1}, {8, 8})), first);
  EXPECT_NE(fingerprint(Mixed({2, 1}, {7, 9})), first);
  std::vector<MixtureMember> selected = Members({2, 1}, {8, 8});
  const absl::StatusOr<Selection> selection =
      Selection::Create(std::vector<int64_t>{8}, {TakeRecords{8}});
  ASSERT_THAT(selection, IsOk());
  selected[1].records.selection = std::make_shared<const Selection>(*selection);
  EXPECT_NE(fingerprint(*Mixture::Create(selected)), first);
}

TEST(MixtureTest, TheLargestStepNumberHasARecord) {
  const Order order = OrderOf(Mixed({1, 3}, {2, 2}),
                              {.mode = ShuffleMode::kGlobal, .global_batch = 4, .epochs = 0});
  const Place place = order.PlaceOf(std::numeric_limits<int64_t>::max(), 3);
  EXPECT_GE(place.pass, 0);
  EXPECT_TRUE(place.record.has_value());
}

}  // namespace
}  // namespace systole
