#include "core/record/zip/zip_shards.h"

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/example/example_parser.h"
#include "core/memory/aligned_buffer.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/core/record/zip/zipped.h"
#include "tests/status_matchers.h"

namespace systole {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

// The numbers of both members in all records.
std::vector<std::pair<int64_t, int64_t>> NumbersIn(const Sources& stretches) {
  std::vector<std::pair<int64_t, int64_t>> numbers;
  AlignedBuffer scratch;
  for (const auto& stretch : stretches) {
    for (int64_t i = 0; i < stretch->num_records(); ++i) {
      const auto record = stretch->ReadRecord(i, scratch);
      EXPECT_THAT(record, IsOk());
      const auto example = ExampleView::Parse(*record, stretch->examples());
      EXPECT_THAT(example, IsOk());
      std::vector<int64_t> a(1), b(1);
      EXPECT_THAT(example->Find("number").CopyInt64s(absl::MakeSpan(a)), IsOk());
      EXPECT_THAT(example->Find("b/number").CopyInt64s(absl::MakeSpan(b)), IsOk());
      numbers.emplace_back(a[0], b[0]);
    }
  }
  return numbers;
}

std::vector<int64_t> SizesOf(const Sources& stretches) {
  std::vector<int64_t> sizes;
  for (const auto& stretch : stretches) sizes.push_back(stretch->num_records());
  return sizes;
}

// All ways to cut `records` records into shards.
std::vector<std::vector<int64_t>> Shardings(int64_t records) {
  if (records == 0) return {{}};
  std::vector<std::vector<int64_t>> all;
  for (int64_t first = 1; first <= records; ++first) {
    for (std::vector<int64_t> rest : Shardings(records - first)) {
      rest.insert(rest.begin(), first);
      all.push_back(std::move(rest));
    }
  }
  return all;
}

TEST(ZippedShardsTest, AnyTwoShardingsGiveTheSameRecords) {
  constexpr int64_t kRecords = 6;
  std::vector<std::pair<int64_t, int64_t>> want;
  for (int64_t i = 0; i < kRecords; ++i) want.emplace_back(i, 100 + i);
  for (const std::vector<int64_t>& a : Shardings(kRecords)) {
    for (const std::vector<int64_t>& b : Shardings(kRecords)) {
      const Sources zipped =
          Zipped({NumberedShards(a, 0, "a"), NumberedShards(b, 100, "b")}, {"", "b/"});
      EXPECT_EQ(NumbersIn(zipped), want);
      EXPECT_LT(zipped.size(), a.size() + b.size());
    }
  }
}

TEST(ZippedShardsTest, AStretchEndsWhereAnyMemberChangesItsShard) {
  const Sources zipped =
      Zipped({NumberedShards({4, 0, 6}, 0, "a"), NumberedShards({0, 7, 1, 0, 2, 0}, 100, "b")},
             {"", "b/"});
  EXPECT_THAT(SizesOf(zipped), ElementsAre(4, 3, 1, 2));
}

TEST(ZippedShardsTest, StretchesHaveSoManyPartsAndNoMore) {
  const Sources a = NumberedShards({4, 6}, 0, "a");
  const Sources b = NumberedShards({3, 3, 4}, 100, "b");
  const auto names = std::make_shared<const ZipNames>(std::vector<ZipNamesOfMember>(
      {{.dataset = "a", .prefix = ""}, {.dataset = "b", .prefix = "b/"}}));
  // The stretches end at records 3, 4, 6 and 10.
  EXPECT_THAT(ZippedShards({a, b}, names, /*max_parts=*/8), IsOkAndHolds(SizeIs(4)));
  EXPECT_THAT(ZippedShards({a, b}, names, /*max_parts=*/7),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("have 2, 3 shards"), HasSubstr("more than 3 stretches"),
                             HasSubstr("pack the datasets into fewer shards"))));
}

TEST(ZippedShardsTest, TheHashChangesWithContentRangePrefixAndOrderAlone) {
  const auto hash = [](const Sources& a, const Sources& b, const std::string& prefix) {
    return Zipped({a, b}, {"", prefix}).front()->content_hash();
  };
  const Sources a = NumberedShards({5}, 0, "a");
  const Sources b = NumberedShards({5}, 100, "b");
  const uint64_t same = hash(a, b, "b/");
  EXPECT_EQ(hash(NumberedShards({5}, 0, "other"), b, "b/"), same);
  EXPECT_NE(hash(a, b, "c/"), same);
  EXPECT_NE(hash(b, a, "b/"), same);
  EXPECT_NE(hash(a, NumberedShards({5}, 101, "b"), "b/"), same);
  EXPECT_NE(hash(a, NumberedShards({2, 3}, 100, "b"), "b/"), same);
  // Two stretches of one shard differ by where they begin.
  const Sources halves = Zipped({a, NumberedShards({2, 1, 2}, 100, "b")}, {"", "b/"});
  EXPECT_NE(halves[0]->content_hash(), halves[2]->content_hash());
}

}  // namespace
}  // namespace systole
