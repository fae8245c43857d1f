#include "core/fetch/block_table.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "core/storage/memory_source.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/status_matchers.h"

namespace systole {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

constexpr uint64_t kSize = 1000;
constexpr int64_t kCost = 4096;  // The bytes of memory that a block of kSize bytes takes.
constexpr absl::Duration kNow = absl::ZeroDuration();
constexpr absl::Duration kTimeout = absl::Seconds(60);

class BlockTableTest : public testing::Test {
 protected:
  BlockRange Range(uint64_t block) const {
    return {.source = &source_, .offset = block * kSize, .size = kSize};
  }
  BlockWant WantOf(std::vector<uint64_t> blocks, uint64_t dataset = 0) const {
    BlockWant want = {.dataset = dataset};
    for (const uint64_t block : blocks) want.uses.push_back({.range = Range(block)});
    return want;
  }
  static std::shared_ptr<const Block> Good(const BlockRange& range) {
    return std::make_shared<const Block>(range, BlockBuffer(*AlignedBuffer::Create(kCost)));
  }
  static std::shared_ptr<const Block> Bad(const BlockRange& range) {
    return std::make_shared<const Block>(range, absl::UnavailableError("no route"));
  }
  // Reads all queued blocks, and releases them.
  static void ReadAll(BlockTable& table) {
    while (std::optional<BlockTable::Job> job = table.NextRead(kNow)) {
      const auto finished = table.Arrive(job->read, Good(job->range), BlockOrigin::kSource, kNow);
      table.End(job->read);
      ReleaseAll(table, finished);
    }
  }
  static void ReleaseAll(BlockTable& table, const std::vector<BlockTable::Finished>& finished) {
    for (const BlockTable::Finished& each : finished) Release(table, each.blocks);
  }
  static void Release(BlockTable& table, const std::vector<BlockTable::Handed>& blocks) {
    for (const BlockTable::Handed& handed : blocks) {
      if (handed.block->status().ok()) table.Release(handed);
    }
  }
  // Begins reads until none may begin.
  static std::vector<BlockTable::Job> BeginAll(BlockTable& table) {
    std::vector<BlockTable::Job> jobs;
    while (std::optional<BlockTable::Job> job = table.NextRead(kNow)) {
      jobs.push_back(*std::move(job));
    }
    return jobs;
  }

