#include "core/column/shard_columns.h"

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/example/example_builder.h"
#include "core/record/shard_formats.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/core/record/tfrecord/shard_builder.h"
#include "tests/core/storage/bucket/stub_bucket.h"
#include "tests/core/storage/temp_folder.h"
#include "tests/status_matchers.h"

namespace systole {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

std::string Record(int64_t i) {
  ExampleBuilder builder;
  builder.AddInt64s("label", {i % 4}).AddBytes("image", std::string(3000, 'x'));
  if (i % 2 == 0) builder.AddInt64s("boxes", std::vector<int64_t>(static_cast<size_t>(i % 6), i));
  return builder.Serialize();
}

std::string Shard(int records) {
  ShardBuilder builder;
  for (int i = 0; i < records; ++i) builder.Add(Record(i));
  return builder.Build();
}

std::unique_ptr<RecordSource> Open(const std::string& path, const ShardOptions& options = {}) {
  absl::StatusOr<std::unique_ptr<RecordSource>> shard = OpenShard(path, options);
  EXPECT_THAT(shard, IsOk());
  return *std::move(shard);
}

const std::vector<std::string> kFeatures = {"boxes", "label"};

TEST(ShardColumnsTest, ColumnsLieBesideTheIndexAndAreMadeOnce) {
  const TempFolder folder;
  const std::unique_ptr<RecordSource> shard = Open(folder.Write("a.tfrecord", Shard(9)));
  const absl::StatusOr<NotedColumns> noted = NoteColumns(*shard, kFeatures, {});
  ASSERT_THAT(noted, IsOk());
  EXPECT_EQ(noted->note, "");
  EXPECT_EQ(noted->unkept, nullptr);
  EXPECT_THAT(noted->columns[0].lengths, ElementsAre(0, kAbsentFeature, 2, kAbsentFeature, 4,
                                                     kAbsentFeature, 0, kAbsentFeature, 2));
  EXPECT_EQ(noted->columns[0].facts.first_long, 2);
  EXPECT_THAT(noted->columns[0].int64s, IsEmpty());
  EXPECT_THAT(noted->columns[1].int64s, ElementsAre(0, 1, 2, 3, 0, 1, 2, 3, 0));
  EXPECT_THAT(folder.List(), ElementsAre("a.tfrecord", "a.tfrecord.idx", "a.tfrecord.idx.columns",
                                         "a.tfrecord.idx.hash"));
  EXPECT_THAT(ReadShardColumns(*shard, "", nullptr, kFeatures), IsOkAndHolds(noted->columns));
  ShiftMtime(folder / "a.tfrecord.idx.columns", -100);
  const auto before = std::filesystem::last_write_time(folder / "a.tfrecord.idx.columns");
  ASSERT_THAT(NoteColumns(*shard, kFeatures, {}), IsOk());
  EXPECT_EQ(std::filesystem::last_write_time(folder / "a.tfrecord.idx.columns"), before);
}

TEST(ShardColumnsTest, AnotherColumnIsAddedToTheFile) {
  const TempFolder folder;
  const std::unique_ptr<RecordSource> shard = Open(folder.Write("a.tfrecord", Shard(5)));
  ASSERT_THAT(NoteColumns(*shard, {"label"}, {}), IsOk());
  EXPECT_THAT(ReadShardColumns(*shard, "", nullptr, kFeatures),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("no column of 'boxes'")));
  ASSERT_THAT(NoteColumns(*shard, {"boxes"}, {}), IsOk());
  EXPECT_THAT(ReadShardColumns(*shard, "", nullptr, kFeatures), IsOkAndHolds(SizeIs(2)));
}

TEST(ShardColumnsTest, DamagedRecordsAndThoseThatAreNoExamplesAreMarked) {
  const TempFolder folder;
  std::string bytes = ShardBuilder().Add(Record(0)).Add("\xff\xff no example").Build();
  const size_t damaged = bytes.size() + 100;
  bytes += Shard(2);
  bytes[damaged] ^= 1;
  const std::unique_ptr<RecordSource> shard = Open(folder.Write("a.tfrecord", bytes));
  const absl::StatusOr<NotedColumns> noted = NoteColumns(*shard, {"label"}, {});
  ASSERT_THAT(noted, IsOk());
  EXPECT_THAT(noted->columns[0].lengths, ElementsAre(1, kDamagedRecord, kDamagedRecord, 1));
  EXPECT_EQ(noted->columns[0].CountOf(kDamagedRecord), 2);
}

