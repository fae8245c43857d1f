#include "core/order/feed_position.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <memory>
#include <set>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/status_matchers.h"

namespace systole {
namespace {

using ::testing::HasSubstr;

Order Make(const OrderSpec& spec) {
  absl::StatusOr<Order> order = Order::Create(spec);
  EXPECT_THAT(order, IsOk());
  return *order;
}

OrderSpec SpecOf(int64_t num_records, int64_t global_batch, Tail tail) {
  return {.seed = 5,
          .num_records = num_records,
          .global_batch = global_batch,
          .tail = tail,
          .epochs = 0};
}

// The records of steps [begin, end), in order.
std::vector<int64_t> Records(const Order& order, int64_t begin, int64_t end) {
  std::vector<int64_t> records;
  for (int64_t step = begin; step < end; ++step) {
    for (int64_t slot = 0; slot < order.spec().global_batch; ++slot) {
      const Place place = order.PlaceOf(step, slot);
      if (place.record.has_value()) records.push_back(*place.record);
    }
  }
  return records;
}

// Calls `check(from, to, tail)` for each tail and each pair of batch sizes. With kDrop a batch has
// at most `num_records` records. With kPad it may be larger; here, by up to 2.
template <typename Check>
void ForEachPair(int64_t num_records, Check check) {
  for (const Tail tail : {Tail::kDrop, Tail::kPad}) {
    const int64_t most = tail == Tail::kDrop ? num_records : num_records + 2;
    for (int64_t from = 1; from <= most; ++from) {
      for (int64_t to = 1; to <= most; ++to) {
        SCOPED_TRACE(absl::StrCat(num_records, " records, batch ", from, " to ", to,
                                  tail == Tail::kDrop ? ", drop" : ", pad"));
        check(from, to, tail);
      }
    }
  }
}

// Leaves a feed before each of its steps in turn, and feeds the rest of the epoch with another
// batch size.
TEST(FeedPositionTest, ResumingWithAnotherBatchSizeRepeatsNoRecordAndCountsSkips) {
  for (int64_t num_records = 1; num_records <= 11; ++num_records) {
    ForEachPair(num_records, [&](int64_t from, int64_t to, Tail tail) {
      const Order old = Make(SpecOf(num_records, from, tail));
      const Order next = Make(SpecOf(num_records, to, tail));
      const int64_t used = std::min(num_records, next.steps_per_epoch() * to);
      for (int64_t left_at = 0; left_at <= 2 * old.steps_per_epoch(); ++left_at) {
        const FeedPosition position = PositionBefore(old, left_at);
        const absl::StatusOr<ResumedStep> resumed = StepFrom(next, position);
        ASSERT_THAT(resumed, IsOk());
        const int64_t epoch = left_at / old.steps_per_epoch();
        ASSERT_EQ(position.epoch, epoch);
        ASSERT_GE(resumed->step, epoch * next.steps_per_epoch());
        ASSERT_LE(resumed->step, (epoch + 1) * next.steps_per_epoch());
        std::vector<int64_t> all = Records(old, epoch * old.steps_per_epoch(), left_at);
        ASSERT_EQ(static_cast<int64_t>(all.size()), position.examples);
        const std::vector<int64_t> rest =
            Records(next, resumed->step, (epoch + 1) * next.steps_per_epoch());
        all.insert(all.end(), rest.begin(), rest.end());
        ASSERT_EQ(std::set<int64_t>(all.begin(), all.end()).size(), all.size());
        const int64_t dropped = num_records - std::max(used, position.examples);
        ASSERT_EQ(static_cast<int64_t>(all.size()) + resumed->skipped + dropped, num_records)
            << "left at step " << left_at;
        ASSERT_LT(resumed->skipped, to);
        if (position.examples % to == 0) {
          ASSERT_EQ(resumed->skipped, 0);
        }
      }
    });
  }
}

TEST(FeedPositionTest, AnEpochsEndResumesAtTheNextEpochsStartForEveryBatchSize) {
  for (int64_t num_records = 1; num_records <= 11; ++num_records) {
    ForEachPair(num_records, [&](int64_t from, int64_t to, Tail tail) {
      const Order old = Make(SpecOf(num_records, from, tail));
      const Order next = Make(SpecOf(num_records, to, tail));
      const FeedPosition position = PositionBefore(old, 3 * old.steps_per_epoch());
      ASSERT_EQ(position, (FeedPosition{.epoch = 3}));
      const absl::StatusOr<ResumedStep> resumed = StepFrom(next, position);
      ASSERT_THAT(resumed, IsOk());
      ASSERT_EQ(resumed->step, 3 * next.steps_per_epoch());
      ASSERT_EQ(resumed->skipped, 0);
    });
  }
}

OrderSpec Mixed(int64_t global_batch, Tail tail) {
  std::vector<MixtureMember> members = {{.weight = 3, .records = {.num_records = 5}},
                                        {.weight = 1, .records = {.begin = 5, .num_records = 4}}};
  absl::StatusOr<Mixture> mixture = Mixture::Create(std::move(members));
  EXPECT_THAT(mixture, IsOk());
  OrderSpec spec = SpecOf(mixture->num_records(), global_batch, tail);
  spec.mixture = std::make_shared<const Mixture>(*std::move(mixture));
  return spec;
}

// The length of an epoch depends on the batch size. A mixture's turns do not begin anew with an
// epoch, so a feed with another batch size takes the next turn.
TEST(FeedPositionTest, AResumedMixtureContinuesItsTurnsWithAnyBatchSize) {
  const Order turns = Make(Mixed(1, Tail::kPad));
  ForEachPair(turns.spec().num_records, [&](int64_t from, int64_t to, Tail tail) {
    const Order old = Make(Mixed(from, tail)), next = Make(Mixed(to, tail));
    for (int64_t left_at = 0; left_at <= 3 * old.steps_per_epoch() + 1; ++left_at) {
      const absl::StatusOr<ResumedStep> resumed = StepFrom(next, PositionBefore(old, left_at));
      ASSERT_THAT(resumed, IsOk());
      ASSERT_LT(resumed->skipped, to);
      const auto taken = static_cast<int64_t>(Records(old, 0, left_at).size());
      const std::vector<int64_t> rest = Records(next, resumed->step, resumed->step + 4);
      const int64_t begin = taken + resumed->skipped;
      ASSERT_EQ(rest, Records(turns, begin, begin + static_cast<int64_t>(rest.size())))
          << "left at step " << left_at;
    }
  });
}

TEST(FeedPositionTest, TheSameBatchSizeResumesAtTheSameStepHoweverLate) {
  std::vector<OrderSpec> specs = {SpecOf(10, 4, Tail::kDrop),
                                  SpecOf(10, 4, Tail::kPad),
                                  SpecOf(10, 1, Tail::kDrop),
                                  SpecOf(int64_t{1} << 62, int64_t{1} << 62, Tail::kPad),
                                  Mixed(4, Tail::kDrop),
                                  Mixed(4, Tail::kPad),
                                  Mixed(int64_t{1} << 40, Tail::kPad)};
  for (const OrderSpec& spec : specs) {
    const Order order = Make(spec);
    for (const int64_t step : {int64_t{0}, int64_t{1}, int64_t{2}, int64_t{3}, int64_t{1000003},
                               int64_t{1} << 60, std::numeric_limits<int64_t>::max()}) {
      const FeedPosition position = PositionBefore(order, step);
      EXPECT_LT(position.examples, order.spec().num_records);
      const absl::StatusOr<ResumedStep> resumed = StepFrom(order, position);
      ASSERT_THAT(resumed, IsOk());
      EXPECT_EQ(resumed->step, step);
      EXPECT_EQ(resumed->skipped, 0);
    }
  }
}

// With batches of 4 and kDrop, an epoch of a mixture of 9 records has only 8 turns. The ninth turn
// belongs to the next epoch. So the text names a position in the mixture, not in an epoch.
TEST(FeedPositionTest, PositionTextNamesTheEpochOrTheMixture) {
  const auto text = [](const Order& order, int64_t step) {
    return PositionText(order, PositionBefore(order, step));
  };
  const Order alone = Make(SpecOf(9, 4, Tail::kDrop));
  EXPECT_EQ(text(alone, 0), "after 0 examples of epoch 0");
  EXPECT_EQ(text(alone, 5), "after 4 examples of epoch 2");
  const Order mixed = Make(Mixed(4, Tail::kDrop));
  EXPECT_EQ(text(mixed, 0), "after 0 examples of the mixture");
  EXPECT_EQ(text(mixed, 5), "after 20 examples of the mixture");
}

// Positions come from resume tokens, and a caller may pass any token.
TEST(FeedPositionTest, PositionsThatNoFeedHasAreRefused) {
  const Order order = Make(SpecOf(10, 4, Tail::kDrop));
  const auto refused = [](const Order& of, const FeedPosition& position, const char* message) {
    EXPECT_THAT(StepFrom(of, position),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(message)));
  };
  refused(order, {.epoch = 0, .examples = 10},
          "a feed of 10 records has no position after 10 examples of epoch 0; want");
  refused(order, {.epoch = -1}, "epoch -1");
  refused(order, {.epoch = 0, .examples = -1}, "after -1 examples");
  refused(order, {.epoch = std::numeric_limits<int64_t>::max()}, "exceed 2^63 - 1");
  refused(Make(Mixed(4, Tail::kDrop)), {.epoch = std::numeric_limits<int64_t>::max()},
          "after 83010348331692982263 examples of the mixture: the step's number would exceed 2^63 "
          "- 1");
}

}  // namespace
}  // namespace systole