  const MemorySource source_ = MemorySource(std::string(1'000'000, 'x'), "https://host/shard-1");
};

BlockTableOptions OptionsOf(int64_t requests, int64_t blocks) {
  return {.requests = requests, .memory_bytes = blocks * kCost, .read_timeout = kTimeout};
}

TEST_F(BlockTableTest, AWantIsAdmittedAsAWholeOrNotAtAll) {
  BlockTable table(OptionsOf(8, 4));
  EXPECT_TRUE(table.Admit(WantOf({1, 2, 3})).admitted);
  const BlockTable::Admission refused = table.Admit(WantOf({4, 5}, 1));
  EXPECT_FALSE(refused.admitted);
  EXPECT_FALSE(refused.dataset_is_full);
  EXPECT_EQ(table.GetStats().memory_bytes, 3 * kCost);
  EXPECT_EQ(table.GetStats().reads_queued, 3);
  EXPECT_TRUE(table.Admit(WantOf({3, 4}, 1)).admitted);
  EXPECT_EQ(table.GetStats().memory_bytes, 4 * kCost);
}

TEST_F(BlockTableTest, TakeRoomReportsRoomOnceAfterAWantWasRefused) {
  BlockTable table(OptionsOf(8, 1));
  table.Admit(WantOf({1}));
  EXPECT_FALSE(table.TakeRoom());
  table.Admit(WantOf({2}));
  EXPECT_FALSE(table.TakeRoom());
  ReadAll(table);
  EXPECT_TRUE(table.TakeRoom());
  EXPECT_FALSE(table.TakeRoom());
  EXPECT_TRUE(table.Admit(WantOf({2})).admitted);
}

TEST_F(BlockTableTest, AWantLargerThanTheWholeMemoryIsAdmittedOnlyAlone) {
  BlockTable table(OptionsOf(8, 2));
  const BlockTable::Admission small = table.Admit(WantOf({1}));
  EXPECT_FALSE(table.Admit(WantOf({2, 3, 4})).admitted);
  table.Drop(small.want);
  EXPECT_TRUE(table.Admit(WantOf({2, 3, 4})).admitted);
  EXPECT_FALSE(table.Admit(WantOf({1})).admitted);
  ReadAll(table);
  EXPECT_TRUE(table.Admit(WantOf({1})).admitted);
  EXPECT_EQ(table.GetStats().memory_bytes, 2 * kCost);
}

TEST_F(BlockTableTest, ASteadyReadTimesOutAfterFiveTimeoutsAndItsErrorCountsTheBytes) {
  BlockTable table(OptionsOf(8, 4));
  table.Admit(WantOf({1}));
  const std::optional<BlockTable::Job> job = table.NextRead(kNow);
  for (int second = 1; second <= 300; ++second) {
    job->progress->Add(10'000);
    ASSERT_THAT(table.Look(kNow + absl::Seconds(second)), IsEmpty());
  }
  const std::vector<BlockTable::Finished> finished = table.Look(kNow + absl::Seconds(301));
  ASSERT_THAT(finished, SizeIs(1));
  EXPECT_THAT(finished[0].blocks[0].block->status(),
              StatusIs(absl::StatusCode::kUnavailable,
                       HasSubstr("at byte offset 1000: in 5m1s only 3000000 bytes have come")));
  EXPECT_EQ(table.GetStats().reads_hung, 1);
}

TEST_F(BlockTableTest, AWantDoesNotDropCachedBlocksThatItNeedsItself) {
  BlockTable table(OptionsOf(8, 2));
  table.Admit(WantOf({1, 2}));
  ReadAll(table);
  const BlockTable::Admission admission = table.Admit(WantOf({2, 3}));
  EXPECT_TRUE(admission.admitted);
  EXPECT_THAT(BeginAll(table), SizeIs(1));  // Block 3.
}

TEST_F(BlockTableTest, ALongWantFillsTheQueueOfItsDatasetAndNotOfOthers) {
  BlockTable table(OptionsOf(4, 100));
  EXPECT_TRUE(table.Admit(WantOf({0, 1, 2, 3, 4, 5, 6, 7, 8, 9})).admitted);
  const BlockTable::Admission refused = table.Admit(WantOf({10}));
  EXPECT_FALSE(refused.admitted);
  EXPECT_TRUE(refused.dataset_is_full);
  EXPECT_THAT(BeginAll(table), SizeIs(3));  // A dataset gets three of the four requests.
  EXPECT_TRUE(table.Admit(WantOf({10}, 1)).admitted);
}

TEST_F(BlockTableTest, ABlockWithAnErrorIsNotKeptAndIsReadAgain) {
  BlockTable table(OptionsOf(4, 4));
  table.Admit(WantOf({1}));
  const BlockTable::Job job = *table.NextRead(kNow);
  const auto finished = table.Arrive(job.read, Bad(job.range), BlockOrigin::kSource, kNow);
  ASSERT_THAT(finished, SizeIs(1));
  EXPECT_THAT(finished[0].blocks[0].block->status(),
              StatusIs(absl::StatusCode::kUnavailable, "no route"));
  table.End(job.read);
  EXPECT_EQ(table.GetStats().memory_bytes, 0);
  const BlockTable::Admission again = table.Admit(WantOf({1}));
  EXPECT_TRUE(again.admitted);
  EXPECT_FALSE(again.blocks.has_value());
  EXPECT_THAT(BeginAll(table), SizeIs(1));
}

TEST_F(BlockTableTest, ABlockOfNoBytesIsReadForEachWantAndNotKept) {
  BlockTable table(OptionsOf(8, 4));
  for (int round = 0; round < 2; ++round) {
    BlockWant want;
    want.uses.push_back({.range = {.source = &source_}});
    EXPECT_TRUE(table.Admit(want).admitted);
    EXPECT_EQ(table.GetStats().reads_queued, 1);
    ReadAll(table);
    EXPECT_EQ(table.GetStats().memory_bytes, 0);
    EXPECT_EQ(table.GetStats().memory_in_use_bytes, 0);
  }
}

TEST_F(BlockTableTest, AWantWaitsForAllOfItsBlocksAlsoIfOneFails) {
  BlockTable table(OptionsOf(4, 4));
  table.Admit(WantOf({1, 2}));
  const std::vector<BlockTable::Job> jobs = BeginAll(table);
  EXPECT_THAT(table.Arrive(jobs[0].read, Bad(jobs[0].range), BlockOrigin::kSource, kNow),
              IsEmpty());
  const auto finished = table.Arrive(jobs[1].read, Good(jobs[1].range), BlockOrigin::kSource, kNow);
  ASSERT_THAT(finished, SizeIs(1));
  EXPECT_THAT(finished[0].blocks[0].block->status(), testing::Not(IsOk()));
  EXPECT_THAT(finished[0].blocks[1].block->status(), IsOk());
}

TEST_F(BlockTableTest, AReadThatNobodyWantsHoldsItsMemoryUntilItEnds) {
  BlockTable table(OptionsOf(4, 4));
  const BlockTable::Admission admission = table.Admit(WantOf({1}));
  const BlockTable::Job job = *table.NextRead(kNow);
  table.Drop(admission.want);
  EXPECT_TRUE(job.flag->is_raised());
  EXPECT_EQ(table.GetStats().memory_bytes, kCost);
  EXPECT_TRUE(table.Admit(WantOf({1})).admitted);  // The dropped read is not used for this want.
  EXPECT_EQ(table.GetStats().memory_bytes, 2 * kCost);
  EXPECT_THAT(table.Arrive(job.read, Good(job.range), BlockOrigin::kSource, kNow), IsEmpty());
  table.End(job.read);
  EXPECT_EQ(table.GetStats().memory_bytes, kCost);
}

TEST_F(BlockTableTest, ABlockTimesOutAtTheSecondLookThatFindsItLate) {
  BlockTable table(OptionsOf(4, 4));
  table.Admit(WantOf({1}));
  const BlockTable::Job job = *table.NextRead(kNow);
  EXPECT_THAT(table.Look(kNow + kTimeout - absl::Nanoseconds(1)), IsEmpty());
  EXPECT_THAT(table.Look(kNow + kTimeout), IsEmpty());
  const auto finished = table.Look(kNow + kTimeout);
  ASSERT_THAT(finished, SizeIs(1));
  EXPECT_THAT(finished[0].blocks[0].block->status(),
              StatusIs(absl::StatusCode::kUnavailable,
                       HasSubstr("shard \"shard-1\", 1000 bytes at byte offset 1000")));
  EXPECT_TRUE(job.flag->is_raised());
  EXPECT_EQ(table.GetStats().reads_hung, 1);
  EXPECT_EQ(table.GetStats().memory_bytes, kCost);
  EXPECT_THAT(table.Look(kNow + 2 * kTimeout), IsEmpty());
  table.Arrive(job.read, Good(job.range), BlockOrigin::kSource, kNow);
  table.End(job.read);
  EXPECT_EQ(table.GetStats().reads_hung, 0);
  EXPECT_EQ(table.GetStats().memory_bytes, 0);
}

TEST_F(BlockTableTest, QueuedBlocksFailWhenAllReadsOfTheirDatasetHang) {
  BlockTable table(OptionsOf(4, 8));
  table.Admit(WantOf({1, 2, 3, 4, 5}));
  EXPECT_THAT(BeginAll(table), SizeIs(3));
  table.Look(kNow + kTimeout);
  const auto finished = table.Look(kNow + kTimeout);
  ASSERT_THAT(finished, SizeIs(1));
  EXPECT_THAT(finished[0].blocks[4].block->status(),
              StatusIs(absl::StatusCode::kUnavailable, HasSubstr(": not read: ")));
  // From now on, wants of this dataset fail at once. Other datasets go on.
  const BlockTable::Admission next = table.Admit(WantOf({1}));
  ASSERT_TRUE(next.blocks.has_value());
  EXPECT_THAT((*next.blocks)[0].block->status(), testing::Not(IsOk()));
  table.Admit(WantOf({1}, 1));
  EXPECT_THAT(BeginAll(table), SizeIs(1));
}

TEST_F(BlockTableTest, ReadsThatHangDoNotKeepALargeWantOut) {
  BlockTable table(OptionsOf(4, 4));
  table.Admit(WantOf({1, 2}));
  BeginAll(table);
  EXPECT_FALSE(table.Admit(WantOf({3, 4, 5}, 1)).admitted);
  table.Look(kNow + kTimeout);
  table.Look(kNow + kTimeout);
  EXPECT_TRUE(table.Admit(WantOf({3, 4, 5}, 1)).admitted);
}

class HedgeTest : public BlockTableTest {
 protected:
  // A table that knows how long reads take, and whose read of block 0 is slow.
  HedgeTest() : table_(OptionsOf(8, 100)) {
    for (uint64_t block = 1; block <= 40; ++block) {
      table_.Admit(WantOf({block}));
      ReadAll(table_);
    }
    held_ = table_.GetStats().memory_bytes;
    table_.Admit(WantOf({0}));
    first_ = *table_.NextRead(kNow);
    EXPECT_FALSE(table_.CanBegin());
    table_.Look(kNow + absl::Milliseconds(100));
    EXPECT_TRUE(table_.CanBegin());
    second_ = *table_.NextRead(kNow + absl::Milliseconds(100));
    EXPECT_FALSE(table_.CanBegin());
  }

  BlockTable table_;
  int64_t held_ = 0;
  BlockTable::Job first_;
  BlockTable::Job second_;
};

TEST_F(HedgeTest, ASlowReadGetsASecondReadWithItsOwnMemory) {
  EXPECT_TRUE(second_.is_second);
  EXPECT_EQ(second_.range, first_.range);
  EXPECT_EQ(table_.GetStats().reads_hedged, 1);
  EXPECT_EQ(table_.GetStats().reads_under_way, 2);
  EXPECT_EQ(table_.GetStats().memory_bytes, held_ + 2 * kCost);
}

TEST_F(HedgeTest, TheFirstReadIsInterruptedIfTheSecondArrivesEarlier) {
  EXPECT_THAT(table_.Arrive(second_.read, Good(second_.range), BlockOrigin::kSource, kNow),
              SizeIs(1));
  EXPECT_TRUE(first_.flag->is_raised());
  table_.End(second_.read);
  EXPECT_EQ(table_.GetStats().memory_bytes, held_ + 2 * kCost);
  EXPECT_THAT(table_.Arrive(first_.read, Good(first_.range), BlockOrigin::kSource, kNow),
              IsEmpty());
  table_.End(first_.read);
  EXPECT_EQ(table_.GetStats().memory_bytes, held_ + kCost);
}

TEST_F(HedgeTest, TheSecondReadIsInterruptedIfTheFirstArrivesEarlier) {
  EXPECT_THAT(table_.Arrive(first_.read, Good(first_.range), BlockOrigin::kSource, kNow),
              SizeIs(1));
  EXPECT_TRUE(second_.flag->is_raised());
  table_.End(first_.read);
  EXPECT_EQ(table_.GetStats().memory_bytes, held_ + 2 * kCost);
  table_.Arrive(second_.read, Bad(second_.range), BlockOrigin::kSource, kNow);
  table_.End(second_.read);
  EXPECT_EQ(table_.GetStats().memory_bytes, held_ + kCost);
}

TEST_F(HedgeTest, IfTheFirstReadFailsTheSecondDeliversTheBlock) {
  EXPECT_THAT(table_.Arrive(first_.read, Bad(first_.range), BlockOrigin::kSource, kNow), IsEmpty());
  table_.End(first_.read);
  EXPECT_EQ(table_.GetStats().memory_bytes, held_ + kCost);
  EXPECT_THAT(table_.Arrive(second_.read, Good(second_.range), BlockOrigin::kSource, kNow),
              SizeIs(1));
  table_.End(second_.read);
  EXPECT_EQ(table_.GetStats().memory_bytes, held_ + kCost);
}

}  // namespace
}  // namespace systole
