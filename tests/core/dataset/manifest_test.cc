#include "core/dataset/manifest.h"

#include <filesystem>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/dataset/dataset.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/core/record/tfrecord/shard_builder.h"
#include "tests/core/storage/temp_folder.h"
#include "tests/status_matchers.h"

namespace systole {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::SizeIs;

std::string ShardOf(int records) {
  ShardBuilder builder;
  for (int i = 0; i < records; ++i) builder.Add("payload");  // A record of 23 bytes in the file.
  return builder.Build();
}

// Writes the shards x-0, x-1 and x-2, of two records each, and their manifest.
void WriteSet(const TempFolder& folder) {
  std::vector<ShardCount> shards;
  for (const char* name : {"x-0", "x-1", "x-2"}) {
    folder.Write(name, ShardOf(2));
    shards.push_back({folder / name, 2, 46});
  }
  folder.Write("x.manifest", ManifestText(shards));
}

absl::Status Open(const std::vector<std::string>& patterns, const ExpectedContent& expected = {}) {
  return Dataset::Open("set", patterns, {}, expected).status();
}

// Makes a dataset_info.json as TFDS writes it, with fields that Systole does not read.
std::string TfdsInfo(const std::string& lengths) {
  return absl::StrCat(R"({
    "description": "digits", "fileFormat": "tfrecord", "name": "mnist", "version": "3.0.1",
    "location": {"urls": ["http://example.org"]},
    "splits": [
      {"filepathTemplate": "{DATASET}-{SPLIT}.{FILEFORMAT}-{SHARD_X_OF_Y}", "name": "train",
       "numBytes": "1234", "shardLengths": )",
                      lengths, R"(},
      {"name": "test", "numBytes": "12", "shardLengths": ["1"]}
    ]})");
}

TEST(ManifestTest, ASetOfShardsThatMatchesItsManifestIsOpened) {
  const TempFolder folder;
  WriteSet(folder);
  EXPECT_THAT(Open({folder.path()}), IsOk());
  EXPECT_THAT(Open({folder / "x-*"}), IsOk());
}

TEST(ManifestTest, AShardCutBetweenTwoRecordsIsDataLoss) {
  const TempFolder folder;
  WriteSet(folder);
  std::filesystem::resize_file(folder / "x-1", 23);
  EXPECT_THAT(Open({folder / "x-*"}),
              StatusIs(absl::StatusCode::kDataLoss,
                       AllOf(HasSubstr("shard \"x-1\" has 1 records in 23 bytes, \"x.manifest\" "
                                       "says 2 records in 46 bytes"),
                             HasSubstr("correct or remove \"x.manifest\""),
                             Not(HasSubstr(folder.path())))));
}

TEST(ManifestTest, AShardCutWithinARecordIsDataLoss) {
  const TempFolder folder;
  folder.Write("x-0", ShardOf(30).substr(0, 23 * 2 + 5));
  folder.Write("x.manifest", ManifestText({{"x-0", 30, 690}}));
  EXPECT_THAT(Open({folder / "x-*"}),
              StatusIs(absl::StatusCode::kDataLoss, HasSubstr("has 3 records in 51 bytes")));
}

TEST(ManifestTest, AnEmptiedShardIsDataLoss) {
  const TempFolder folder;
  WriteSet(folder);
  std::filesystem::resize_file(folder / "x-0", 0);
  std::filesystem::resize_file(folder / "x-2", 0);
  EXPECT_THAT(Open({folder / "x-*"}),
              StatusIs(absl::StatusCode::kDataLoss, AllOf(HasSubstr("\"x-0\" has 0 records"),
                                                          HasSubstr("1 more shard differs"))));
}

TEST(ManifestTest, AMissingShardThatMatchesThePatternIsNotFound) {
  const TempFolder folder;
  WriteSet(folder);
  std::filesystem::remove(folder / "x-1");
  for (const std::string& pattern : {folder / "x-*", folder.path()}) {
    EXPECT_THAT(Open({pattern}),
                StatusIs(absl::StatusCode::kNotFound,
                         HasSubstr("shard \"x-1\" is missing, \"x.manifest\" says 2 records in 46 "
                                   "bytes")));
  }
}

TEST(ManifestTest, ListedShardsThatMatchNoPatternAreNotRequired) {
  const TempFolder folder;
  WriteSet(folder);
  EXPECT_THAT(Open({folder / "x-0"}), IsOk()) << "x-1 and x-2 exist, too";
  std::filesystem::remove(folder / "x-1");
  EXPECT_THAT(Open({folder / "x-[02]"}), IsOk());
  EXPECT_THAT(Open({folder / "x-0", folder / "x-2"}), IsOk());
}

TEST(ManifestTest, ShardsThatNoManifestListsAreOpened) {
  const TempFolder folder;
  WriteSet(folder);
  folder.Write("y-0", ShardOf(7));
  EXPECT_THAT(Open({folder / "*-*"}), IsOk());
}

TEST(ManifestTest, ShardLengthsOfTfdsAreCompared) {
  const TempFolder folder;
  folder.Write("mnist-train.tfrecord-00000-of-00002", ShardOf(3));
  folder.Write("mnist-train.tfrecord-00001-of-00002", ShardOf(2));
  folder.Write("dataset_info.json", TfdsInfo(R"(["3", "2"])"));
  EXPECT_THAT(Open({folder / "mnist-train*"}), IsOk());
  EXPECT_THAT(Open({folder.path()}),
              StatusIs(absl::StatusCode::kNotFound,
                       HasSubstr("shard \"mnist-test.tfrecord-00000-of-00001\" is missing, "
                                 "\"dataset_info.json\" says 1 records")));
  folder.Write("dataset_info.json", TfdsInfo(R"(["3", "12"])"));
  EXPECT_THAT(
      Open({folder / "mnist-train*"}),
      StatusIs(absl::StatusCode::kDataLoss, HasSubstr("00001-of-00002\" has 2 records in 46 bytes, "
                                                      "\"dataset_info.json\" says 12 records")));
}

