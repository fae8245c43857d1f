#include "core/dataset/dataset_columns.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "core/dataset/dataset.h"
#include "core/example/example_builder.h"
#include "core/example/tensorflow_example.h"
#include "core/record/shard_formats.h"
#include "core/record/source/deferred_shard.h"
#include "core/storage/memory_source.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/core/record/tfrecord/shard_builder.h"
#include "tests/core/storage/temp_folder.h"
#include "tests/status_matchers.h"

namespace systole {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

// Each record of shard s has label s; only those of shard 1 have a width.
std::vector<std::shared_ptr<const RecordSource>> Shards(const TempFolder& folder) {
  std::vector<std::shared_ptr<const RecordSource>> shards;
  for (int s = 0; s < 3; ++s) {
    ShardBuilder builder;
    for (int i = 0; i < 4; ++i) {
      ExampleBuilder example;
      example.AddInt64s("label", {s});
      if (s == 1) example.AddFloats("width", {static_cast<float>(i)});
      builder.Add(example.Serialize());
    }
    absl::StatusOr<std::unique_ptr<RecordSource>> shard =
        OpenShard(folder.Write(absl::StrCat("d-", s, ".tfrecord"), builder.Build()), {});
    EXPECT_THAT(shard, IsOk());
    shards.push_back(*std::move(shard));
  }
  return shards;
}

// The number of files in the folder that keep a column of the feature.
int64_t FilesOf(const TempFolder& folder, const std::string& feature) {
  const std::vector<std::string> names = folder.List();
  return std::count_if(names.begin(), names.end(), [&](const std::string& name) {
    return absl::StrContains(name, absl::StrCat(".idx.", feature, "-"));
  });
}

Condition IsPresent(const std::string& feature, bool present = true) {
  return {.field = "where", .feature = feature, .present = present};
}

absl::StatusOr<std::vector<std::vector<uint64_t>>> Meet(const DatasetColumns& columns,
                                                        DatasetColumns::Shards shards,
                                                        const Condition& condition) {
  std::set<std::string> found;
  return columns.RecordsThatMeet(shards, condition, kLookUpBytes, found);
}

absl::StatusOr<std::vector<uint64_t>> Meet(const Dataset& dataset, const Condition& condition) {
  std::set<std::string> found;
  return dataset.RecordsThatMeet(condition, kLookUpBytes, found);
}

TEST(DatasetColumnsTest, AFeatureOfOneShardGetsColumnFilesForAllShards) {
  const TempFolder folder;
  const auto shards = Shards(folder);
  const DatasetColumns columns("", false);
  int done = 0;
  const absl::StatusOr<NotedColumns> noted =
      columns.Note(shards, {"width", "label"}, {.at_once = 1, .shard_done = [&done] { ++done; }});
  ASSERT_THAT(noted, IsOk());
  EXPECT_EQ(done, 3);
  EXPECT_EQ(noted->note, "");
  EXPECT_TRUE(noted->kept);
  EXPECT_THAT(noted->absent, IsEmpty());
  ASSERT_EQ(noted->features.size(), 2u);
  EXPECT_EQ(noted->features[0].name, "label");
  EXPECT_EQ(noted->features[0].records, 12);
  EXPECT_EQ(noted->features[1].records, 4);
  EXPECT_EQ(FilesOf(folder, "label"), 3);
  EXPECT_EQ(FilesOf(folder, "width"), 3);
  EXPECT_THAT(Meet(DatasetColumns("", false), shards, IsPresent("width", false)),
              IsOkAndHolds(ElementsAre(ElementsAre(15), ElementsAre(0), ElementsAre(15))));
}

TEST(DatasetColumnsTest, ColumnsOfAnAbsentFeatureAreUnusedUntilTheCallerKeepsThem) {
  const TempFolder folder;
  const auto shards = Shards(folder);
  const DatasetColumns columns("", false);
  const absl::StatusOr<NotedColumns> noted = columns.Note(shards, {"label", "wide"});
  ASSERT_THAT(noted, IsOk());
  EXPECT_THAT(noted->absent, ElementsAre("wide"));
  EXPECT_EQ(FilesOf(folder, "label"), 3);
  EXPECT_EQ(FilesOf(folder, "wide"), 0);
  EXPECT_THAT(Meet(columns, shards, IsPresent("wide", false)),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("--columns wide")));
  columns.Keep(shards, *noted);
  EXPECT_EQ(FilesOf(folder, "wide"), 3);
  EXPECT_THAT(Meet(DatasetColumns("", false), shards, IsPresent("wide")), IsOk());
  // Note() still reports the feature as absent, although files of its columns exist now.
  EXPECT_THAT(DatasetColumns("", false).Note(shards, {"wide"})->absent, ElementsAre("wide"));
}

TEST(DatasetColumnsTest, ColumnsThatCannotBeWrittenStayInMemoryBesideEarlierColumns) {
  const TempFolder folder;
  const auto shards = Shards(folder);
  const DatasetColumns columns(folder / "nowhere", false);
  const absl::StatusOr<NotedColumns> noted = columns.Note(shards, {"label"});
  ASSERT_THAT(noted, IsOk());
  EXPECT_FALSE(noted->kept);
  EXPECT_THAT(noted->note, AllOf(HasSubstr("shard 'd-0.tfrecord'"), HasSubstr("columns not kept")));
  ASSERT_THAT(columns.Note(shards, {"width"}), IsOk());
  EXPECT_THAT(Meet(columns, shards, IsPresent("label")), IsOk());
  EXPECT_THAT(Meet(columns, shards, IsPresent("width")), IsOk());
  // The columns are not made again.
  const absl::StatusOr<NotedColumns> again = columns.Note(shards, {"label", "width"});
  ASSERT_THAT(again, IsOk());
  EXPECT_EQ(again->note, "");
}

