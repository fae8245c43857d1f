#include "core/order/selection.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <set>
#include <vector>

#include "core/order/interleave.h"
#include "core/order/order.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/status_matchers.h"

namespace systole {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<int64_t> Selected(const std::vector<int64_t>& records_per_shard,
                              const std::vector<SelectionStep>& steps) {
  const absl::StatusOr<Selection> selection = Selection::Create(records_per_shard, steps);
  EXPECT_THAT(selection, IsOk());
  std::vector<int64_t> records;
  for (int64_t i = 0; i < selection->num_records(); ++i) records.push_back(selection->RecordAt(i));
  return records;
}

TEST(SelectionTest, StepsAreAppliedOneAfterTheOther) {
  EXPECT_THAT(Selected({10}, {}), ElementsAre(0, 1, 2, 3, 4, 5, 6, 7, 8, 9));
  EXPECT_THAT(Selected({10}, {SkipRecords{7}}), ElementsAre(7, 8, 9));
  EXPECT_THAT(Selected({10}, {TakeRecords{3}}), ElementsAre(0, 1, 2));
  EXPECT_THAT(Selected({10}, {TakeRecords{99}, SkipRecords{8}}), ElementsAre(8, 9));
  EXPECT_THAT(Selected({10}, {ShardRecords{3, 1}}), ElementsAre(1, 4, 7));
  EXPECT_THAT(
      Selected({4, 0, 6}, {SkipRecords{1}, ShardRecords{2, 1}, TakeRecords{3}, ShardRecords{2, 0}}),
      ElementsAre(2, 6));
}

TEST(SelectionTest, ShardFilesSelectsWholeFiles) {
  EXPECT_THAT(Selected({2, 3, 1, 2}, {ShardFiles{2, 1}}), ElementsAre(2, 3, 4, 6, 7));
  EXPECT_THAT(Selected({2, 3, 1, 2}, {ShardFiles{2, 1}, SkipRecords{2}}), ElementsAre(4, 6, 7));
}

TEST(SelectionTest, FilesCanBeInterleaved) {
  EXPECT_THAT(Selected({3, 2, 2}, {InterleaveFiles{2, 1}}), ElementsAre(0, 3, 1, 4, 2, 5, 6));
  EXPECT_THAT(Selected({3, 9, 2}, {ShardFiles{2, 0}, InterleaveFiles{2, 1}, TakeRecords{4}}),
              ElementsAre(0, 12, 1, 13));
}

TEST(SelectionTest, ShardRecordsAndShardFilesCoverEachRecordOnce) {
  const std::vector<int64_t> shards = {5, 0, 11, 3, 8};
  for (const bool files : {false, true}) {
    std::multiset<int64_t> all;
    for (int64_t index = 0; index < 3; ++index) {
      const SelectionStep part =
          files ? SelectionStep(ShardFiles{3, index}) : SelectionStep(ShardRecords{3, index});
      for (const int64_t record : Selected(shards, {part})) all.insert(record);
    }
    EXPECT_EQ(all.size(), 27u);
    EXPECT_EQ(std::set<int64_t>(all.begin(), all.end()).size(), 27u);
  }
}

// The list of the positions i below `num_positions` for which i * 7 % 5 < 3.
ListedRecords Some(int64_t num_positions) {
  std::vector<uint64_t> words(static_cast<size_t>(num_positions / 64 + 1));
  for (int64_t i = 0; i < num_positions; ++i) {
    if (i * 7 % 5 < 3) words[static_cast<size_t>(i / 64)] |= uint64_t{1} << (i % 64);
  }
  return {std::make_shared<const RecordList>(words, num_positions)};
}

TEST(SelectionTest, AListSelectsFromTheRecordsThatEarlierStepsLeave) {
  const std::vector<int64_t> shards = {70, 0, 120, 33};
  const std::vector<std::vector<SelectionStep>> before = {
      {},
      {SkipRecords{11}},
      {ShardFiles{2, 0}, InterleaveFiles{2, 3}, TakeRecords{90}},
      {ShardRecords{3, 1}, SkipRecords{2}}};
  const std::vector<std::vector<SelectionStep>> after = {
      {}, {SkipRecords{5}, ShardRecords{2, 1}}, {TakeRecords{7}}};
  for (const std::vector<SelectionStep>& first : before) {
    for (const std::vector<SelectionStep>& last : after) {
      std::vector<int64_t> wanted;
      const std::vector<int64_t> left = Selected(shards, first);
      for (size_t i = 0; i < left.size(); ++i) {
        if (i * 7 % 5 < 3) wanted.push_back(left[i]);
      }
      std::vector<SelectionStep> steps = first;
      steps.emplace_back(Some(static_cast<int64_t>(left.size())));
      // A second list chooses among the records that the first list has left.
      std::vector<int64_t> twice;
      for (size_t i = 0; i < wanted.size(); ++i) {
        if (i * 7 % 5 < 3) twice.push_back(wanted[i]);
      }
      steps.emplace_back(Some(static_cast<int64_t>(wanted.size())));
      EXPECT_EQ(Selected(shards, steps), twice);
      steps.insert(steps.end(), last.begin(), last.end());
      const std::vector<int64_t> chosen = Selected({static_cast<int64_t>(twice.size())}, last);
      wanted.clear();
      for (const int64_t i : chosen) wanted.push_back(twice[static_cast<size_t>(i)]);
      EXPECT_EQ(Selected(shards, steps), wanted);
    }
  }
}

TEST(SelectionTest, ThePositionsOfAListCountInTheFingerprint) {
  const auto fingerprint = [](uint64_t word) {
    const ListedRecords step = {
        std::make_shared<const RecordList>(std::vector<uint64_t>{word}, 10)};
    return Selection::Create({10}, {step})->fingerprint();
  };
  EXPECT_EQ(fingerprint(0b11), fingerprint(0b11));
  EXPECT_NE(fingerprint(0b11), fingerprint(0b101));
}

TEST(SelectionTest, AnUnknownListStillGivesTheNumberOfRecords) {
  const ListedRecords step = {
      std::make_shared<const RecordList>(RecordList::OfUnknown(6, 10, /*hash=*/5))};
  const absl::StatusOr<Selection> selection = Selection::Create({10}, {step, ShardRecords{2, 1}});
  ASSERT_THAT(selection, IsOk());
  EXPECT_EQ(selection->num_records(), 3);
  EXPECT_EQ(selection->RecordAt(2), kUnknownRecord);
  const SelectedRecords member = {
      .begin = 100, .num_records = 10, .selection = std::make_shared<const Selection>(*selection)};
  EXPECT_EQ(member.RecordAt(0), kUnknownRecord);
}

TEST(SelectionTest, InvalidStepsAreRefusedWithAReason) {
  const auto refused = [](const std::vector<SelectionStep>& steps, const std::string& what) {
    SCOPED_TRACE(what);
    EXPECT_THAT(Selection::Create({3, 4}, steps),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(what)));
  };
  refused({SkipRecords{-1}}, "select[0] skip is -1");
  refused({SkipRecords{0}, TakeRecords{-3}}, "select[1] take is -3");
  refused({TakeRecords{0}}, "select[0] leaves no record");
  refused({SkipRecords{7}}, "select[0] leaves no record");
  refused({ShardRecords{0, 0}}, "count: 0");
  refused({ShardRecords{2, 2}}, "index: 2");
  refused({ShardRecords{2, -1}}, "index: -1");
  refused({ShardRecords{9, 8}}, "leaves no record");
  refused({{ListedRecords{std::make_shared<const RecordList>(std::vector<uint64_t>{0}, 7)}}},
          "select[0] leaves no record; none of the records meets the condition");
  refused({ShardFiles{3, 0}}, "only 2 shards; want at least one for each, or policy: DATA");
  refused({SkipRecords{1}, ShardFiles{2, 0}}, "select[1] takes whole shards");
  refused({InterleaveFiles{2, 1}, ShardFiles{2, 0}}, "select[1] takes whole shards");
  refused({InterleaveFiles{0, 1}}, "cycle_length is 0");
  refused({InterleaveFiles{kMaxCycleLength + 1, 1}}, "cycle_length is 1025");
  refused({InterleaveFiles{2, 0}}, "block_length is 0");
  refused(std::vector<SelectionStep>(kMaxSelectionSteps + 1, SkipRecords{0}), "33 steps");
}

