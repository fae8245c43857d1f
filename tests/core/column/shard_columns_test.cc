#include "core/column/shard_columns.h"

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <set>
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

std::string PathOf(const std::string& shard, const std::string& feature) {
  return ColumnPath(shard + ".idx", feature);
}

// Makes the columns that the shard lacks, and keeps them. Returns those of `features`.
std::vector<Column> Note(const RecordSource& shard, const std::vector<std::string>& features,
                         bool write_index = false) {
  const absl::StatusOr<MadeColumns> made = MakeColumns(shard, features, {});
  EXPECT_THAT(made, IsOk());
  for (const Column& column : made->columns) {
    EXPECT_THAT(KeepColumn(shard, column, "", write_index), IsOk());
  }
  std::vector<Column> columns;
  for (const std::string& feature : features) {
    absl::StatusOr<Column> column = ReadShardColumn(shard, "", {}, feature);
    EXPECT_THAT(column, IsOk());
    columns.push_back(*std::move(column));
  }
  return columns;
}

TEST(ShardColumnsTest, ColumnsLieBesideTheIndexAndAreMadeOnce) {
  const TempFolder folder;
  const std::string path = folder.Write("a.tfrecord", Shard(9));
  const std::unique_ptr<RecordSource> shard = Open(path);
  const std::vector<Column> columns = Note(*shard, kFeatures);
  EXPECT_THAT(columns[0].lengths, ElementsAre(0, kAbsentFeature, 2, kAbsentFeature, 4,
                                              kAbsentFeature, 0, kAbsentFeature, 2));
  EXPECT_EQ(columns[0].facts.first_long, 2);
  EXPECT_THAT(columns[0].int64s, IsEmpty());
  EXPECT_THAT(columns[1].int64s, ElementsAre(0, 1, 2, 3, 0, 1, 2, 3, 0));
  EXPECT_THAT(folder.List(),
              ElementsAre("a.tfrecord", "a.tfrecord.idx",
                          std::filesystem::path(PathOf(path, "boxes")).filename().string(),
                          "a.tfrecord.idx.hash",
                          std::filesystem::path(PathOf(path, "label")).filename().string()));
  const absl::StatusOr<MadeColumns> again = MakeColumns(*shard, {"boxes", "label", "none"}, {});
  ASSERT_THAT(again, IsOk());
  ASSERT_THAT(again->columns, SizeIs(1));
  EXPECT_EQ(again->columns[0].feature, "none");
  EXPECT_EQ(again->note, "");
  EXPECT_EQ(again->counts[0].present, 5);
  EXPECT_EQ(again->counts[1].present, 9);
  EXPECT_EQ(again->counts[2].present, 0);
  const absl::StatusOr<MadeColumns> rebuilt = MakeColumns(*shard, kFeatures, {.rebuild = true});
  ASSERT_THAT(rebuilt, IsOk());
  EXPECT_EQ(rebuilt->columns, columns);
}

// `one` and `two` are the same shard. The columns of both are made before any column is kept.
TEST(ShardColumnsTest, TwoInterleavedWritersOfColumnsLoseNoColumn) {
  const TempFolder folder;
  StubBucket& bucket = UnsignedBucketOfProcess();
  bucket.Put("at-once/a.tfrecord", Shard(5));
  for (const std::string& path :
       {folder.Write("a.tfrecord", Shard(5)), bucket.Name("at-once/a.tfrecord")}) {
    const std::unique_ptr<RecordSource> one = Open(path);
    const std::unique_ptr<RecordSource> two = Open(path);
    const absl::StatusOr<MadeColumns> of_one = MakeColumns(*one, {"label"}, {});
    const absl::StatusOr<MadeColumns> of_two = MakeColumns(*two, kFeatures, {});
    ASSERT_THAT(of_one, IsOk());
    ASSERT_THAT(of_two, IsOk());
    ASSERT_THAT(of_two->columns, SizeIs(2));
    for (const Column& column : of_two->columns) {
      ASSERT_THAT(KeepColumn(*two, column, "", /*write_index=*/true), IsOk());
    }
    ASSERT_THAT(KeepColumn(*one, of_one->columns[0], "", /*write_index=*/true), IsOk());
    for (size_t i = 0; i < kFeatures.size(); ++i) {
      EXPECT_THAT(ReadShardColumn(*one, "", {}, kFeatures[i]), IsOkAndHolds(of_two->columns[i]))
          << path;
    }
  }
}

TEST(ShardColumnsTest, ColumnFileNamesAreDistinctSafeAndShortForAnyFeatureName) {
  const std::string index = "/x/a.tfrecord.idx";
  EXPECT_THAT(ColumnPath(index, "label"),
              testing::MatchesRegex("/x/a\\.tfrecord\\.idx\\.label-[0-9a-f]{16}\\.column"));
  EXPECT_THAT(ColumnPath("https://host/a.tfrecord.idx?v=1", "label"),
              testing::MatchesRegex("https://host/a.*\\.column\\?v=1"));
  const std::vector<std::string> odd = {"a/b",
                                        "a_b",
                                        "a%b",
                                        "..",
                                        std::string(1, '\0'),
                                        "A/b",
                                        std::string(kMaxColumnNameBytes, 'n'),
                                        std::string(kMaxColumnNameBytes - 1, 'n')};
  std::set<std::string> names;
  for (const std::string& feature : odd) {
    const std::string path = ColumnPath(index, feature);
    EXPECT_THAT(path, testing::MatchesRegex("/x/a\\.tfrecord\\.idx\\.[A-Za-z0-9_.-]+"));
    EXPECT_LT(path.size(), index.size() + 60);
    names.insert(path);
  }
  EXPECT_EQ(names.size(), odd.size());
}

