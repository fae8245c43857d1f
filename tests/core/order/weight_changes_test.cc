// Tests mixtures whose weights change.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <memory>
#include <numeric>
#include <set>
#include <utility>
#include <vector>

#include "absl/types/span.h"
#include "core/order/mixture.h"
#include "core/order/order.h"
#include "core/random/counter_rng.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/status_matchers.h"

namespace systole {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::ElementsAreArray;
using ::testing::HasSubstr;

using Weights = std::vector<int64_t>;

// The weights that a mixture has from turn `from_turn` on.
struct Change {
  int64_t from_turn = 0;
  Weights weights;
};

// Makes a mixture whose member i has sizes[i] records, or 10 if `sizes` is empty.
Mixture Mixed(const Weights& weights, const std::vector<int64_t>& sizes = {}) {
  std::vector<MixtureMember> members;
  int64_t begin = 0;
  for (size_t i = 0; i < weights.size(); ++i) {
    const int64_t size = sizes.empty() ? 10 : sizes[i];
    members.push_back({.weight = weights[i], .records = {.begin = begin, .num_records = size}});
    begin += size;
  }
  absl::StatusOr<Mixture> mixture = Mixture::Create(std::move(members));
  EXPECT_THAT(mixture, IsOk());
  return *std::move(mixture);
}

// The place of a change by step. With a global batch of 1, step n begins at turn n.
ChangePlace AtStep(int64_t step) {
  return {.number = step, .turn = static_cast<uint64_t>(std::max<int64_t>(step, 0))};
}

ChangePlace AtExample(int64_t example) {
  return {.by_example = true,
          .number = example,
          .turn = static_cast<uint64_t>(std::max<int64_t>(example, 0))};
}

Mixture Changing(const Weights& weights, const std::vector<Change>& changes,
                 const std::vector<int64_t>& sizes = {}) {
  Mixture mixture = Mixed(weights, sizes);
  for (const auto& [from_turn, changed] : changes) {
    EXPECT_THAT(mixture.ChangeWeights(AtStep(from_turn), changed), IsOk());
  }
  return mixture;
}

std::vector<int> MembersOf(const Mixture& mixture, int count) {
  std::vector<int> members;
  for (int i = 0; i < count; ++i) {
    members.push_back(mixture.TurnAt(static_cast<uint64_t>(i)).member);
  }
  return members;
}

// Draws weights that are not all 0.
Weights DrawWeights(size_t members, int64_t least, CounterRng& rng) {
  Weights weights(members);
  do {
    for (int64_t& weight : weights) weight = std::max<int64_t>(least, rng.UniformInt(-3, 9));
    for (int64_t& weight : weights) weight = std::max<int64_t>(weight, 0);
  } while (std::accumulate(weights.begin(), weights.end(), int64_t{0}) == 0);
  return weights;
}

// Draws up to `most` changes, some of them close to each other.
std::vector<Change> DrawChanges(size_t members, int most, CounterRng& rng) {
  std::vector<Change> changes;
  int64_t at = rng.UniformInt(0, 3);
  for (int i = static_cast<int>(rng.UniformInt(0, most + 1)); i > 0; --i) {
    changes.push_back({.from_turn = at, .weights = DrawWeights(members, -1, rng)});
    at += rng.UniformInt(1, 60);
  }
  return changes;
}

TEST(WeightChangesTest, AfterAChangeTheTurnsAreThoseOfANewMixture) {
  const Mixture mixture = Changing({3, 1}, {{5, {1, 1}}, {8, {0, 7}}, {11, {6, 2}}});
  EXPECT_THAT(MembersOf(mixture, 19),
              ElementsAre(0, 0, 1, 0, 0, /**/ 0, 1, 0, /**/ 1, 1, 1, /**/ 0, 0, 1, 0, 0, 0, 1, 0));
}

TEST(WeightChangesTest, BetweenChangesEveryPrefixKeepsSharesToWithinOneExample) {
  CounterRng rng(/*seed=*/11, 0, 0, 0);
  for (int round = 0; round < 300; ++round) {
    SCOPED_TRACE(round);
    const auto size = static_cast<size_t>(rng.UniformInt(1, 9));
    Weights weights = DrawWeights(size, 1, rng);
    const std::vector<Change> changes = DrawChanges(size, 8, rng);
    const Mixture mixture = Changing(weights, changes);
    // A plain model counts the turns of each member, from the first turn on.
    std::vector<int64_t> had(size, 0);
    std::vector<int64_t> had_in_piece(size, 0);
    size_t next = 0;
    int64_t begin = 0;
    for (int64_t turn = 0; turn < 600; ++turn) {
      if (next < changes.size() && changes[next].from_turn == turn) {
        weights = changes[next++].weights;
        begin = turn;
        std::fill(had_in_piece.begin(), had_in_piece.end(), 0);
      }
      const Mixture::Turn at = mixture.TurnAt(static_cast<uint64_t>(turn));
      const auto member = static_cast<size_t>(at.member);
      // No example is left out or repeated.
      ASSERT_EQ(at.count, had[member]++) << "turn " << turn;
      ++had_in_piece[member];
      const int64_t total = std::accumulate(weights.begin(), weights.end(), int64_t{0});
      const int64_t k =
          std::count_if(weights.begin(), weights.end(), [](int64_t weight) { return weight > 0; });
      const int64_t n = turn - begin + 1;
      for (size_t i = 0; i < size; ++i) {
        // The bound of turn_table.h: |had - n * weight / total| <= 1 - 1 / (2k - 2)
        const int64_t off = std::abs(had_in_piece[i] * total - n * weights[i]);
        if (weights[i] == 0 || k == 1) {
          ASSERT_EQ(off, 0) << "turn " << turn << " of member " << i;
        } else {
          ASSERT_LE(off * (2 * k - 2), total * (2 * k - 3))
              << "turn " << turn << " of member " << i;
        }
      }
    }
  }
}

TEST(WeightChangesTest, EachRecordComesOnceInEachPassUnderEverySchedule) {
  CounterRng rng(/*seed=*/12, 0, 0, 0);
  for (int round = 0; round < 60; ++round) {
    SCOPED_TRACE(round);
    const std::vector<int64_t> sizes = {7, 23, 3};
    Mixture mixture = Changing(DrawWeights(3, 1, rng), DrawChanges(3, 8, rng), sizes);
    const int64_t num_records = mixture.num_records();
    const absl::StatusOr<Order> order =
        Order::Create({.seed = 3,
                       .mode = static_cast<ShuffleMode>(round % 3),
                       .block_records = 2,
                       .window_records = 5,
                       .num_records = num_records,
                       .mixture = std::make_shared<const Mixture>(std::move(mixture)),
                       .global_batch = 4,
                       .tail = round % 2 == 0 ? Tail::kDrop : Tail::kPad,
                       .epochs = 0});
    ASSERT_THAT(order, IsOk());
    std::vector<int64_t> pass(3, 0);
    std::vector<std::set<int64_t>> seen(3);  // The records of the member's current pass.
    for (int64_t step = 0; step < 200; ++step) {
      for (int64_t slot = 0; slot < 4; ++slot) {
        const Place place = order->PlaceOf(step, slot);
        if (!place.record.has_value()) continue;
        const size_t member = *place.record < 7 ? 0 : *place.record < 30 ? 1 : 2;
        ASSERT_EQ(place.pass, pass[member]);
        ASSERT_TRUE(seen[member].insert(*place.record).second);
        if (static_cast<int64_t>(seen[member].size()) < sizes[member]) continue;
        seen[member].clear();
        ++pass[member];
      }
    }
  }
}

TEST(WeightChangesTest, ATurnFarAwayBehindManyChangesIsFoundAtOnce) {
  Mixture mixture = Mixed({2, 1});
  const absl::uint128 length = absl::uint128(3) << 90;
  for (int i = 1; i <= kMaxWeightChanges; ++i) {
    ASSERT_THAT(mixture.ChangeWeights({.number = i, .turn = length * static_cast<uint64_t>(i)},
                                      i % 2 == 0 ? Weights{2, 1} : Weights{1, 2}),
                IsOk());
  }
  // Two neighbouring pieces together give each member half of their turns.
  const Mixture::Turn last = mixture.TurnAt(length * kMaxWeightChanges);
  EXPECT_EQ(last.member, 0);
  EXPECT_EQ(last.count, (length / 2) * kMaxWeightChanges);
  EXPECT_EQ(mixture.TurnAt(length * kMaxWeightChanges - 1).member, 1);
}

TEST(WeightChangesTest, AChangeAtTheBeginningReplacesTheWeights) {
  const Mixture replaced = Changing({5, 4}, {{0, {0, 2}}, {3, {1, 1}}});
  EXPECT_THAT(MembersOf(replaced, 5), ElementsAre(1, 1, 1, 0, 1));
  EXPECT_THAT(replaced.first_weights(), ElementsAre(0, 1));
  EXPECT_EQ(replaced.changes().size(), 1u);
  EXPECT_EQ(Changing({5, 4}, {{0, {3, 3}}}).fingerprint(), Mixed({1, 1}).fingerprint());
}

TEST(WeightChangesTest, InvalidChangesAreRefusedByTheirIndex) {
  const auto refusal = [](const std::vector<Change>& changes) {
    Mixture mixture = Mixed({3, 1});
    for (const auto& [from_turn, weights] : changes) {
      const absl::Status status = mixture.ChangeWeights(AtStep(from_turn), weights);
      if (status.ok()) continue;
      EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
      return std::string(status.message());
    }
    return std::string();
  };
  EXPECT_THAT(refusal({{-1, {1, 1}}}),
              AllOf(HasSubstr("weights[0].from_step is -1"), HasSubstr("want 0 or more")));
  EXPECT_THAT(refusal({{5, {1, 1}}, {5, {1, 1}}}),
              AllOf(HasSubstr("weights[1].from_step is 5"), HasSubstr("want more than 5")));
  EXPECT_THAT(refusal({{0, {1, 1}}, {0, {1, 1}}}), HasSubstr("weights[1].from_step is 0"));
  EXPECT_THAT(refusal({{5, {1, 1}}, {4, {1, 1}}}), HasSubstr("weights[1].from_step is 4"));
  EXPECT_THAT(refusal({{5, {1}}}),
              AllOf(HasSubstr("weights[0].weights has 1 weights"), HasSubstr("want 2")));
  EXPECT_THAT(refusal({{5, {}}}), HasSubstr("weights[0].weights has 0 weights"));
  EXPECT_THAT(refusal({{5, {1, 1, 1}}}), HasSubstr("has 3 weights"));
  EXPECT_THAT(refusal({{5, {0, 0}}}), HasSubstr("weights[0].weights are all 0"));
  EXPECT_THAT(refusal({{5, {2, -1}}}), HasSubstr("weights[0].weights has a weight of -1"));
  EXPECT_THAT(refusal({{5, {65536, 1}}}), HasSubstr("at most 65536"));
  EXPECT_THAT(refusal({{5, {INT64_MAX, INT64_MAX}}}), HasSubstr("at most 65536"));
  EXPECT_EQ(refusal({{0, {65535, 1}}, {INT64_MAX, {0, 65536}}}), "");
  std::vector<Change> many;
  for (int i = 0; i <= kMaxWeightChanges; ++i) many.push_back({i + 1, {1, 1}});
  EXPECT_THAT(refusal(many), HasSubstr("weights[64]: want at most 64 changes of weights"));
}

TEST(WeightChangesTest, ChangesByStepAndByExampleMustBeInTheOrderOfTheirTurns) {
  const auto refusal = [](const ChangePlace& first, const ChangePlace& second) {
    Mixture mixture = Mixed({3, 1});
    EXPECT_THAT(mixture.ChangeWeights(first, {1, 1}), IsOk());
    return std::string(mixture.ChangeWeights(second, {1, 2}).message());
  };
  // With a global batch of 4, step 8 begins at turn 32.
  const ChangePlace step_eight = {.number = 8, .turn = 32};
  EXPECT_EQ(refusal(AtExample(31), step_eight), "");
  EXPECT_EQ(refusal(step_eight, AtExample(33)), "");
  EXPECT_THAT(
      refusal(step_eight, AtExample(32)),
      HasSubstr(
          "weights[1].from_example is 32, so this change begins at example 32; want a place after "
          "example 32, where the previous change begins (from_step: 8)"));
  EXPECT_THAT(
      refusal(AtExample(40), step_eight),
      HasSubstr(
          "weights[1].from_step is 8, so this change begins at example 32; want a place after "
          "example 40, where the previous change begins (from_example: 40)"));
  EXPECT_EQ(refusal(AtExample(40), AtExample(40)),
            "weights[1].from_example is 40, want more than 40, where the previous change begins");
  Mixture mixture = Mixed({3, 1});
  EXPECT_THAT(mixture.ChangeWeights(AtExample(-1), {1, 1}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       HasSubstr("weights[0].from_example is -1, want 0 or more")));
}

TEST(WeightChangesTest, TheTablesOfAllWeightChangesHaveACommonLimit) {
  // The weights of each change add up to the prime number 2039. So they have no common divisor, and
  // each change needs a table of 2039 turns.
  Mixture mixture = Mixed({1, 1});
  int64_t turns = 2;
  int64_t step = 0;
  while (step < kMaxWeightChanges - 1 && turns + 2039 <= kMaxTurns) {
    ++step;
    turns += 2039;
    ASSERT_THAT(mixture.ChangeWeights(AtStep(step), {step, 2039 - step}), IsOk());
  }
  ASSERT_EQ(step, kMaxWeightChanges - 1);
  Mixture other = mixture;
  EXPECT_THAT(mixture.ChangeWeights(AtStep(64), {65535, 1}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("weights[63]: "), HasSubstr("add up to 193995"),
                             HasSubstr("at most 131072"))));
  // A change to the weights of an earlier change adds no table.
  EXPECT_THAT(other.ChangeWeights(AtStep(64), {7, 2032}), IsOk());
}

