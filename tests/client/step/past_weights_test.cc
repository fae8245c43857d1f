#include "client/step/past_weights.h"

#include <cstdint>
#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/numeric/int128.h"
#include "client/step/feed_range.h"
#include "core/order/feed_position.h"
#include "core/order/mixture.h"
#include "core/order/order.h"
#include "core/order/resume_token.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/status_matchers.h"

namespace systole {
namespace {

using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

constexpr uint64_t kDataset = 7;  // The dataset's fingerprint.

struct Change {
  bool by_example = false;
  int64_t number = 0;
  std::vector<int64_t> weights;
};

struct SmallMixture {
  int64_t global_batch = 1;
  std::vector<Change> changes;
  Tail tail = Tail::kDrop;
  uint64_t seed = 3;
};

// An endless order of two members with 500000 records each.
Order OrderOf(const SmallMixture& of) {
  absl::StatusOr<Mixture> mixture =
      Mixture::Create({{.weight = 3, .records = {.num_records = 500000}},
                       {.weight = 1, .records = {.begin = 500000, .num_records = 500000}}});
  EXPECT_THAT(mixture, IsOk());
  OrderSpec spec = {.seed = of.seed,
                    .num_records = mixture->num_records(),
                    .mixture = std::make_shared<const Mixture>(*mixture),
                    .global_batch = of.global_batch,
                    .tail = of.tail,
                    .epochs = 0};
  const Order steps = *Order::Create(spec);
  for (const Change& change : of.changes) {
    const absl::uint128 turn = change.by_example
                                   ? absl::uint128(static_cast<uint64_t>(change.number))
                                   : TurnsBefore(steps, PositionBefore(steps, change.number));
    EXPECT_THAT(mixture->ChangeWeights(
                    {.by_example = change.by_example, .number = change.number, .turn = turn},
                    change.weights),
                IsOk());
  }
  spec.mixture = std::make_shared<const Mixture>(*std::move(mixture));
  const absl::StatusOr<Order> order = Order::Create(spec);
  EXPECT_THAT(order, IsOk());
  return *order;
}

// The resume token that a feed of this order gives before `step`.
ResumeToken TokenAt(const Order& order, int64_t step) {
  ResumeToken token = {.dataset_fingerprint = kDataset, .position = PositionBefore(order, step)};
  CoverThePastAlone(order, token);
  return token;
}

TEST(PastWeightsTest, EquivalentWeightChangesAreNotADifferentPast) {
  const Order order = OrderOf({.global_batch = 32, .changes = {{false, 5, {0, 1}}}});
  for (const int step : {0, 5, 6}) EXPECT_EQ(DifferentPast(TokenAt(order, step), order), "");
  const Order other = OrderOf({.global_batch = 64, .changes = {{true, 5 * 32, {0, 2}}}});
  EXPECT_EQ(DifferentPast(TokenAt(order, 6), other), "");
}

TEST(PastWeightsTest, IfOnlyTheBatchSizeDiffersTheErrorSuggestsFromExample) {
  const std::vector<Change> changes = {
      {false, 0, {2, 1}}, {true, 9, {1, 1}}, {false, 1001, {0, 1}}, {false, 2000, {5, 1}}};
  const Order old = OrderOf({.global_batch = 32, .changes = changes});
  const std::string remedy =
      "The token's feed had global_batch: 32, so these steps began at other examples. Examples do "
      "not depend on global_batch: write `from_example: 32032` instead of `from_step: 1001`, "
      "`from_example: 64000` instead of `from_step: 2000`";
  for (const int64_t batch : {1, 28, 33, 39}) {
    for (const int64_t taken : {1300, 2001}) {
      EXPECT_THAT(
          DifferentPast(TokenAt(old, taken), OrderOf({.global_batch = batch, .changes = changes})),
          AllOf(StartsWith("the past differs"), EndsWith(remedy)))
          << batch;
    }
  }
}

// 1000000 examples in an epoch: 31 steps of 32768, the last one padded.
TEST(PastWeightsTest, SuggestedFromExampleNumbersDoNotCountPadding) {
  const std::vector<Change> changes = {{false, 32, {0, 1}}, {false, 62, {1, 1}}};
  const Order old = OrderOf({.global_batch = 32768, .changes = changes, .tail = Tail::kPad});
  const Order other = OrderOf({.global_batch = 65536, .changes = changes, .tail = Tail::kPad});
  EXPECT_THAT(DifferentPast(TokenAt(old, 40), other),
              AllOf(StartsWith("the past differs: before the token was taken, "),
                    HasSubstr("changed more often (1) than those of the spec (0)"),
                    HasSubstr("`from_example: 1032768` instead of `from_step: 32`, "
                              "`from_example: 2000000` instead of `from_step: 62`")));
}

// The token is taken after the second epoch, and its only change was at step 31, where the second
// epoch begins. Every batch size that gives 31 steps an epoch gives this past. So the token does
// not show its feed's batch size, nor the example at which step 70 of its feed begins.
TEST(PastWeightsTest, NoExampleNumberIsSuggestedIfTheBatchSizeIsAmbiguous) {
  const std::vector<Change> changes = {{false, 31, {0, 1}}, {false, 70, {1, 1}}};
  const Order old = OrderOf({.global_batch = 32768, .changes = changes, .tail = Tail::kPad});
  const Order other = OrderOf({.global_batch = 65536, .changes = changes, .tail = Tail::kPad});
  EXPECT_THAT(DifferentPast(TokenAt(old, 62), other),
              AllOf(HasSubstr("write each of its changes up to this place with `from_example: N`"),
                    Not(HasSubstr("instead of `from_step: 70`"))));
}

TEST(PastWeightsTest, NoExampleNumberIsSuggestedIfMoreThanTheBatchSizeDiffers) {
  const Order old = OrderOf({.global_batch = 32, .changes = {{false, 5, {0, 1}}}});
  const ResumeToken token = TokenAt(old, 9);
  const auto difference = [&](const SmallMixture& of) { return DifferentPast(token, OrderOf(of)); };
  const auto no_examples =
      AllOf(HasSubstr("write each of its changes up to this place with `from_example: N`"),
            Not(HasSubstr("instead of `from_step: 5`")));
  EXPECT_THAT(
      difference({.global_batch = 32, .changes = {{false, 5, {1, 1}}}}),
      AllOf(
          StartsWith("the past differs from step 5 on: at that place the spec has `weights` other "
                     "than those of the token's feed. Weights may change where"),
          no_examples));
  EXPECT_THAT(difference({.global_batch = 32, .changes = {{true, 161, {0, 1}}}}),
              AllOf(StartsWith("the past differs from example 161 on: "), no_examples));
  EXPECT_THAT(difference({.global_batch = 64, .changes = {{false, 4, {0, 1}}}, .seed = 4}),
              no_examples);
  EXPECT_THAT(difference({.global_batch = 32}), no_examples);
  const int64_t far = std::numeric_limits<int64_t>::max();
  EXPECT_THAT(difference({.global_batch = 32, .changes = {{false, far, {0, 1}}}}), no_examples);
}

}  // namespace
}  // namespace systole