TEST(ShardColumnsTest, DamagedRecordsAndInvalidExamplesAreMarkedAsDamaged) {
  const TempFolder folder;
  std::string bytes = ShardBuilder().Add(Record(0)).Add("\xff\xff no example").Build();
  const size_t damaged = bytes.size() + 100;
  bytes += Shard(2);
  bytes[damaged] ^= 1;
  const std::unique_ptr<RecordSource> shard = Open(folder.Write("a.tfrecord", bytes));
  const absl::StatusOr<MadeColumns> made = MakeColumns(*shard, {"label"}, {});
  ASSERT_THAT(made, IsOk());
  EXPECT_THAT(made->columns[0].lengths, ElementsAre(1, kDamagedRecord, kDamagedRecord, 1));
  EXPECT_EQ(made->counts[0].damaged, 2);
  EXPECT_EQ(made->counts[0].present, 2);
}

TEST(ShardColumnsTest, ColumnsAreRebuiltWithANoteIfTheContentOfTheShardChanged) {
  const TempFolder folder;
  const std::string path = folder.Write("a.tfrecord", Shard(5));
  Note(*Open(path), kFeatures);
  // A copy of the shard has the same columns: the time of the file does not count.
  ShiftMtime(path, 100);
  EXPECT_THAT(ReadShardColumn(*Open(path), "", {}, "label"), IsOk());
  folder.Write("a.tfrecord", Shard(6));
  const std::unique_ptr<RecordSource> shard = Open(path);
  EXPECT_THAT(ReadShardColumn(*shard, "", {}, "label"),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("another content")));
  const absl::StatusOr<MadeColumns> made = MakeColumns(*shard, kFeatures, {});
  ASSERT_THAT(made, IsOk());
  EXPECT_THAT(made->note, HasSubstr("another content"));
  EXPECT_EQ(made->columns[0].num_records, 6);
}

TEST(ShardColumnsTest, ColumnsInMemoryAreUsedInsteadOfFiles) {
  const TempFolder folder;
  const std::unique_ptr<RecordSource> shard = Open(folder.Write("a.tfrecord", Shard(5)));
  const absl::StatusOr<MadeColumns> made = MakeColumns(*shard, {"label"}, {});
  ASSERT_THAT(made, IsOk());
  const ColumnsInMemory in_memory = {
      {"label", std::make_shared<const Column>(made->columns.front())}};
  EXPECT_THAT(ReadShardColumn(*shard, "", in_memory, "label"), IsOkAndHolds(made->columns.front()));
  EXPECT_THAT(ReadShardColumn(*shard, "", in_memory, "boxes"),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("no column of 'boxes'")));
  const absl::StatusOr<MadeColumns> again =
      MakeColumns(*shard, {"label"}, {.in_memory = in_memory});
  ASSERT_THAT(again, IsOk());
  EXPECT_THAT(again->columns, IsEmpty());
  EXPECT_EQ(again->counts[0].present, 5);
}

// A missing column is NotFound. Clients see the message of this error, so the message names no
// folder of the server. All other failures name the path, and have other codes.
TEST(ShardColumnsTest, AFolderInPlaceOfAColumnFileIsNotReportedAsMissing) {
  const TempFolder folder;
  const std::string path = folder.Write("a.tfrecord", Shard(5));
  std::filesystem::create_directory(PathOf(path, "label"));
  EXPECT_THAT(ReadShardColumn(*Open(path), "", {}, "label"),
              StatusIs(absl::StatusCode::kPermissionDenied, HasSubstr("a.tfrecord.idx.label")));
}

TEST(ShardColumnsTest, AShardInABucketIsReadInOnePassOfFewRequests) {
  StubBucket& bucket = UnsignedBucketOfProcess();
  bucket.Put("columns/a.tfrecord", Shard(2000));  // 6 MB.
  const std::string name = bucket.Name("columns/a.tfrecord");
  const std::unique_ptr<RecordSource> shard = Open(name);
  const size_t before = bucket.server().requests().size();
  const absl::StatusOr<MadeColumns> made = MakeColumns(*shard, kFeatures, {});
  ASSERT_THAT(made, IsOk());
  // One request reads all records. The other requests look for columns and for changes.
  EXPECT_LE(bucket.server().requests().size() - before, 6u);
  EXPECT_THAT(KeepColumn(*shard, made->columns[1], "", /*write_index=*/false),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("--write-index")));
  EXPECT_EQ(Note(*shard, kFeatures, /*write_index=*/true), made->columns);
  EXPECT_TRUE(bucket.Get(PathOf("columns/a.tfrecord", "label")).has_value());
}

TEST(ShardColumnsTest, EmptyDuplicateTooLongAndTooManyColumnNamesAreRefused) {
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
