#include "client/emulator/report/step_history.h"

#include <limits>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace systole::emulator {
namespace {

constexpr int64_t kMaxRows = StepHistory::kMaxRows;
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

// Steps `from` to `to`; step s computes for s ms and has loss s.
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

TEST(StepHistoryTest, AStepIsARowWhileThereIsRoom) {
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
  // Step 77 is 5.077 s long, which its row remembers.
  EXPECT_EQ(history.rows()[0].longest,
            absl::Milliseconds(std::max<int64_t>(5077, history.steps_per_row())));
}

TEST(StepHistoryTest, ALossThatIsNoNumberDoesNotBlankItsRow) {
  StepHistory history;
  history.Add({.step = 0, .loss = 2, .accuracy = kNan});
  history.Add({.step = 1, .loss = kNan, .accuracy = kNan});
  history.Add({.step = 2, .loss = 4, .accuracy = kNan});
  const StepRow total = history.Total();
  EXPECT_EQ(total.loss.min, 2);
  EXPECT_EQ(total.loss.max, 4);
  EXPECT_GT(total.loss.mean, 2);
  EXPECT_LT(total.loss.mean, 4);
  EXPECT_TRUE(total.accuracy.mean != total.accuracy.mean);
}

TEST(StepHistoryDeathTest, AStepOutOfOrderIsABug) {
  StepHistory history = HistoryOf(0, 3);
  EXPECT_DEATH(history.Add({.step = 5}), "");
}

TEST(MergeRowsTest, KeepsToTheLimitInEqualParts) {
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