TEST(ManifestTest, AMissingShardOfZeroRecordsIsNoError) {
  const TempFolder folder;
  folder.Write("mnist-train.tfrecord-00000-of-00002", ShardOf(3));
  folder.Write("dataset_info.json", TfdsInfo(R"(["3", "0"])"));
  EXPECT_THAT(Open({folder / "mnist-train*"}), IsOk());
}

TEST(ManifestTest, AnInvalidManifestIsAnErrorThatNamesTheFaultyPart) {
  const TempFolder folder;
  folder.Write("x-0", ShardOf(2));
  const struct {
    const char* file;
    std::string text;
    std::string message;
  } cases[] = {
      {"x.manifest", "shards { name: 'x-0' record: 2 }", "x.manifest:1:"},
      {"x.manifest", "shards { name: '../x-0' }", "x.manifest: shards[0] names the shard"},
      {"x.manifest", "shards { name: 'a' } shards { }", "x.manifest: shards[1] names the shard"},
      {"x.manifest", "shards { name: 'a' records: -1 }", "shards[0] says -1 records"},
      {"x.manifest", "shards { name: 'a' bytes: -1 }", "shards[0] says -1 bytes"},
      {"dataset_info.json", "{", "dataset_info.json: "},
      {"dataset_info.json", TfdsInfo("[\"many\"]"), "shard_lengths"},
      {"dataset_info.json", TfdsInfo("[-3]"), "splits[0].shardLengths[0] says -3 records"},
      {"dataset_info.json", R"({"splits": [{"filepathTemplate": "a/b", "shardLengths": [1]}]})",
       "splits[0].shardLengths[0] names the shard"},
  };
  for (const auto& c : cases) {
    SCOPED_TRACE(c.text);
    folder.Write(c.file, c.text);
    EXPECT_THAT(Open({folder / "x-*"}),
                StatusIs(absl::StatusCode::kInvalidArgument,
                         AllOf(HasSubstr(c.message), HasSubstr("correct or remove it"),
                               Not(HasSubstr(folder.path())))));
    std::filesystem::remove(folder / c.file);
  }
}

TEST(ManifestTest, AManifestNestedAMillionDeepIsRefused) {
  for (const char* open : {"[", "{\"a\":"}) {
    std::string text = "{\"x\": ";
    for (int depth = 0; depth < 1'000'000; ++depth) text += open;
    EXPECT_THAT(ParseManifest(text, "dataset_info.json").status(),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("dataset_info.json: ")));
  }
}

TEST(ManifestTest, ALargeManifestIsRefusedBeforeItIsRead) {
  const TempFolder folder;
  folder.Write("x-0", ShardOf(2));
  folder.Write("dataset_info.json", TfdsInfo("[1]"));
  std::filesystem::resize_file(folder / "dataset_info.json", 8 << 20);
  EXPECT_THAT(Open({folder / "x-*"}), StatusIs(absl::StatusCode::kResourceExhausted,
                                               HasSubstr("\"dataset_info.json\" has 8388608")));
  std::filesystem::remove(folder / "dataset_info.json");
  folder.Write("x.manifest", "");
  std::filesystem::resize_file(folder / "x.manifest", uint64_t{1} << 40);
  EXPECT_THAT(Open({folder / "x-*"}),
              StatusIs(absl::StatusCode::kResourceExhausted,
                       AllOf(HasSubstr("\"x.manifest\" has"), Not(HasSubstr(folder.path())))));
}

TEST(ManifestTest, DifferencesAreListedUpToABound) {
  const TempFolder folder;
  folder.Write("x-0", ShardOf(2));
  std::vector<ShardCount> shards = {{"x-0", 3, 46}};
  for (int i = 1; i < 1000; ++i) shards.push_back({absl::StrCat("x-", i), 2, 46});
  folder.Write("x.manifest", ManifestText(shards));
  const absl::StatusOr<std::vector<ShardDifference>> differences =
      CompareWithManifests({folder / "x-*"}, {{folder / "x-0", 2, 46}});
  ASSERT_THAT(differences, IsOkAndHolds(SizeIs(kMaxShardDifferences)));
  EXPECT_FALSE(differences->front().missing);
  EXPECT_TRUE(differences->back().missing);
}

TEST(ExpectedContentTest, AnUnexpectedNumberOfRecordsOrBytesIsRefusedNamingBothNumbers) {
  const TempFolder folder;
  folder.Write("x-0", ShardOf(2));
  folder.Write("x-1", ShardOf(3));
  EXPECT_THAT(Open({folder / "x-*"}, {.records = 5, .bytes = 115}), IsOk());
  EXPECT_THAT(Open({folder / "x-*"}, {.records = 6}),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       AllOf(HasSubstr("have 5 records, expect_records says 6"),
                             HasSubstr("`systole verify`"))));
  EXPECT_THAT(Open({folder / "x-*"}, {.records = 5, .bytes = 116}),
              StatusIs(absl::StatusCode::kFailedPrecondition,
                       HasSubstr("have 115 bytes, expect_bytes says 116")));
  EXPECT_THAT(Open({folder / "x-*"}, {.records = -1}),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("expect_records is -1")));
}

}  // namespace
}  // namespace systole
