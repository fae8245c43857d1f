#include "core/fetch/dataset_parts.h"

#include <cstdint>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace systole {
namespace {

constexpr uint64_t kOne = 1;
constexpr uint64_t kOther = 2;

// Begins as many reads of the dataset as may begin.
int64_t BeginAll(DatasetParts& parts, uint64_t dataset) {
  int64_t begun = 0;
  while (parts.MayBegin(dataset)) {
    parts.Begin(dataset, 1);
    ++begun;
  }
  return begun;
}

TEST(DatasetPartsTest, EachDatasetGetsThreeQuartersOfTheRequestsThatOthersDoNotHold) {
  DatasetParts parts(64, 1 << 20);
  EXPECT_EQ(BeginAll(parts, 1), 48);
  EXPECT_EQ(BeginAll(parts, 2), 12);
  EXPECT_EQ(BeginAll(parts, 3), 3);
  EXPECT_EQ(BeginAll(parts, 4), 1);
  EXPECT_EQ(BeginAll(parts, 5), 0);
}

TEST(DatasetPartsTest, ADatasetMayHoldTheOnlyRequest) {
  DatasetParts parts(1, 1 << 20);
  EXPECT_EQ(BeginAll(parts, kOne), 1);
}

TEST(DatasetPartsTest, TheQueueIsSharedLikeTheRequests) {
  DatasetParts parts(8, 1 << 20);
  EXPECT_TRUE(parts.MayQueue(kOne, 100, 1));  // Alone, a want may have any length.
  EXPECT_EQ(BeginAll(parts, kOne), 6);
  for (int i = 0; i < 6; ++i) parts.Queue(kOne, 1);
  EXPECT_FALSE(parts.MayQueue(kOne, 1, 1));
  parts.Queue(kOther, 1);
  EXPECT_TRUE(parts.MayQueue(kOther, 1, 1));
  // The other dataset can begin one read at once, and queue one more.
  EXPECT_FALSE(parts.MayQueue(kOther, 2, 1));
}

TEST(DatasetPartsTest, OneDatasetLeavesMemoryToOthers) {
  DatasetParts parts(8, 1000);
  // A dataset that holds no memory may queue a want of any size. BlockTable checks the memory.
  EXPECT_TRUE(parts.MayQueue(kOne, 1, 2000));
  parts.Queue(kOne, 500);
  EXPECT_TRUE(parts.MayQueue(kOne, 1, 250));
  EXPECT_FALSE(parts.MayQueue(kOne, 1, 251));
  parts.Queue(kOther, 300);
  EXPECT_FALSE(parts.MayQueue(kOther, 1, 76));
  EXPECT_TRUE(parts.MayQueue(kOther, 1, 75));
}

TEST(DatasetPartsTest, AllHangIsTrueOnlyOfTheDatasetWhoseReadsAllHang) {
  DatasetParts parts(4, 1000);
  EXPECT_EQ(BeginAll(parts, kOne), 3);
  for (int i = 0; i < 3; ++i) {
    EXPECT_FALSE(parts.AllHang(kOne));
    parts.Hang(kOne, 1);
  }
  EXPECT_TRUE(parts.AllHang(kOne));
  EXPECT_FALSE(parts.AllHang(kOther));
  parts.Arrive(kOne, 1, true);
  parts.End(kOne, true);
  EXPECT_FALSE(parts.AllHang(kOne));
}

TEST(DatasetPartsTest, AllHangIsTrueOfEveryDatasetWhenAllRequestsHang) {
  DatasetParts parts(1, 1000);
  parts.Begin(kOne, 1);
  parts.Hang(kOne, 1);
  EXPECT_TRUE(parts.AllHang(kOther));
}

TEST(DatasetPartsTest, AllHangIsTrueWhenHangingReadsHoldTheDatasetsMemory) {
  DatasetParts parts(8, 1000);
  parts.Begin(kOne, 700);
  parts.Hang(kOne, 700);
  EXPECT_FALSE(parts.AllHang(kOne));
  EXPECT_TRUE(parts.MayQueue(kOne, 1, 200)) << "beside reads that hang a want may have any size";
  parts.Begin(kOne, 50);
  parts.Hang(kOne, 50);
  EXPECT_TRUE(parts.AllHang(kOne));
}

TEST(DatasetPartsTest, RunningReadsOfOtherDatasetsDoNotMakeAllHangTrue) {
  DatasetParts parts(8, 1000);
  parts.Begin(kOne, 10);
  parts.Hang(kOne, 10);
  for (int i = 0; i < 6; ++i) parts.Begin(kOther, 150);
  EXPECT_FALSE(parts.AllHang(kOne));
}

TEST(DatasetPartsTest, ReadsThatEndedOrLeftTheQueueAreNoLongerCounted) {
  DatasetParts parts(4, 1000);
  parts.Queue(kOne, 10);
  parts.Queue(kOne, 10);
  parts.Unqueue(kOne, 10);
  parts.BeginQueued(kOne);
  EXPECT_EQ(parts.queued(), 0);
  EXPECT_EQ(parts.under_way(), 1);
  parts.Arrive(kOne, 10, false);
  parts.End(kOne, false);
  EXPECT_EQ(parts.under_way(), 0);
  EXPECT_TRUE(parts.MayQueue(kOther, 1, 1000));
}

}  // namespace
}  // namespace systole
