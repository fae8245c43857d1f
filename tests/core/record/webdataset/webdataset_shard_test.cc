#include "core/record/webdataset/webdataset_shard.h"

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/compression/compressing_sink.h"
#include "core/record/shard_formats.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/core/record/must_open.h"
#include "tests/core/record/webdataset/archive_builder.h"
#include "tests/core/storage/temp_folder.h"
#include "tests/status_matchers.h"

namespace systole {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

ArchiveBuilder Three() {
  ArchiveBuilder builder;
  for (const char* key : {"a", "b", "c"}) {
    builder.Add(absl::StrCat(key, ".txt"), absl::StrCat("text of ", key))
        .Add(absl::StrCat(key, ".cls"), "1");
  }
  return builder;
}

// Overwrites a file with `bytes`, and keeps the file's time of modification.
void Overwrite(const TempFolder& folder, const std::string& name, const std::string& bytes) {
  const auto written = std::filesystem::last_write_time(folder / name);
  folder.Write(name, bytes);
  std::filesystem::last_write_time(folder / name, written);
}

TEST(WebDatasetShardTest, SamplesAreReadInAnyOrderInPlaceAndCopied) {
  const TempFolder folder;
  const std::string archive = Three().Build();
  const auto shard = MustOpen(folder.Write("a.tar", archive));
  EXPECT_EQ(shard->num_records(), 3);
  EXPECT_EQ(shard->size_bytes(), archive.size());
  EXPECT_EQ(shard->file_bytes(), archive.size());
  EXPECT_EQ(shard->payload_bytes().least, 2048);
  EXPECT_EQ(shard->payload_bytes().most, 2048);
  EXPECT_EQ(shard->examples().name(), "WebDataset sample");
  EXPECT_THAT(shard->CheckHoldsRecords(), IsOk());
  EXPECT_THAT(folder.List(), ElementsAre("a.tar", "a.tar.idx"));
  AlignedBuffer scratch;
  for (const RecordBytes bytes : {RecordBytes::kInPlace, RecordBytes::kCopied}) {
    std::vector<std::string> read;
    EXPECT_THAT(shard->ReadRecords({2, 0, 1}, bytes, 1 << 20, scratch,
                                   [&](size_t, absl::StatusOr<absl::string_view> payload) {
                                     read.emplace_back(*payload);
                                     return absl::OkStatus();
                                   }),
                IsOk());
    EXPECT_THAT(read, ElementsAre(archive.substr(4096, 2048), archive.substr(0, 2048),
                                  archive.substr(2048, 2048)));
  }
}

TEST(WebDatasetShardTest, AnArchiveIsDetectedByContentOrFileName) {
  const TempFolder folder;
  EXPECT_EQ(MustOpen(folder.Write("no-name", Three().Build()))->num_records(), 3);
  std::string damaged = Three().Build();
  damaged[0] = 'x';
  EXPECT_EQ(MustOpen(folder.Write("a.tar", damaged))->num_records(), 3);
  EXPECT_EQ(MustOpen(folder.Write("b", damaged))->examples().name(), "tf.train.Example");
}

TEST(WebDatasetShardTest, CompressedArchivesHoldWhatPlainOnesHold) {
  const TempFolder folder;
  const auto plain = MustOpen(folder.Write("a.tar", Three().Build()));
  for (const Compression compression :
       {Compression::kGzip, Compression::kZlib, Compression::kZstd}) {
    std::string compressed;
    auto sink = CompressingSink(std::make_unique<StringSink>(&compressed), compression);
    ASSERT_THAT(sink, IsOk());
    ASSERT_THAT((*sink)->Append(Three().Build()), IsOk());
    ASSERT_THAT((*sink)->Close(), IsOk());
    const std::string path =
        folder.Write(absl::StrCat("a.tar.", CompressionName(compression)), compressed);
    for (int again = 0; again < 2; ++again) {
      const auto shard = MustOpen(path);
      EXPECT_EQ(shard->note(), "");
      EXPECT_EQ(shard->content_hash(), plain->content_hash());
      AlignedBuffer scratch, plain_scratch;
      for (int64_t i = 2; i >= 0; --i) {
        EXPECT_EQ(*shard->ReadRecord(i, scratch), *plain->ReadRecord(i, plain_scratch));
      }
    }
  }
}

TEST(WebDatasetShardTest, TheContentHashDependsOnSamplesNotOnPadding) {
  const TempFolder folder;
  const uint64_t hash = MustOpen(folder.Write("a.tar", Three().Build()))->content_hash();
  EXPECT_EQ(MustOpen(folder / "a.tar")->content_hash(), hash);  // From the index this time.
  EXPECT_EQ(
      MustOpen(folder.Write("b.tar", Three().bytes() + std::string(9000, '\0')))->content_hash(),
      hash);
  std::string other = Three().Build();
  other[600] = 'x';
  EXPECT_NE(MustOpen(folder.Write("c.tar", other))->content_hash(), hash);
}

TEST(WebDatasetShardTest, ASampleChangedAfterIndexingFailsItsChecksum) {
  const TempFolder folder;
  std::string bytes = Three().Build();
  MustOpen(folder.Write("a.tar", bytes));
  bytes[2048 + 520] ^= 1;  // In b's text.
  Overwrite(folder, "a.tar", bytes);
  const auto shard = MustOpen(folder / "a.tar");
  AlignedBuffer scratch;
  EXPECT_THAT(shard->ReadRecord(0, scratch), IsOk());
  EXPECT_THAT(shard->ReadRecord(1, scratch),
              StatusIs(absl::StatusCode::kDataLoss,
                       AllOf(HasSubstr("shard \"a.tar\", record 1 at byte offset 2048: CRC-32C of "
                                       "the sample is 0x"),
                             HasSubstr("the index says 0x"), Not(HasSubstr(folder.path())))));
  EXPECT_THAT(shard->ReadRecord(2, scratch), IsOk());
  // With kIgnore the archive is scanned. The samples' CRC-32Cs are still compared with those in the
  // index, so the changed sample is found.
  const auto scanned = OpenShard(folder / "a.tar", {.index_use = IndexUse::kIgnore});
  ASSERT_THAT(scanned, IsOk());
  ASSERT_EQ((*scanned)->num_damaged(), 1);
  EXPECT_EQ((*scanned)->damaged()[0].record, 1);
  EXPECT_THAT((*scanned)->damaged()[0].cause, HasSubstr("CRC-32C"));
  EXPECT_THAT((*scanned)->ReadRecord(1, scratch),
              StatusIs(absl::StatusCode::kDataLoss, HasSubstr("CRC-32C")));
}

TEST(WebDatasetShardTest, DamageFoundByTheScanStaysDamageThroughTheIndex) {
  const TempFolder folder;
  std::string bytes = Three().Build();
  bytes[2048] = '?';  // The header of b's first file.
  folder.Write("a.tar", bytes);
  for (int again = 0; again < 2; ++again) {
    const auto shard = MustOpen(folder / "a.tar");
    EXPECT_EQ(shard->num_damaged(), 2);
    AlignedBuffer scratch;
    for (const int64_t record : {0, 1}) {
      EXPECT_THAT(shard->ReadRecord(record, scratch),
                  StatusIs(absl::StatusCode::kDataLoss, HasSubstr("the sum of the tar header is")));
    }
    EXPECT_THAT(shard->ReadRecord(2, scratch), IsOk());
  }
}

TEST(WebDatasetShardTest, SamplesWhoseDamageIsNotListedAreDataLossToo) {
  const TempFolder folder;
  ArchiveBuilder builder;
  for (int i = 0; i < 150; ++i) builder.Add(absl::StrCat(i, ".x"), "").Add("", "no record", 'x');
  const auto shard = MustOpen(folder.Write("a.tar", builder.Add("last.x", "").Build()));
  AlignedBuffer scratch;
  EXPECT_THAT(shard->ReadRecord(149, scratch),
              StatusIs(absl::StatusCode::kDataLoss, HasSubstr("damaged when the archive")));
  EXPECT_THAT(
      shard->CheckHoldsRecords(),
      StatusIs(absl::StatusCode::kDataLoss, AllOf(HasSubstr("holds no record that can be read"),
                                                  HasSubstr("want a whole WebDataset shard"))));
}

TEST(WebDatasetShardTest, ASampleOverTheLimitIsResourceExhausted) {
  const TempFolder folder;
  const auto shard =
      OpenShard(folder.Write("a.tar", Three().Add("d.x", std::string(5000, 'x')).Build()),
                {.max_record_bytes = 4096});
  ASSERT_THAT(shard, IsOk());
  AlignedBuffer scratch;
  EXPECT_THAT((*shard)->ReadRecord(0, scratch), IsOk());
  EXPECT_THAT((*shard)->ReadRecord(3, scratch),
              StatusIs(absl::StatusCode::kResourceExhausted, HasSubstr("has 5632 bytes")));
}

TEST(WebDatasetShardTest, AnIndexOfAnotherStateIsMadeAnewWithANote) {
  const TempFolder folder;
  MustOpen(folder.Write("a.tar", Three().Build()));
  folder.Write("a.tar", Three().Add("d.x", "").Build());
  const auto shard = MustOpen(folder / "a.tar");
  EXPECT_EQ(shard->num_records(), 4);
  EXPECT_THAT(shard->note(), HasSubstr("not used: index was made for another state"));
  EXPECT_EQ(MustOpen(folder / "a.tar")->note(), "");
  folder.Write("a.tar.idx", "0 512\n");
  EXPECT_THAT(MustOpen(folder / "a.tar")->note(), HasSubstr("is not an index of samples"));
}

TEST(WebDatasetShardTest, AnIndexThatCannotBeWrittenGivesANoteAndFailsARebuild) {
  const TempFolder folder;
  folder.Write("a.tar", Three().Build());
  const auto shard = OpenShard(folder / "a.tar", {.index_dir = folder / "none"});
  ASSERT_THAT(shard, IsOk());
  EXPECT_THAT((*shard)->note(), HasSubstr("index not kept"));
  EXPECT_THAT(
      OpenShard(folder / "a.tar", {.index_dir = folder / "none", .index_use = IndexUse::kRebuild}),
      StatusIs(absl::StatusCode::kPermissionDenied, HasSubstr("index not kept")));
  EXPECT_THAT(OpenShard(folder / "a.tar", {.index_use = IndexUse::kIgnore}), IsOk());
  EXPECT_THAT(folder.List(), ElementsAre("a.tar"));
}

TEST(WebDatasetShardTest, NothingIsWrittenBesideAFileOfWhichNoSampleCanBeRead) {
  const TempFolder folder;
  folder.Write("a.tar", std::string(2048, 'x'));
  for (const IndexUse use : {IndexUse::kUse, IndexUse::kRebuild}) {
    const auto shard = OpenShard(folder / "a.tar", {.index_use = use});
    ASSERT_THAT(shard, IsOk());
    EXPECT_THAT((*shard)->CheckHoldsRecords(),
                StatusIs(absl::StatusCode::kDataLoss, HasSubstr("want a whole WebDataset shard")));
  }
  EXPECT_THAT(folder.List(), ElementsAre("a.tar"));
}

TEST(WebDatasetShardTest, AnEmptyFileHoldsNoRecords) {
  const TempFolder folder;
  const auto shard = MustOpen(folder.Write("a.tar", ""));
  EXPECT_EQ(shard->num_records(), 0);
  EXPECT_THAT(shard->damaged(), IsEmpty());
  EXPECT_THAT(shard->CheckHoldsRecords(), IsOk());
}

}  // namespace
}  // namespace systole