TEST(DatasetColumnsTest, TheNumberOfShardsAtOnceBoundsTheMemoryForColumns) {
  const auto shards = [](int64_t records) {
    return std::vector<std::shared_ptr<const RecordSource>>{std::make_shared<DeferredShard>(
        std::make_unique<MemorySource>("", "/a"),
        ShardFacts{.identity = "x", .records = records, .content_hash = 1}, TensorFlowExample(),
        nullptr)};
  };
  EXPECT_EQ(DatasetColumns::ShardsAtOnce(shards(1000), 2), kShardsOpenedAtOnce);
  for (const auto& [records, features] :
       std::vector<std::pair<int64_t, size_t>>{{1'000'000, 2}, {100'000, 64}, {2'000'000, 1}}) {
    const int at_once = DatasetColumns::ShardsAtOnce(shards(records), features);
    EXPECT_LE(at_once * records * 12 * static_cast<int64_t>(features + 2), 256 << 20);
    EXPECT_GT(at_once, 1);
  }
  EXPECT_EQ(DatasetColumns::ShardsAtOnce(shards(int64_t{1} << 61), 64), 1);
}

TEST(DatasetColumnsTest, AsManyShardsAreTestedAtOnceAsFitTheirMemoryButAtLeastOne) {
  std::vector<int64_t> sizes = {0, std::numeric_limits<int64_t>::max()};
  for (int power = 0; power <= 62; ++power) {  // A dataset has at most 2^62 records.
    const int64_t size = int64_t{1} << power;
    for (const int64_t records : {size - 1, size, size + size / 3, size + size / 2}) {
      sizes.push_back(records);
    }
  }
  for (const auto& [are_far, bytes] : std::vector<std::pair<bool, int64_t>>{
           {false, kLookUpBytes}, {true, kLookUpBytes}, {true, kLookUpBytes / 7}, {true, 0}}) {
    const int most = are_far ? 16 : 4;
    for (const int64_t records : sizes) {
      const int shards = ShardsTestedAtOnce(records, are_far, bytes);
      EXPECT_GE(shards, 1) << records;
      EXPECT_LE(shards, most) << records;
      // As many shards are tested at once as fit into `bytes`.
      if (shards > 1) {
        EXPECT_LE(shards * records * kTestedRecordBytes, bytes) << records;
      }
      if (shards < most) {
        EXPECT_GT(std::max<int64_t>(records, 1), bytes / kTestedRecordBytes / (shards + 1))
            << records;
      }
    }
  }
}

TEST(DatasetColumnsTest, AnErrorOfMixedValueTypesNamesTheFirstRecordOfEachType) {
  const TempFolder folder;
  const int kShards = 40;
  for (int shard = 0; shard < kShards; ++shard) {
    ShardBuilder builder;
    for (int i = 0; i < 5; ++i) {
      ExampleBuilder example;
      if (shard >= 3 && i == 2) example.AddInt64s("n", {i});
      if (shard >= 30 && i == 4) example.AddFloats("n", {0});
      builder.Add(example.Serialize());
    }
    folder.Write(absl::StrCat("d-", shard + 10, ".tfrecord"), builder.Build());
  }
  const auto dataset = Dataset::Open("d", {folder / "d-*"});
  ASSERT_THAT(dataset, IsOk());
  ASSERT_THAT((*dataset)->NoteColumns({"n"}), IsOk());
  EXPECT_THAT(Meet(**dataset, {.field = "where", .feature = "n", .less = 1}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("a float in record 4 of shard 'd-40.tfrecord'"),
                             HasSubstr("an int64 in record 2 of shard 'd-13.tfrecord'"))));
  EXPECT_THAT(Meet(**dataset, {.field = "where", .feature = "n", .present = true}), IsOk());
}

TEST(DatasetColumnsTest, DamagedRecordsOfADatasetThatIsTwiceInAZipCountOnce) {
  const TempFolder folder;
  ShardBuilder builder;
  for (int i = 0; i < 5; ++i) {
    builder.Add(i == 3 ? "no example"
                       : ExampleBuilder().AddInt64s("n", {i}).AddInt64s("m", {i}).Serialize());
  }
  folder.Write("d-0.tfrecord", builder.Build());
  const auto dataset = Dataset::Open("d", {folder / "d-*"});
  ASSERT_THAT(dataset, IsOk());
  const auto zip = Dataset::Zip({{*dataset, ""}, {*dataset, "2/"}});
  ASSERT_THAT(zip, IsOk());
  const auto noted = (*zip)->NoteColumns({"n", "2/m", "2/n", "x", "2/x"});
  ASSERT_THAT(noted, IsOk());
  EXPECT_EQ(noted->damaged, 1);
  std::vector<std::string> names;
  for (const auto& [name, records] : noted->features) {
    names.push_back(absl::StrCat(name, ": ", records));
  }
  EXPECT_THAT(names, ElementsAre("2/m: 4", "2/n: 4", "2/x: 0", "n: 4", "x: 0"));
  EXPECT_THAT(noted->absent, UnorderedElementsAre("x", "2/x"));
}

}  // namespace
}  // namespace systole
