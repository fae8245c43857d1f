#include "client/emulator/timing/timing_books.h"

#include <vector>

#include "gtest/gtest.h"

namespace systole::emulator {
namespace {

StepRecord Record(int64_t step, absl::Duration wait, int cores = 1) {
  return {.step = step,
          .wait = wait,
          .compute = absl::Milliseconds(1),
          .infeed_stall = std::vector<absl::Duration>(static_cast<size_t>(cores), wait)};
}

TEST(TimingBooksTest, TheFirstStepsWaitIsApart) {
  TimingBooks books;
  books.Add(Record(0, absl::Seconds(3)));
  books.Add(Record(1, absl::Milliseconds(1)));
  books.Add(Record(2, absl::ZeroDuration()));
  EXPECT_EQ(books.steps(), 3);
  EXPECT_EQ(books.first_wait(), absl::Seconds(3));
  EXPECT_EQ(books.waits().count(), 2);
  EXPECT_EQ(books.waits().max(), absl::Milliseconds(1));
  EXPECT_EQ(books.utilisation().steps, 2);
  EXPECT_EQ(books.records().size(), 3u);
  EXPECT_EQ(books.record_stride(), 1);
}

TEST(TimingBooksTest, ALongRunKeepsEveryNthStepAndSumsThemAll) {
  const int cores = 10000;
  const int64_t most = MaxStepRecords(cores);
  ASSERT_EQ(most, 100);
  TimingBooks books;
  const int64_t steps = 5 * most + 3;
  for (int64_t step = 0; step < steps; ++step)
    books.Add(Record(step, absl::Milliseconds(1), cores));
  EXPECT_EQ(books.steps(), steps);
  EXPECT_EQ(books.utilisation().steps, steps - 1);
  EXPECT_EQ(books.utilisation().au, 0.5);
  EXPECT_EQ(books.record_stride(), 8);  // 503 steps: 101 by 4, 63 by 8.
  ASSERT_EQ(books.records().size(), 63u);
  for (size_t i = 0; i < books.records().size(); ++i) {
    EXPECT_EQ(books.records()[i].step, static_cast<int64_t>(8 * i));
    EXPECT_EQ(books.records()[i].infeed_stall.size(), size_t{cores});
  }
}

TEST(TimingBooksTest, MemoryIsBoundedForAnyNumberOfCores) {
  EXPECT_EQ(MaxStepRecords(1), 100000);
  EXPECT_EQ(MaxStepRecords(8), 100000);
  EXPECT_EQ(MaxStepRecords(2048), 488);
  EXPECT_EQ(MaxStepRecords(65536), 15);
}

}  // namespace
}  // namespace systole::emulator