TEST(SelectionTest, HugeStridesStayInRange) {
  constexpr int64_t kMost = int64_t{1} << 62;
  const std::vector<SelectionStep> steps = {ShardRecords{kMost, kMost - 1}, ShardRecords{5, 0}};
  EXPECT_THAT(Selected({kMost}, steps), ElementsAre(kMost - 1));
  EXPECT_THAT(Selected({kMost}, {ShardRecords{kMost / 2, 3}, ShardRecords{2, 1}}),
              ElementsAre(kMost / 2 + 3));
}

TEST(SelectionTest, AnOrderHasTheSelectedRecordsAndAFingerprintPerSelection) {
  OrderSpec spec = {.seed = 3, .num_records = 4, .global_batch = 2};
  const uint64_t all = Order::Create(spec)->Fingerprint(1);
  std::set<uint64_t> fingerprints = {all};
  for (const std::vector<SelectionStep>& steps : {std::vector<SelectionStep>{SkipRecords{6}},
                                                  {TakeRecords{4}},
                                                  {ShardRecords{3, 0}},
                                                  {ShardRecords{3, 0}, SkipRecords{0}}}) {
    absl::StatusOr<Selection> selection = Selection::Create({10}, steps);
    ASSERT_THAT(selection, IsOk());
    ASSERT_EQ(selection->num_records(), 4);
    spec.selection = std::make_shared<const Selection>(*std::move(selection));
    const absl::StatusOr<Order> order = Order::Create(spec);
    ASSERT_THAT(order, IsOk());
    std::set<int64_t> seen;
    for (int64_t position = 0; position < 4; ++position) {
      seen.insert(order->RecordAt(0, position));
    }
    std::set<int64_t> wanted;
    for (int64_t i = 0; i < 4; ++i) wanted.insert(spec.selection->RecordAt(i));
    EXPECT_EQ(seen, wanted);
    EXPECT_TRUE(fingerprints.insert(order->Fingerprint(1)).second);
  }
}

}  // namespace
}  // namespace systole
