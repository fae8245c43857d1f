#include "core/record/shard_formats.h"

#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_replace.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/core/http/stub_objects.h"
#include "tests/core/record/line_format.h"
#include "tests/core/record/tfrecord/shard_builder.h"
#include "tests/core/storage/temp_folder.h"
#include "tests/status_matchers.h"

namespace systole {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::Eq;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

// The first row of the table of formats, and one more format.
const ShardFormat* const kFormats[] = {ShardFormats().front(), &kLineFormat};

std::unique_ptr<RecordSource> MustOpenOne(const std::string& path) {
  absl::StatusOr<std::unique_ptr<RecordSource>> shard = OpenShard(path, {.formats = kFormats});
  EXPECT_THAT(shard, IsOk());
  return *std::move(shard);
}

TEST(ShardFormatsTest, AnAddedFormatIsDetectedByContentBeforeFileName) {
  const TempFolder folder;
  const auto lines = MustOpenOne(folder.Write("a", "lines\nabc\n\nde\n"));
  EXPECT_EQ(lines->examples().name(), "line");
  EXPECT_EQ(lines->num_records(), 3);
  AlignedBuffer scratch;
  EXPECT_THAT(lines->ReadRecord(0, scratch), IsOkAndHolds(Eq("abc")));
  EXPECT_THAT(lines->ReadRecord(1, scratch), IsOkAndHolds(Eq("")));
  EXPECT_THAT(lines->ReadRecord(2, scratch), IsOkAndHolds(Eq("de")));

  // The content decides the format, even if the name has the ending of another format.
  ShardBuilder().Add("abc").WriteTo(folder / "b.lines");
  EXPECT_EQ(MustOpenOne(folder / "b.lines")->examples().name(), "tf.train.Example");
}

TEST(ShardFormatsTest, UnrecognizedContentFallsBackToTheFileNameThenToTheFirstFormat) {
  const TempFolder folder;
  for (const char* name : {"a.lines", "a.lines.gz", "a.lines.zst"}) {
    EXPECT_EQ(MustOpenOne(folder.Write(name, "Xines\nabc\n"))->examples().name(), "line") << name;
  }
  for (const char* name : {"a", "a.tfrecord", "lines", "a.lines.txt", "a.gz"}) {
    EXPECT_EQ(MustOpenOne(folder.Write(name, "Xines\nabc\n"))->examples().name(),
              "tf.train.Example")
        << name;
  }
}

TEST(ShardFormatsTest, TheQueryOfAnAddressDoesNotDecideTheFormat) {
  StubObjects objects;
  objects.Put("/a.lines", "Xines\nabc\n");
  objects.Put("/a", "Xines\nabc\n");
  const std::string host = objects.server().Url("");
  EXPECT_EQ(MustOpenOne(host + "/a.lines?sig=x")->examples().name(), "line");
  EXPECT_EQ(MustOpenOne(host + "/a?name=.lines")->examples().name(), "tf.train.Example");
}

// If a caller may not list a bucket, the bucket answers 403 for a missing object.
TEST(ShardFormatsTest, AForbiddenIndexOfAWebShardCountsAsMissing) {
  StubObjects objects;
  const std::string name = objects.Put("/a.tfrecord", ShardBuilder().Add("abc").Build());
  objects.SetFault([](const StubRequest& request) -> std::optional<StubAnswer> {
    if (request.target == "/a.tfrecord") return std::nullopt;
    return Reply(403, "");
  });
  const auto shard = MustOpenOne(name);
  EXPECT_EQ(shard->num_records(), 1);
  EXPECT_THAT(shard->note(), AllOf(HasSubstr("not kept"), Not(HasSubstr("not used"))));
}

TEST(ShardFormatsTest, EveryFormatHasANameAndOneWayToOpenAndTFRecordIsFirst) {
  ASSERT_FALSE(ShardFormats().empty());
  EXPECT_EQ(ShardFormats().front()->name, "TFRecord");
  EXPECT_THAT(ShardFormats().front()->ending, IsEmpty());
  for (const ShardFormat* format : ShardFormats()) {
    EXPECT_FALSE(format->name.empty());
    // In a format, each record is either a part of a file or a whole file.
    EXPECT_NE(format->open == nullptr, format->open_group == nullptr) << format->name;
    EXPECT_EQ(format->is_record == nullptr, format->open_group == nullptr) << format->name;
  }
}

TEST(ShardFormatsTest, EachFileIsAShardButImageFilesTogetherFormOneShard) {
  const auto shards = GroupShards({"/d/b", "/d/a.tar"});
  ASSERT_THAT(shards, IsOk());
  ASSERT_EQ(shards->size(), 2u);
  EXPECT_EQ((*shards)[0].path, "/d/b");
  EXPECT_FALSE((*shards)[1].is_group());
  EXPECT_EQ(IndexPathOf((*shards)[1], ""), "/d/a.tar.idx");
  const auto images = GroupShards({"/d/b/1.jpg", "/d/a/2.png"});
  ASSERT_THAT(images, IsOk());
  ASSERT_EQ(images->size(), 1u);
  EXPECT_EQ((*images)[0].path, "/d");
  EXPECT_EQ((*images)[0].group.files, (std::vector<std::string>{"/d/a/2.png", "/d/b/1.jpg"}));
  EXPECT_EQ(IndexPathOf((*images)[0], ""), "/d/images.idx");
  // kFormats has no format of images, so each image is a shard.
  EXPECT_EQ(GroupShards({"/d/a/1.jpg", "/d/a/2.jpg"}, kFormats)->size(), 2u);
  EXPECT_THAT(GroupShards({"/d/b/1.jpg", "/d/b/notes"}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr("\"1.jpg\""), HasSubstr("\"notes\" is not"))));
}

