#include "core/storage/stores/list_shards.h"

#include <filesystem>
#include <string>
#include <vector>

#include "core/interrupt/interrupt.h"
#include "core/storage/stores/stored_file.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/core/storage/temp_folder.h"
#include "tests/status_matchers.h"

namespace systole {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(ListShardsTest, GlobsListOnlyShardsInByteOrder) {
  const TempFolder folder;
  for (const char* name : {"b.tfrecord", "a.tfrecord", "B.tfrecord", "a.tfrecord.idx",
                           "a.tfrecord.idx.hash", "labels.txt", "label.labels.txt", "a.manifest",
                           "dataset_info.json", "features.json", ".hidden.tmp"}) {
    folder.Write(name, "");
  }
  EXPECT_THAT(ListShards({folder / "*"}),
              IsOkAndHolds(ElementsAre(folder / "B.tfrecord", folder / "a.tfrecord",
                                       folder / "b.tfrecord")));
}

TEST(ListShardsTest, QuestionMarksAndCharacterSetsMatchOneCharacter) {
  const TempFolder folder;
  for (const char* name : {"x-0", "x-1", "x-2", "x-10"}) folder.Write(name, "");
  EXPECT_THAT(ListShards({folder / "x-?"}),
              IsOkAndHolds(ElementsAre(folder / "x-0", folder / "x-1", folder / "x-2")));
  EXPECT_THAT(ListShards({folder / "x-[02]"}),
              IsOkAndHolds(ElementsAre(folder / "x-0", folder / "x-2")));
}

TEST(ListShardsTest, OverlappingPatternsNameEachFileOnce) {
  const TempFolder folder;
  folder.Write("a", "");
  folder.Write("b", "");
  EXPECT_THAT(ListShards({folder / "b", folder / "*", folder / "a", folder / "b"}),
              IsOkAndHolds(ElementsAre(folder / "a", folder / "b")));
}

TEST(ListShardsTest, AnExistingPathWithGlobCharactersIsNotExpanded) {
  const TempFolder folder;
  folder.Write("odd[1]", "");
  folder.Write("odd1", "");
  EXPECT_THAT(ListShards({folder / "odd[1]"}), IsOkAndHolds(ElementsAre(folder / "odd[1]")));
}

TEST(ListShardsTest, PatternThatMatchesNothingIsNotFoundAndNamed) {
  const TempFolder folder;
  folder.Write("a", "");
  EXPECT_THAT(ListShards({folder / "a", folder / "none-*"}),
              StatusIs(absl::StatusCode::kNotFound,
                       AllOf(HasSubstr(folder / "none-*"), HasSubstr("matches no file"))));
  EXPECT_THAT(ListShards({folder / "missing.tfrecord"}),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr(folder / "missing.tfrecord")));
}

TEST(ListShardsTest, PatternThatMatchesIndexFilesOnlyIsNotFound) {
  const TempFolder folder;
  folder.Write("a.idx", "");
  for (const char* pattern : {"a.idx", "*.idx", "a*"}) {
    EXPECT_THAT(
        ListShards({folder / pattern}),
        StatusIs(absl::StatusCode::kNotFound, HasSubstr("only files that lie beside shards")))
        << pattern;
  }
}

TEST(ListShardsTest, ANamedFolderListsItsShards) {
  const TempFolder folder;
  for (const char* name :
       {"b", "a", "a.idx", "a.idx.hash", "a.idx.restart", "a.idx.x-0.column", ".a.tmp"}) {
    folder.Write(name, "");
  }
  for (const std::string& named : {folder.path(), folder.path() + "/"}) {
    EXPECT_THAT(ListShards({named}),
                IsOkAndHolds(ElementsAre(named + (named.back() == '/' ? "a" : "/a"),
                                         named + (named.back() == '/' ? "b" : "/b"))));
  }
}

TEST(ListShardsTest, PatternsAreMatchedAgainstPathsOfMissingFiles) {
  const TempFolder folder;
  folder.Write("x-0", "");
  EXPECT_TRUE(PatternTakes(folder / "x-*", folder / "x-1"));
  EXPECT_TRUE(PatternTakes(folder / "x-1", folder / "x-1"));
  EXPECT_TRUE(PatternTakes(folder.path(), folder / "x-1"));
  EXPECT_TRUE(PatternTakes(folder.path() + "/", folder / "x-1"));
  EXPECT_FALSE(PatternTakes(folder / "x-0", folder / "x-1"));
  EXPECT_FALSE(PatternTakes(folder / "y-*", folder / "x-1"));
  EXPECT_FALSE(PatternTakes(folder / "*", folder / "inner/x-1"));
  EXPECT_FALSE(PatternTakes(folder / "*", folder / ".x-1"));
  EXPECT_FALSE(PatternTakes(folder.path(), folder / ".x-1"));
  EXPECT_FALSE(PatternTakes(folder / "x-*", folder / "x-1.idx"));
}