TEST(WeightChangesTest, FingerprintBeforeATurnCoversOnlyEarlierChanges) {
  const Mixture one = Changing({3, 1}, {{10, {1, 1}}, {20, {1, 2}}});
  EXPECT_EQ(Changing({6, 2}, {{10, {4, 4}}, {20, {3, 6}}}).fingerprint(), one.fingerprint());
  EXPECT_NE(Changing({3, 1}, {{11, {1, 1}}, {20, {1, 2}}}).fingerprint(), one.fingerprint());
  EXPECT_NE(Changing({3, 1}, {{10, {1, 3}}, {20, {1, 2}}}).fingerprint(), one.fingerprint());
  EXPECT_NE(Changing({3, 1}, {{20, {1, 2}}}).fingerprint(), one.fingerprint());

  const Mixture never = Mixed({3, 1});
  const Mixture other = Changing({3, 1}, {{10, {1, 1}}, {15, {1, 2}}});
  for (const int turn : {0, 1, 10}) {
    EXPECT_EQ(one.FingerprintBefore(turn), never.fingerprint());
    EXPECT_TRUE(one.ChangesBefore(turn).empty());
  }
  for (const int turn : {11, 15}) {
    EXPECT_EQ(one.FingerprintBefore(turn), other.FingerprintBefore(turn));
    EXPECT_NE(one.FingerprintBefore(turn), never.fingerprint());
    EXPECT_EQ(one.ChangesBefore(turn).size(), 1u);
  }
  EXPECT_NE(one.FingerprintBefore(16), other.FingerprintBefore(16));
  EXPECT_EQ(one.FingerprintBefore(21), one.fingerprint());
  EXPECT_THAT(HashesOf(one.ChangesBefore(16)),
              ElementsAreArray(HashesOf(other.changes().first(1))));
  EXPECT_NE(one.changes()[1].hash, other.changes()[1].hash);
}

TEST(WeightChangesTest, FingerprintIfChangedAtEqualsThatOfAMixtureChangedThere) {
  const Mixture one = Changing({3, 1}, {{0, {2, 1}}, {10, {1, 1}}, {20, {1, 2}}, {30, {2, 1}}});
  const Mixture moved = Changing({2, 1}, {{7, {2, 2}}, {8, {2, 4}}, {90, {4, 2}}});
  EXPECT_EQ(one.FingerprintIfChangedAt({}), moved.FingerprintBefore(0));
  EXPECT_EQ(one.FingerprintIfChangedAt({7}), moved.FingerprintBefore(8));
  EXPECT_EQ(one.FingerprintIfChangedAt({7, 8}), moved.FingerprintBefore(9));
  EXPECT_EQ(one.FingerprintIfChangedAt({7, 8, 90}), moved.fingerprint());
  EXPECT_EQ(one.FingerprintIfChangedAt({10, 20, 30}), one.fingerprint());
}

}  // namespace
}  // namespace systole