// Writes the shard "a" of two records. Its index fits the shard, but says that they are one record.
void WriteWithFalseIndex(const TempFolder& folder) {
  ShardBuilder().Add("abc").Add("de").WriteTo(folder / "a");
  EXPECT_EQ(MustOpenOne(folder / "a")->num_records(), 2);
  folder.Write("a.idx", "0 37\n");
  folder.Write("a.idx.hash",
               absl::StrReplaceAll(ReadWholeFile(folder / "a.idx.hash"), {{" 2 0 ", " 1 0 "}}));
  EXPECT_EQ(MustOpenOne(folder / "a")->num_records(), 1);
}

TEST(ShardFormatsTest, AnIgnoredIndexIsNeitherBelievedNorWritten) {
  const TempFolder folder;
  WriteWithFalseIndex(folder);
  const std::string hash = ReadWholeFile(folder / "a.idx.hash");
  const auto shard = OpenShard(folder / "a", {.index_use = IndexUse::kIgnore});
  ASSERT_THAT(shard, IsOk());
  EXPECT_EQ((*shard)->note(), "");
  EXPECT_EQ((*shard)->num_records(), 2);
  EXPECT_THAT(folder.List(), ElementsAre("a", "a.idx", "a.idx.hash"));
  EXPECT_EQ(ReadWholeFile(folder / "a.idx"), "0 37\n");
  EXPECT_EQ(ReadWholeFile(folder / "a.idx.hash"), hash);
}

TEST(ShardFormatsTest, ARebuildReplacesTheIndexAndFailsIfItCannotBeWritten) {
  const TempFolder folder;
  WriteWithFalseIndex(folder);
  const auto shard = OpenShard(folder / "a", {.index_use = IndexUse::kRebuild});
  ASSERT_THAT(shard, IsOk());
  EXPECT_EQ((*shard)->note(), "");
  EXPECT_EQ((*shard)->num_records(), 2);
  EXPECT_EQ(ReadWholeFile(folder / "a.idx"), "0 19\n19 18\n");
  EXPECT_THAT(
      OpenShard(folder / "a", {.index_dir = folder / "none", .index_use = IndexUse::kRebuild}),
      StatusIs(absl::StatusCode::kPermissionDenied, HasSubstr("index not kept")));
}

}  // namespace
}  // namespace systole