TEST(ListShardsTest, AFolderWithoutShardsIsNotFound) {
  const TempFolder folder;
  EXPECT_THAT(ListShards({folder.path()}),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("an empty folder")));
  folder.Write("a.idx", "");
  EXPECT_THAT(
      ListShards({folder.path()}),
      StatusIs(absl::StatusCode::kNotFound, HasSubstr("only files that lie beside shards")));
}

TEST(ListShardsTest, AFolderInAFolderIsRefused) {
  const TempFolder folder;
  folder.Write("a", "");
  std::filesystem::create_directory(folder / "inner");
  for (const std::string& pattern : {folder.path(), folder / "*"}) {
    EXPECT_THAT(
        ListShards({pattern}),
        StatusIs(absl::StatusCode::kInvalidArgument,
                 AllOf(HasSubstr(folder / "inner"), HasSubstr("is a folder"), HasSubstr(pattern))));
  }
}

TEST(ListShardsTest, AFolderOfClassFoldersIsRefusedWithTheGlobOfItsImages) {
  const TempFolder folder;
  std::filesystem::create_directory(folder / "daisy");
  const auto refused = [&](const std::string& glob) {
    return StatusIs(absl::StatusCode::kInvalidArgument,
                    testing::EndsWith("use " + (folder / glob)));
  };
  EXPECT_THAT(ListShards({folder.path()}), refused("*/*.jpg"));
  EXPECT_THAT(ListShards({folder.path() + "/"}), refused("*/*.jpg"));
  EXPECT_THAT(ListShards({folder / "*"}), refused("*/*.jpg"));
}

TEST(ListShardsTest, ShardsAreSortedByFileNameFirstAndFolderSecond) {
  const TempFolder folder;
  for (const char* inner : {"x", "y"}) std::filesystem::create_directory(folder / inner);
  for (const char* name : {"x/b", "x/c", "y/a", "y/c"}) folder.Write(name, "");
  EXPECT_THAT(
      ListShards({folder / "x/*", folder / "y"}),
      IsOkAndHolds(ElementsAre(folder / "y/a", folder / "x/b", folder / "x/c", folder / "y/c")));
}

TEST(ListShardsTest, DanglingLinkIsNotFound) {
  const TempFolder folder;
  std::filesystem::create_symlink(folder / "gone", folder / "link");
  EXPECT_THAT(ListShards({folder / "li*"}),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr(folder / "link")));
}

TEST(ListShardsTest, UrlsOfUnknownStoresAreRefused) {
  EXPECT_THAT(
      ListShards({"az://bucket/a-*.tfrecord"}),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("paths of this machine, mem://")));
  EXPECT_FALSE(PatternTakes("az://bucket/*", "az://bucket/a"));
}

TEST(ListShardsTest, AnAbsolutePathThatContainsAUrlSchemeIsALocalPath) {
  const TempFolder folder;
  std::filesystem::create_directory(folder / "gs:");
  folder.Write("gs:/a", "");
  EXPECT_THAT(ListShards({folder / "gs://a"}), IsOkAndHolds(ElementsAre(folder / "gs://a")));
}

TEST(ListShardsTest, ShardsOfSeveralStoresAreSortedTogetherByName) {
  const TempFolder folder;
  folder.Write("a", "");
  folder.Write("c", "");
  ASSERT_THAT(PutStored("mem://together/b", ""), IsOk());
  EXPECT_THAT(ListShards({"mem://together/*", folder.path()}),
              IsOkAndHolds(ElementsAre(folder / "a", "mem://together/b", folder / "c")));
  EXPECT_FALSE(PatternTakes(folder / "*", "mem://together/b"));
}

TEST(ListShardsTest, UrlQueriesAreIgnoredInTellingShardsFromOtherFiles) {
  EXPECT_THAT(ListShards({"https://host/a.tfrecord?b=.idx"}),
              IsOkAndHolds(ElementsAre("https://host/a.tfrecord?b=.idx")));
  for (const char* beside : {"https://host/a.idx?sig", "https://host/labels.txt?sig"}) {
    EXPECT_THAT(ListShards({beside}),
                StatusIs(absl::StatusCode::kNotFound, HasSubstr("beside shards")));
  }
}

TEST(ListShardsTest, AnEmptyPatternListIsInvalid) {
  EXPECT_THAT(ListShards({}),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("no pattern")));
}

TEST(ListShardsTest, ListingIsCancelledByAnInterruption) {
  const TempFolder folder;
  const std::string shard = folder.Write("a", "");
  InterruptFlag unwanted;
  const InterruptScope scope(unwanted);
  EXPECT_THAT(ListShards({shard, shard}), IsOk());
  unwanted.Raise();
  EXPECT_THAT(ListShards({shard, shard}),
              StatusIs(absl::StatusCode::kCancelled, HasSubstr("no longer needed")));
}

}  // namespace
}  // namespace systole
