#include "client/emulator/timing/timing_books.h"

#include "gtest/gtest.h"

namespace systole::emulator {
namespace {

StepRecord Record(int64_t step, absl::Duration wait) {
  return {.step = step, .wait = wait, .compute = absl::Milliseconds(1), .infeed_stall = {wait}};
}

TEST(TimingBooksTest, TheWaitForTheFirstStepIsKeptSeparate) {
  TimingBooks books;
  books.Add(Record(0, absl::Seconds(3)));
  books.Add(Record(1, absl::Milliseconds(1)));
  books.Add(Record(2, absl::ZeroDuration()));
  EXPECT_EQ(books.steps(), 3);
  EXPECT_EQ(books.first_wait(), absl::Seconds(3));
  EXPECT_EQ(books.waits().count(), 2);
  EXPECT_EQ(books.waits().max(), absl::Milliseconds(1));
  EXPECT_EQ(books.utilisation().steps, 2);
}

TEST(TimingBooksTest, AnUnfinishedWaitCountsOnceAStepHasArrived) {
  TimingBooks books;
  books.AddOpenWait(absl::Seconds(9));  // Nothing has come yet.
  EXPECT_EQ(books.waits().count(), 0);
  books.Add(Record(0, absl::Seconds(3)));
  books.AddOpenWait(absl::Milliseconds(4));
  EXPECT_EQ(books.waits().max(), absl::Milliseconds(4));
  EXPECT_EQ(books.utilisation().open_wait, absl::Milliseconds(4));
  EXPECT_EQ(books.steps(), 1);
}

}  // namespace
}  // namespace systole::emulator