TEST(ShardColumnsTest, ColumnsOfAnOlderContentAreMadeAnewAndTheNoteSaysSo) {
  const TempFolder folder;
  const std::string path = folder.Write("a.tfrecord", Shard(5));
  ASSERT_THAT(NoteColumns(*Open(path), kFeatures, {}), IsOk());
  // A copy of the shard has the same columns: the time of the file does not count.
  ShiftMtime(path, 100);
  EXPECT_THAT(ReadShardColumns(*Open(path), "", nullptr, kFeatures), IsOk());
  folder.Write("a.tfrecord", Shard(6));
  const std::unique_ptr<RecordSource> shard = Open(path);
  EXPECT_THAT(ReadShardColumns(*shard, "", nullptr, kFeatures),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("another content")));
  const absl::StatusOr<NotedColumns> noted = NoteColumns(*shard, kFeatures, {});
  ASSERT_THAT(noted, IsOk());
  EXPECT_THAT(noted->note, HasSubstr("another content"));
  EXPECT_EQ(noted->columns[0].num_records, 6);
}

TEST(ShardColumnsTest, WhatCannotBeKeptIsReturnedAndServesAsTheFile) {
  const TempFolder folder;
  const std::unique_ptr<RecordSource> shard =
      Open(folder.Write("a.tfrecord", Shard(5)), {.index_use = IndexUse::kIgnore});
  const std::string nowhere = folder / "nowhere";
  const absl::StatusOr<NotedColumns> noted = NoteColumns(*shard, kFeatures, {.index_dir = nowhere});
  ASSERT_THAT(noted, IsOk());
  EXPECT_THAT(noted->note, HasSubstr("columns not kept"));
  ASSERT_NE(noted->unkept, nullptr);
  EXPECT_THAT(ReadShardColumns(*shard, nowhere, noted->unkept.get(), kFeatures),
              IsOkAndHolds(noted->columns));
  const absl::StatusOr<NotedColumns> again =
      NoteColumns(*shard, kFeatures, {.index_dir = nowhere, .unkept = noted->unkept});
  ASSERT_THAT(again, IsOk());
  EXPECT_EQ(again->note, "");
}

TEST(ShardColumnsTest, AShardInABucketIsReadInOnePassOfFewRequests) {
  StubBucket& bucket = UnsignedBucketOfProcess();
  bucket.Put("columns/a.tfrecord", Shard(2000));  // 6 MB.
  const std::string name = bucket.Name("columns/a.tfrecord");
  const std::unique_ptr<RecordSource> shard = Open(name);
  const size_t before = bucket.server().requests().size();
  const absl::StatusOr<NotedColumns> unkept = NoteColumns(*shard, kFeatures, {});
  ASSERT_THAT(unkept, IsOk());
  EXPECT_THAT(unkept->note, HasSubstr("columns not kept"));
  EXPECT_NE(unkept->unkept, nullptr);
  // One read of all records, and looks for columns and for changes.
  EXPECT_LE(bucket.server().requests().size() - before, 6u);
  ASSERT_THAT(NoteColumns(*shard, kFeatures, {.write_index = true}), IsOk());
  EXPECT_TRUE(bucket.Get("columns/a.tfrecord.idx.columns").has_value());
  EXPECT_THAT(ReadShardColumns(*shard, "", nullptr, kFeatures), IsOkAndHolds(unkept->columns));
}

TEST(ShardColumnsTest, NamesOfColumnsAreBounded) {
  EXPECT_THAT(CheckColumnNames({"b", "a"}), IsOkAndHolds(ElementsAre("a", "b")));
  for (const std::vector<std::string>& names :
       {std::vector<std::string>{""}, {"a", "a"}, {std::string(kMaxColumnNameBytes + 1, 'a')}}) {
    EXPECT_THAT(CheckColumnNames(names),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("column")));
  }
  std::vector<std::string> many;
  for (size_t i = 0; i <= kMaxColumns; ++i) many.push_back(absl::StrCat(i));
  EXPECT_THAT(CheckColumnNames(many),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("65 columns")));
}

}  // namespace
}  // namespace systole
