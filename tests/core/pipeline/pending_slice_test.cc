#include "core/pipeline/pending_slice.h"

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

PendingSlice MakeSlice(int64_t examples, int64_t records) {
  absl::StatusOr<AlignedBuffer> buffer = AlignedBuffer::Create(examples);
  EXPECT_THAT(buffer, IsOk());
  return PendingSlice(/*step=*/3, /*core=*/1, examples, records, *std::move(buffer));
}

TEST(PendingSliceTest, TasksCoverEachExampleOnceInOrder) {
  PendingSlice slice = MakeSlice(20, 20);
  std::vector<ExampleRange> tasks;
  while (slice.has_more()) tasks.push_back(slice.Take(kSize));
  EXPECT_THAT(tasks, ElementsAre(ExampleRange{0, 8}, ExampleRange{8, 16}, ExampleRange{16, 20}));
}

TEST(PendingSliceTest, PaddingComesInLargerTasksThanRecords) {
  PendingSlice slice = MakeSlice(250, 10);
  std::vector<ExampleRange> tasks;
  while (slice.has_more()) tasks.push_back(slice.Take(kSize));
  EXPECT_THAT(tasks, ElementsAre(ExampleRange{0, 8}, ExampleRange{8, 10}, ExampleRange{10, 110},
                                 ExampleRange{110, 210}, ExampleRange{210, 250}));
}

TEST(PendingSliceTest, IsDoneWhenAllThatWasTakenIs) {
  PendingSlice slice = MakeSlice(16, 16);
  const ExampleRange first = slice.Take(kSize);
  const ExampleRange second = slice.Take(kSize);
  slice.Finish(second, absl::OkStatus());
  EXPECT_FALSE(slice.is_done());
  slice.Finish(first, absl::OkStatus());
  EXPECT_TRUE(slice.is_done());
  EXPECT_THAT(slice.error(), IsOk());
  EXPECT_EQ(slice.TakeBuffer().size(), 16);
}

TEST(PendingSliceTest, TheLowestErrorStaysAndNothingMoreIsHandedOut) {
  PendingSlice slice = MakeSlice(100, 100);
  const ExampleRange first = slice.Take(kSize);
  const ExampleRange second = slice.Take(kSize);
  slice.Finish(second, absl::DataLossError("second"));
  EXPECT_FALSE(slice.has_more());
  EXPECT_FALSE(slice.is_done());  // The first may still fail.
  slice.Finish(first, absl::DataLossError("first"));
  EXPECT_TRUE(slice.is_done());
  EXPECT_THAT(slice.error(), StatusIs(absl::StatusCode::kDataLoss, HasSubstr("first")));
}

TEST(PendingSliceTest, ADroppedSliceIsDoneWhenItsTasksAre) {
  PendingSlice slice = MakeSlice(100, 100);
  const ExampleRange task = slice.Take(kSize);
  slice.Drop();
  EXPECT_TRUE(slice.is_dropped());
  EXPECT_FALSE(slice.has_more());
  EXPECT_FALSE(slice.is_done());  // A thread writes to its memory.
  slice.Finish(task, absl::OkStatus());
  EXPECT_TRUE(slice.is_done());
}

}  // namespace
}  // namespace systole
