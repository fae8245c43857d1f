#include "core/engine/pending_slice.h"

#include <cstdint>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "core/memory/aligned_buffer.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/status_matchers.h"

namespace systole {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr TaskSize kSize = {.records = 8, .padding = 100};

PendingSlice MakeSlice(int64_t examples, int64_t records, bool reads_ahead = false) {
  absl::StatusOr<AlignedBuffer> buffer = AlignedBuffer::Create(examples);
  EXPECT_THAT(buffer, IsOk());
  return PendingSlice(/*step=*/3, /*core=*/1, examples, records, reads_ahead, *std::move(buffer));
}

ExampleRun Failed(ExampleRun run, absl::Status error) {
  run.error.Add(run.examples.begin, std::move(error));
  return run;
}

TEST(PendingSliceTest, TasksCoverEachExampleOnceInOrder) {
  PendingSlice slice = MakeSlice(20, 20);
  std::vector<ExampleRange> tasks;
  while (slice.has_more()) tasks.push_back(slice.Take(kSize).examples);
  EXPECT_THAT(tasks, ElementsAre(ExampleRange{0, 8}, ExampleRange{8, 16}, ExampleRange{16, 20}));
}

TEST(PendingSliceTest, PaddingComesInLargerTasksThanRecords) {
  PendingSlice slice = MakeSlice(250, 10);
  std::vector<ExampleRange> tasks;
  while (slice.has_more()) tasks.push_back(slice.Take(kSize).examples);
  EXPECT_THAT(tasks, ElementsAre(ExampleRange{0, 8}, ExampleRange{8, 10}, ExampleRange{10, 110},
                                 ExampleRange{110, 210}, ExampleRange{210, 250}));
}

TEST(PendingSliceTest, ReadAheadRecordsWaitForTheirReadsButPaddingDoesNot) {
  PendingSlice slice = MakeSlice(20, 10, /*reads_ahead=*/true);
  EXPECT_TRUE(slice.has_unread());
  EXPECT_FALSE(slice.has_more());
  ExampleRun first = slice.TakeToRead(kSize);
  const ExampleRun second = slice.TakeToRead(kSize);
  EXPECT_EQ(first.examples, (ExampleRange{0, 8}));
  EXPECT_EQ(second.examples, (ExampleRange{8, 10}));
  EXPECT_FALSE(slice.has_unread());
  EXPECT_TRUE(slice.has_more());
  const ExampleRun padding = slice.Take(kSize);
  EXPECT_EQ(padding.examples, (ExampleRange{10, 20}));
  EXPECT_FALSE(slice.has_more());
  slice.Finish(padding);
  slice.Return(second);
  EXPECT_EQ(slice.Take(kSize).examples, second.examples);
  slice.Finish(second);
  EXPECT_FALSE(slice.is_done());
  slice.Return(std::move(first));
  slice.Finish(slice.Take(kSize));
  EXPECT_TRUE(slice.is_done());
}

TEST(PendingSliceTest, ADroppedSliceIsDoneWhenItsReadsReturn) {
  PendingSlice slice = MakeSlice(20, 20, /*reads_ahead=*/true);
  const ExampleRun run = slice.TakeToRead(kSize);
  slice.Drop();
  EXPECT_FALSE(slice.has_unread());
  EXPECT_FALSE(slice.is_done());
  slice.Return(run);
  EXPECT_FALSE(slice.has_more());
  EXPECT_TRUE(slice.is_done());
}

TEST(PendingSliceTest, AfterAnErrorNothingMoreIsRead) {
  PendingSlice slice = MakeSlice(100, 100, /*reads_ahead=*/true);
  slice.Return(slice.TakeToRead(kSize));
  slice.Finish(Failed(slice.Take(kSize), absl::DataLossError("bad")));
  EXPECT_FALSE(slice.has_unread());
  EXPECT_TRUE(slice.is_done());
}

TEST(PendingSliceTest, ASliceIsDoneWhenAllTakenTasksAreFinished) {
  PendingSlice slice = MakeSlice(16, 16);
  const ExampleRun first = slice.Take(kSize);
  const ExampleRun second = slice.Take(kSize);
  slice.Finish(second);
  EXPECT_FALSE(slice.is_done());
  slice.Finish(first);
  EXPECT_TRUE(slice.is_done());
  EXPECT_THAT(slice.error(), IsOk());
  EXPECT_EQ(slice.TakeBuffer().size(), 16);
}

TEST(PendingSliceTest, AfterAnErrorNoTaskIsTakenAndTheLowestErrorWins) {
  PendingSlice slice = MakeSlice(100, 100);
  const ExampleRun first = slice.Take(kSize);
  const ExampleRun second = slice.Take(kSize);
  slice.Finish(Failed(second, absl::DataLossError("second")));
  EXPECT_FALSE(slice.has_more());
  EXPECT_FALSE(slice.is_done());  // The first task may still fail.
  slice.Finish(Failed(first, absl::DataLossError("first")));
  EXPECT_TRUE(slice.is_done());
  EXPECT_THAT(slice.error(), StatusIs(absl::StatusCode::kDataLoss, HasSubstr("first")));
}

TEST(PendingSliceTest, ADroppedSliceIsDoneWhenItsRunningTasksFinish) {
  PendingSlice slice = MakeSlice(100, 100);
  const ExampleRun task = slice.Take(kSize);
  slice.Drop();
  EXPECT_TRUE(slice.is_dropped());
  EXPECT_FALSE(slice.has_more());
  EXPECT_FALSE(slice.is_done());  // A thread still writes to the slice.
  slice.Finish(task);
  EXPECT_TRUE(slice.is_done());
}

TEST(PendingSliceTest, ReturnedTasksComeFirstAndKeepTheirProgress) {
  PendingSlice slice = MakeSlice(100, 100);
  const ExampleRun first = slice.Take(kSize);
  ExampleRun second = slice.Take(kSize);
  second.done = 3;
  slice.Return(second);
  slice.Return(first);
  EXPECT_EQ(slice.num_returned(), 2);
  EXPECT_EQ(slice.Take(kSize).examples, (ExampleRange{0, 8}));
  const ExampleRun again = slice.Take(kSize);
  EXPECT_EQ(again.examples, (ExampleRange{8, 16}));
  EXPECT_EQ(again.done, 3);
  EXPECT_EQ(slice.Take(kSize).examples, (ExampleRange{16, 24}));
}

TEST(PendingSliceTest, ASliceIsNotDoneWhileAReturnedTaskIsLeft) {
  PendingSlice slice = MakeSlice(8, 8);
  const ExampleRun run = slice.Take(kSize);
  EXPECT_FALSE(slice.has_more());
  slice.Return(run);
  EXPECT_TRUE(slice.has_more());
  EXPECT_FALSE(slice.is_done());
  slice.Finish(slice.Take(kSize));
  EXPECT_TRUE(slice.is_done());
}

TEST(PendingSliceTest, ReturnedTasksBehindAnErrorAreNotMade) {
  PendingSlice slice = MakeSlice(24, 24);
  const ExampleRun first = slice.Take(kSize);
  const ExampleRun second = slice.Take(kSize);
  const ExampleRun third = slice.Take(kSize);
  slice.Return(first);
  slice.Return(third);
  slice.Finish(Failed(second, absl::DataLossError("second")));
  // Only the returned run before the error is made again. If this run fails, too, its error becomes
  // the slice's error.
  EXPECT_EQ(slice.num_returned(), 1);
  const ExampleRun again = slice.Take(kSize);
  EXPECT_EQ(again.examples, (ExampleRange{0, 8}));
  slice.Finish(Failed(again, absl::DataLossError("first")));
  EXPECT_TRUE(slice.is_done());
  EXPECT_THAT(slice.error(), StatusIs(absl::StatusCode::kDataLoss, HasSubstr("first")));
}

TEST(PendingSliceTest, ADroppedSliceSignalsItsThreadsAndDiscardsReturnedTasks) {
  PendingSlice slice = MakeSlice(100, 100);
  const ExampleRun running = slice.Take(kSize);
  slice.Return(slice.Take(kSize));
  EXPECT_FALSE(slice.unwanted().is_raised());
  slice.Drop();
  EXPECT_TRUE(slice.unwanted().is_raised());
  EXPECT_FALSE(slice.has_more());
  slice.Return(running);
  EXPECT_FALSE(slice.has_more());
  EXPECT_TRUE(slice.is_done());
}

}  // namespace
}  // namespace systole
