#include "client/emulator/report/step_history.h"

#include <cmath>
#include <limits>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace systole::emulator {
namespace {

constexpr int64_t kMaxRows = StepHistory::kMaxRows;
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

// A history of the steps from `from` to before `to`. Step s computes for s ms and has loss s.
StepHistory HistoryOf(int64_t from, int64_t to) {
  StepHistory history;
  for (int64_t s = from; s < to; ++s) {
    history.Add({.step = s,
                 .start = absl::Seconds(s),
                 .infeed_stall = absl::Milliseconds(s == 77 ? 5000 : 1),
                 .compute = absl::Milliseconds(s),
                 .loss = static_cast<double>(s),
                 .accuracy = 0.5,
                 .learning_rate = 0.25 * static_cast<double>(s)});
  }
  return history;
}

TEST(StepHistoryTest, EachStepHasItsOwnRowUntilTheHistoryIsFull) {
  const StepHistory history = HistoryOf(100, 100 + kMaxRows);
  EXPECT_EQ(history.steps_per_row(), 1);
  ASSERT_EQ(history.rows().size(), kMaxRows);
  const StepRow& row = history.rows()[3];
  EXPECT_EQ(row.first_step, 103);
  EXPECT_EQ(row.steps, 1);
  EXPECT_EQ(row.start, absl::Seconds(103));
  EXPECT_EQ(row.longest, absl::Milliseconds(104));
  EXPECT_EQ(row.loss.max, 103);
}

TEST(StepHistoryTest, FullRowsAreMergedTwoByTwo) {
  const StepHistory history = HistoryOf(0, kMaxRows + 1);
  EXPECT_EQ(history.steps_per_row(), 2);
  ASSERT_EQ(history.rows().size(), kMaxRows / 2 + 1);
  const StepRow& row = history.rows()[5];
  EXPECT_EQ(row.first_step, 10);
  EXPECT_EQ(row.steps, 2);
  EXPECT_EQ(row.start, absl::Seconds(10));
  EXPECT_EQ(row.compute, absl::Milliseconds(21));
  EXPECT_EQ(row.loss.mean, 10.5);
  EXPECT_EQ(row.loss.min, 10);
  EXPECT_EQ(row.loss.max, 11);
  EXPECT_EQ(row.learning_rate, 2.5);
  EXPECT_EQ(history.rows().back().steps, 1);
}

TEST(StepHistoryTest, AMillionStepsStayBoundedAndLoseNoSumAndNoSpike) {
  constexpr int64_t kSteps = 1000000;
  const StepHistory history = HistoryOf(0, kSteps);
  EXPECT_LE(history.rows().size(), kMaxRows);
  EXPECT_EQ(history.steps(), kSteps);
  int64_t next = 0;
  for (const StepRow& row : history.rows()) {
    EXPECT_EQ(row.first_step, next);
    next += row.steps;
  }
  EXPECT_EQ(next, kSteps);
  const StepRow total = history.Total();
  EXPECT_EQ(total.steps, kSteps);
  EXPECT_EQ(total.compute, absl::Milliseconds(kSteps * (kSteps - 1) / 2));
  EXPECT_NEAR(total.loss.mean, 0.5 * (kSteps - 1), 1e-3);
  // Step 77 takes 5.077 s, and its row keeps this maximum.
  EXPECT_EQ(history.rows()[0].longest,
            absl::Milliseconds(std::max<int64_t>(5077, history.steps_per_row())));
}

TEST(StepHistoryTest, NanLossesAreIgnoredInMeanMinAndMax) {
  StepHistory history;
  history.Add({.step = 0, .loss = 2, .accuracy = kNan});
  history.Add({.step = 1, .loss = kNan, .accuracy = kNan});
  history.Add({.step = 2, .loss = 4, .accuracy = kNan});
  const StepRow total = history.Total();
  EXPECT_EQ(total.loss.min, 2);
  EXPECT_EQ(total.loss.max, 4);
  EXPECT_EQ(total.loss.mean, 3);
  EXPECT_TRUE(std::isnan(total.accuracy.mean));
}

// Rows are merged two by two again and again, as when the history is full.
TEST(StepHistoryTest, NonFiniteLossesHaveNoWeightInTheMeansOfMergedRows) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  StepHistory history;
  double sum = 0;
  int64_t finite = 0;
  for (int64_t s = 0; s < 4 * kMaxRows; ++s) {
    const bool is_finite = s % 7 < 3;
    history.Add({.step = s, .loss = is_finite ? static_cast<double>(s) : s % 2 ? kNan : kInfinity});
    sum += is_finite ? static_cast<double>(s) : 0;
    finite += is_finite ? 1 : 0;
  }
  EXPECT_EQ(history.steps_per_row(), 4);
  // Of steps 4 to 7 only step 7 has a finite loss. Of steps 8 to 11 only steps 8 and 9
  // have a finite loss.
  EXPECT_EQ(history.rows()[1].loss.mean, 7);
  EXPECT_EQ(history.rows()[2].loss.mean, 8.5);
  EXPECT_EQ(history.Total().loss.values, finite);
  EXPECT_NEAR(history.Total().loss.mean, sum / static_cast<double>(finite), 1e-9);
}

TEST(StepHistoryDeathTest, AStepOutOfOrderIsABug) {
  StepHistory history = HistoryOf(0, 3);
  EXPECT_DEATH(history.Add({.step = 5}), "");
}

TEST(MergeRowsTest, MergesEqualGroupsToFitTheLimit) {
  const StepHistory history = HistoryOf(0, 10);
  const std::vector<StepRow> merged = MergeRows(history.rows(), 4);
  ASSERT_EQ(merged.size(), 4u);
  EXPECT_EQ(merged[0].steps, 3);
  EXPECT_EQ(merged[3].steps, 1);
  EXPECT_EQ(merged[1].compute, absl::Milliseconds(3 + 4 + 5));
  EXPECT_EQ(MergeRows(history.rows(), 10).size(), 10u);
  EXPECT_THAT(MergeRows({}, 4), testing::IsEmpty());
}

}  // namespace
}  // namespace systole::emulator
