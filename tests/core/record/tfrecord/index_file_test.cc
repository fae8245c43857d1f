#include "core/record/tfrecord/index_file.h"

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "core/checksum/xxh3.h"
#include "core/record/source/index_path.h"
#include "core/record/tfrecord/dali_index.h"
#include "core/record/tfrecord/scan_shard.h"
#include "core/storage/memory_source.h"
#include "core/storage/stores/stored_file.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/core/record/tfrecord/shard_builder.h"
#include "tests/core/storage/error_source.h"
#include "tests/core/storage/temp_folder.h"
#include "tests/status_matchers.h"

namespace systole {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::MatchesRegex;
using ::testing::Not;

ShardBuilder TwoRecords() { return ShardBuilder().Add("abc").Add("defg"); }
constexpr char kTwoRecordsIndex[] = "0 19\n19 20\n";

LoadedIndex MustLoad(const std::string& path, const IndexFileOptions& options = {}) {
  absl::StatusOr<std::unique_ptr<ByteSource>> shard = OpenStored(path);
  EXPECT_THAT(shard, IsOk());
  absl::StatusOr<LoadedIndex> loaded = LoadIndex(**shard, (*shard)->identity(), options);
  EXPECT_THAT(loaded, IsOk());
  return *std::move(loaded);
}

TEST(IndexPathTest, LiesBesideTheShard) {
  EXPECT_EQ(IndexPath("dir/a.tfrecord", ""), "dir/a.tfrecord.idx");
}

// The ending ".idx" must stand before the query. A server that ignores queries would send the shard
// if it were asked for "a.tfrecord?v=1.idx".
TEST(IndexPathTest, TheIndexBesideAWebShardHasTheQueryOfTheShard) {
  const std::string index = IndexPath("https://host/a.tfrecord?v=1", "");
  EXPECT_EQ(index, "https://host/a.tfrecord.idx?v=1");
  EXPECT_EQ(RestartPath(index), "https://host/a.tfrecord.idx.restart?v=1");
  EXPECT_EQ(IndexPath("https://host/a.tfrecord", ""), "https://host/a.tfrecord.idx");
  EXPECT_EQ(IndexPath("dir/a?b", ""), "dir/a?b.idx");
  EXPECT_THAT(IndexPath("https://host/a?sig=secret", "/idx"), MatchesRegex("/idx/a-.{16}\\.idx"));
}

TEST(LoadIndexTest, NotesShowNoSecretOfAnAddress) {
  // The test sends no request, because an address with a password is refused first.
  const ErrorSource shard(TwoRecords().Build(), "https://user:secret@host/a.tfrecord?sig=secret");
  const absl::StatusOr<LoadedIndex> loaded = LoadIndex(shard, "", {});
  ASSERT_THAT(loaded, IsOk());
  EXPECT_THAT(loaded->note, AllOf(HasSubstr("index \"https://...@host/a.tfrecord.idx\" not used"),
                                  HasSubstr("index not kept"), Not(HasSubstr("secret"))));
}

TEST(IndexPathTest, InAnIndexFolderTheNameHoldsAHashOfTheAbsolutePath) {
  EXPECT_THAT(IndexPath("/x/a.tfrecord", "/idx"),
              MatchesRegex("/idx/a\\.tfrecord-[0-9a-f]{16}\\.idx"));
  EXPECT_EQ(IndexPath("/x/a.tfrecord", "/idx"),
            absl::StrFormat("/idx/a.tfrecord-%016x.idx", Xxh3("/x/a.tfrecord")));
  EXPECT_NE(IndexPath("/x/a.tfrecord", "/idx"), IndexPath("/y/a.tfrecord", "/idx"));
  const std::string here = std::filesystem::current_path().string();
  EXPECT_EQ(IndexPath("a.tfrecord", "/idx"), IndexPath(here + "/a.tfrecord", "/idx"));
  EXPECT_EQ(IndexPath("/x/./z/../a.tfrecord", "/idx"), IndexPath("/x/a.tfrecord", "/idx"));
}

TEST(LoadIndexTest, NothingIsWrittenBesideAFileOfWhichNoRecordCanBeRead) {
  const TempFolder folder;
  for (const std::string& text : {std::string("some notes of mine"), std::string(5000, 'x')}) {
    folder.Write("notes.txt", text);
    EXPECT_TRUE(MustLoad(folder / "notes.txt").index.all_damaged());
    EXPECT_FALSE(std::filesystem::exists(folder / "notes.txt.idx"));
    EXPECT_FALSE(std::filesystem::exists(folder / "notes.txt.idx.hash"));
  }
}

TEST(LoadIndexTest, FirstLoadScansAndWritesDaliTextTheSecondReadsIt) {
  const TempFolder folder;
  TwoRecords().WriteTo(folder / "a.tfrecord");
  const LoadedIndex first = MustLoad(folder / "a.tfrecord");
  EXPECT_TRUE(first.scanned);
  EXPECT_EQ(first.note, "");
  EXPECT_EQ(ReadWholeFile(folder / "a.tfrecord.idx"), kTwoRecordsIndex);
  EXPECT_THAT(ReadWholeFile(folder / "a.tfrecord.idx.hash"),
              MatchesRegex("systole-hash-1 39 [0-9]+ 2 0 [0-9a-f]{16}\n"));
  EXPECT_THAT(folder.List(), ElementsAre("a.tfrecord", "a.tfrecord.idx", "a.tfrecord.idx.hash"));

  const LoadedIndex second = MustLoad(folder / "a.tfrecord");
  EXPECT_FALSE(second.scanned);
  EXPECT_EQ(second.note, "");
  EXPECT_EQ(DaliIndexText(second.index), kTwoRecordsIndex);
  EXPECT_EQ(second.content_hash, first.content_hash);
}

TEST(LoadIndexTest, EmptyShardHasAnEmptyIndexThatIsReadBack) {
  const TempFolder folder;
  folder.Write("a.tfrecord", "");
  EXPECT_TRUE(MustLoad(folder / "a.tfrecord").scanned);
  EXPECT_EQ(ReadWholeFile(folder / "a.tfrecord.idx"), "");
  const LoadedIndex loaded = MustLoad(folder / "a.tfrecord");
  EXPECT_FALSE(loaded.scanned);
  EXPECT_EQ(loaded.index.num_records(), 0);
}

TEST(LoadIndexTest, IndexThatDaliWroteIsUsedAndTheHashAdded) {
  const TempFolder folder;
  TwoRecords().WriteTo(folder / "a.tfrecord");
  folder.Write("a.tfrecord.idx", kTwoRecordsIndex);
  const LoadedIndex loaded = MustLoad(folder / "a.tfrecord");
  EXPECT_FALSE(loaded.scanned);
  EXPECT_EQ(loaded.note, "");
  EXPECT_EQ(loaded.content_hash, MustLoad(folder / "a.tfrecord", {.rebuild = true}).content_hash);
  EXPECT_TRUE(std::filesystem::exists(folder / "a.tfrecord.idx.hash"));
}

TEST(LoadIndexTest, KeptHashIsTrusted) {
  const TempFolder folder;
  TwoRecords().WriteTo(folder / "a.tfrecord");
  MustLoad(folder / "a.tfrecord");
  std::string hash = ReadWholeFile(folder / "a.tfrecord.idx.hash");
  hash.replace(hash.size() - 17, 16, "0123456789abcdef");
  folder.Write("a.tfrecord.idx.hash", hash);
  EXPECT_EQ(MustLoad(folder / "a.tfrecord").content_hash, 0x0123456789abcdefu);
}

TEST(LoadIndexTest, ARebuildScansAndReplacesAnIndexThatWouldBeUsed) {
  const TempFolder folder;
  TwoRecords().WriteTo(folder / "a.tfrecord");
  const uint64_t content_hash = MustLoad(folder / "a.tfrecord").content_hash;
  const std::string hash = ReadWholeFile(folder / "a.tfrecord.idx.hash");
  // The index and the hash file fit the shard and each other, but there is only one record.
  folder.Write("a.tfrecord.idx", "0 39\n");
  folder.Write("a.tfrecord.idx.hash", absl::StrReplaceAll(hash, {{" 2 0 ", " 1 0 "}}));
  const LoadedIndex used = MustLoad(folder / "a.tfrecord");
  EXPECT_FALSE(used.scanned);
  EXPECT_EQ(used.index.num_records(), 1);
  const LoadedIndex loaded = MustLoad(folder / "a.tfrecord", {.rebuild = true});
  EXPECT_TRUE(loaded.scanned);
  EXPECT_EQ(loaded.note, "");
  EXPECT_EQ(DaliIndexText(loaded.index), kTwoRecordsIndex);
  EXPECT_EQ(loaded.content_hash, content_hash);
  EXPECT_EQ(ReadWholeFile(folder / "a.tfrecord.idx"), kTwoRecordsIndex);
  EXPECT_EQ(ReadWholeFile(folder / "a.tfrecord.idx.hash"), hash);
}

TEST(LoadIndexTest, IndexThatDoesNotFitIsRebuiltWithANote) {
  for (const char* bad : {"", "0 19\n", "0 19\n19 21\n", "0 19\n19 20\n39 20\n", "garbage",
                          "19 20\n0 19\n", "0 19\n19 20"}) {
    const TempFolder folder;
    TwoRecords().WriteTo(folder / "a.tfrecord");
    folder.Write("a.tfrecord.idx", bad);
    const LoadedIndex loaded = MustLoad(folder / "a.tfrecord");
    EXPECT_TRUE(loaded.scanned) << bad;
    EXPECT_THAT(loaded.note, AllOf(HasSubstr(folder / "a.tfrecord.idx"), HasSubstr("not used")));
    EXPECT_EQ(DaliIndexText(loaded.index), kTwoRecordsIndex);
    EXPECT_EQ(ReadWholeFile(folder / "a.tfrecord.idx"), kTwoRecordsIndex);
  }
}

TEST(LoadIndexTest, HugeForeignFileUnderTheIndexNameIsNotRead) {
  const TempFolder folder;
  TwoRecords().WriteTo(folder / "a.tfrecord");
  folder.Write("a.tfrecord.idx", "");
  std::filesystem::resize_file(folder / "a.tfrecord.idx", uint64_t{1} << 40);  // Sparse.
  const LoadedIndex loaded = MustLoad(folder / "a.tfrecord");
  EXPECT_TRUE(loaded.scanned);
  EXPECT_THAT(loaded.note, HasSubstr("has 1099511627776 bytes, want at most"));
}

TEST(LoadIndexTest, AnIndexWithoutAHashFileIsJudgedByFramingNotByAge) {
  for (const int seconds : {-3600, 3600}) {
    const TempFolder folder;
    TwoRecords().WriteTo(folder / "a.tfrecord");
    folder.Write("a.tfrecord.idx", kTwoRecordsIndex);
    ShiftMtime(folder / "a.tfrecord.idx", seconds);
    const LoadedIndex good = MustLoad(folder / "a.tfrecord");
    EXPECT_FALSE(good.scanned);
    EXPECT_EQ(good.note, "");
    std::filesystem::remove(folder / "a.tfrecord.idx.hash");
    folder.Write("a.tfrecord.idx", "0 39\n");  // Fits the shard's size.
    ShiftMtime(folder / "a.tfrecord.idx", seconds);
    const LoadedIndex bad = MustLoad(folder / "a.tfrecord");
    EXPECT_TRUE(bad.scanned);
    EXPECT_THAT(bad.note, HasSubstr("1 of its records have damaged framing"));
    EXPECT_EQ(DaliIndexText(bad.index), kTwoRecordsIndex);
  }
}

TEST(LoadIndexTest, IndexFilesCopiedWithTheirTimesAreUsedForTheCopiedShard) {
  const TempFolder folder;
  for (const char* name : {"from", "to"}) std::filesystem::create_directory(folder / name);
  TwoRecords().WriteTo(folder / "from/a.tfrecord");
  const uint64_t hash = MustLoad(folder / "from/a.tfrecord").content_hash;
  for (const char* name : {"a.tfrecord", "a.tfrecord.idx", "a.tfrecord.idx.hash"}) {
    const std::string from = folder / "from/" + name;
    const std::string to = folder / "to/" + name;
    std::filesystem::copy_file(from, to);
    std::filesystem::last_write_time(to, std::filesystem::last_write_time(from));
  }
  const LoadedIndex loaded = MustLoad(folder / "to/a.tfrecord");
  EXPECT_FALSE(loaded.scanned);
  EXPECT_EQ(loaded.note, "");
  EXPECT_EQ(loaded.content_hash, hash);
  // If the copy's time is not the time in the hash file, the index is made again.
  ShiftMtime(folder / "to/a.tfrecord", 1);
  EXPECT_TRUE(MustLoad(folder / "to/a.tfrecord").scanned);
  EXPECT_FALSE(MustLoad(folder / "to/a.tfrecord").scanned);
}

TEST(LoadIndexTest, WithoutAnIdentityTheFramingIsCheckedEachTimeAndNoHashIsKept) {
  const TempFolder folder;
  const MemorySource shard(TwoRecords().Build(), folder / "a.tfrecord");
  for (const bool scanned : {true, false, false}) {
    const absl::StatusOr<LoadedIndex> loaded = LoadIndex(shard, shard.identity(), {});
    ASSERT_THAT(loaded, IsOk());
    EXPECT_EQ(loaded->scanned, scanned);
    EXPECT_THAT(folder.List(), ElementsAre("a.tfrecord.idx"));
  }
  folder.Write("a.tfrecord.idx.hash", "systole-hash-1  2 0 0123456789abcdef\n");
  const absl::StatusOr<LoadedIndex> loaded = LoadIndex(shard, shard.identity(), {});
  ASSERT_THAT(loaded, IsOk());
  EXPECT_NE(loaded->content_hash, 0x0123456789abcdefu);
}

TEST(LoadIndexTest, ShardRewrittenWithEqualSizeAndAnOlderTimeIsScannedAgain) {
  // For example, an older file is copied over the shard and keeps its time. The index is then newer
  // than the shard, and only the hash file shows the change.
  const TempFolder folder;
  TwoRecords().WriteTo(folder / "a.tfrecord");
  const uint64_t before = MustLoad(folder / "a.tfrecord").content_hash;
  ShardBuilder().Add("abcd").Add("efg").WriteTo(folder / "a.tfrecord");
  ShiftMtime(folder / "a.tfrecord", -3600);
  const LoadedIndex loaded = MustLoad(folder / "a.tfrecord");
  EXPECT_TRUE(loaded.scanned);
  EXPECT_THAT(loaded.note, HasSubstr("another state of the shard"));
  EXPECT_EQ(DaliIndexText(loaded.index), "0 20\n20 19\n");
  EXPECT_NE(loaded.content_hash, before);
}

TEST(LoadIndexTest, GrownShardIsScannedAgain) {
  const TempFolder folder;
  TwoRecords().WriteTo(folder / "a.tfrecord");
  MustLoad(folder / "a.tfrecord");
  TwoRecords().Add("hi").WriteTo(folder / "a.tfrecord");
  const LoadedIndex loaded = MustLoad(folder / "a.tfrecord");
  EXPECT_TRUE(loaded.scanned);
  EXPECT_EQ(loaded.index.num_records(), 3);
  EXPECT_FALSE(MustLoad(folder / "a.tfrecord").scanned);
}

TEST(LoadIndexTest, DamagedHashFileIsMadeAgain) {
  const TempFolder folder;
  TwoRecords().WriteTo(folder / "a.tfrecord");
  const uint64_t hash = MustLoad(folder / "a.tfrecord").content_hash;
  const std::string good = ReadWholeFile(folder / "a.tfrecord.idx.hash");
  for (const std::string& bad :
       {std::string(), std::string("x"), good.substr(0, good.size() - 1), good + "x",
        good.substr(0, good.size() - 2) + "g\n", good.substr(0, good.size() - 1) + "0",
        absl::StrReplaceAll(good, {{" 2 ", " 3 "}}), absl::StrReplaceAll(good, {{"-1 ", "-2 "}}),
        absl::StrReplaceAll(good, {{" 0 ", " 1 "}}), absl::StrReplaceAll(good, {{" 0 ", " 3 "}}),
        good + "0 cause\n", std::string(40'000, 'x')}) {
    folder.Write("a.tfrecord.idx.hash", bad);
    const LoadedIndex loaded = MustLoad(folder / "a.tfrecord");
    EXPECT_EQ(loaded.content_hash, hash) << bad;
    EXPECT_THAT(loaded.note, HasSubstr("not used")) << bad;
    EXPECT_EQ(ReadWholeFile(folder / "a.tfrecord.idx.hash"), good);
  }
}

TEST(LoadIndexTest, DamageIsKeptWithTheIndex) {
  const TempFolder folder;
  ShardBuilder shard;
  for (int i = 0; i < 150; ++i) shard.Add("good").Add("good").AddRaw("bad");
  shard.WriteTo(folder / "a.tfrecord");
  const LoadedIndex first = MustLoad(folder / "a.tfrecord");
  const LoadedIndex second = MustLoad(folder / "a.tfrecord");
  EXPECT_FALSE(second.scanned);
  EXPECT_EQ(second.note, "");
  for (const LoadedIndex* loaded : {&first, &second}) {
    EXPECT_EQ(loaded->index.num_damaged(), 150);
    ASSERT_EQ(loaded->index.damaged().size(), kMaxDamagedListed);
    EXPECT_EQ(loaded->index.damaged()[99].record, 299);
    EXPECT_EQ(loaded->index.damaged()[99].span, loaded->index.span(299));
    EXPECT_EQ(loaded->index.damaged()[99].cause, first.index.damaged()[99].cause);
  }
}

TEST(LoadIndexTest, WithoutAHashFileAnIndexedShardIsScannedOnlyIfItHasDamage) {
  for (const bool damaged : {false, true}) {
    const TempFolder folder;
    ShardBuilder shard = TwoRecords();
    if (damaged) shard.AddRaw("bad");
    shard.WriteTo(folder / "a.tfrecord");
    MustLoad(folder / "a.tfrecord");
    const std::string hash = ReadWholeFile(folder / "a.tfrecord.idx.hash");
    std::filesystem::remove(folder / "a.tfrecord.idx.hash");
    const LoadedIndex loaded = MustLoad(folder / "a.tfrecord");
    EXPECT_EQ(loaded.scanned, damaged);
    EXPECT_THAT(loaded.note, damaged ? HasSubstr("have damaged framing") : HasSubstr(""));
    EXPECT_EQ(loaded.index.num_damaged(), damaged ? 1 : 0);
    EXPECT_EQ(ReadWholeFile(folder / "a.tfrecord.idx.hash"), hash);
  }
}

TEST(LoadIndexTest, RecordsThatAnIndexMergesIntoADamagedRecordAreFound) {
  const TempFolder folder;
  std::string bytes = ShardBuilder().Add("abc").Add("defg").Add("hi").Add("j").Build();
  bytes = WithFlippedBit(WithFlippedBit(bytes, 0), 8 * 39);
  folder.Write("a.tfrecord", bytes);
  folder.Write("a.tfrecord.idx", "0 57\n57 17\n");  // "abc", "defg" and "hi" as one record.
  const LoadedIndex loaded = MustLoad(folder / "a.tfrecord");
  EXPECT_TRUE(loaded.scanned);
  EXPECT_EQ(loaded.index.num_records(), 4);
  EXPECT_EQ(loaded.index.num_damaged(), 2);
}

TEST(LoadIndexTest, AnInvalidDamageListInTheHashFileIsMadeAgain) {
  const TempFolder folder;
  TwoRecords().AddRaw("bad").WriteTo(folder / "a.tfrecord");
  MustLoad(folder / "a.tfrecord");
  const std::string good = ReadWholeFile(folder / "a.tfrecord.idx.hash");
  const size_t list = good.find('\n') + 1;
  for (const std::string& bad :
       {good.substr(0, list), good.substr(0, list) + "3 beyond\n", good + good.substr(list),
        good.substr(0, list) + "2 " + std::string(300, 'x') + "\n", good.substr(0, list) + "2"}) {
    folder.Write("a.tfrecord.idx.hash", bad);
    const LoadedIndex loaded = MustLoad(folder / "a.tfrecord");
    EXPECT_THAT(loaded.note, HasSubstr("not used")) << bad;
    EXPECT_EQ(loaded.index.num_damaged(), 1);
    EXPECT_EQ(ReadWholeFile(folder / "a.tfrecord.idx.hash"), good);
  }
}

TEST(LoadIndexTest, IndexFolderKeepsShardsOfOneNameApart) {
  const TempFolder folder;
  for (const char* name : {"x", "y", "idx"}) std::filesystem::create_directory(folder / name);
  TwoRecords().WriteTo(folder / "x/a.tfrecord");
  ShardBuilder().Add("hi").WriteTo(folder / "y/a.tfrecord");
  const IndexFileOptions options = {.index_dir = folder / "idx"};
  for (const bool scanned : {true, false}) {
    const LoadedIndex x = MustLoad(folder / "x/a.tfrecord", options);
    const LoadedIndex y = MustLoad(folder / "y/a.tfrecord", options);
    EXPECT_EQ(x.scanned, scanned);
    EXPECT_EQ(y.scanned, scanned);
    EXPECT_EQ(x.index.num_records(), 2);
    EXPECT_EQ(y.index.num_records(), 1);
    EXPECT_EQ(x.note, "");
  }
  EXPECT_FALSE(std::filesystem::exists(folder / "x/a.tfrecord.idx"));
  EXPECT_EQ(ReadWholeFile(IndexPath(folder / "x/a.tfrecord", folder / "idx")), kTwoRecordsIndex);
}

TEST(LoadIndexTest, AnUnwritableIndexFolderGivesANoteAndAUsableIndex) {
  const TempFolder folder;
  TwoRecords().WriteTo(folder / "a.tfrecord");
  const LoadedIndex loaded = MustLoad(folder / "a.tfrecord", {.index_dir = folder / "none"});
  EXPECT_TRUE(loaded.scanned);
  EXPECT_EQ(loaded.index.num_records(), 2);
  EXPECT_THAT(loaded.note, AllOf(HasSubstr("index not kept"), HasSubstr(folder / "none")));
}

TEST(LoadIndexTest, AFolderAtTheIndexPathGivesANoteAndAUsableIndex) {
  const TempFolder folder;
  TwoRecords().WriteTo(folder / "a.tfrecord");
  std::filesystem::create_directory(folder / "a.tfrecord.idx");
  const LoadedIndex loaded = MustLoad(folder / "a.tfrecord");
  EXPECT_EQ(loaded.index.num_records(), 2);
  EXPECT_THAT(loaded.note, AllOf(HasSubstr("is a folder"), HasSubstr("index not kept")));
}

TEST(LoadIndexTest, HashFileThatCannotBeWrittenIsANote) {
  const TempFolder folder;
  TwoRecords().WriteTo(folder / "a.tfrecord");
  std::filesystem::create_directory(folder / "a.tfrecord.idx.hash");
  const LoadedIndex loaded = MustLoad(folder / "a.tfrecord");
  EXPECT_EQ(loaded.index.num_records(), 2);
  EXPECT_THAT(loaded.note, HasSubstr("hash not kept"));
}

TEST(LoadIndexTest, ShardThatChangedSinceItWasOpenedIsFailedPreconditionAndNothingIsWritten) {
  const TempFolder folder;
  TwoRecords().WriteTo(folder / "a.tfrecord");
  absl::StatusOr<std::unique_ptr<ByteSource>> shard = OpenStored(folder / "a.tfrecord");
  ASSERT_THAT(shard, IsOk());
  ShiftMtime(folder / "a.tfrecord", 1);
  EXPECT_THAT(LoadIndex(**shard, (*shard)->identity(), {}),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("was rewritten")));
  EXPECT_THAT(folder.List(), ElementsAre("a.tfrecord"));
}

}  // namespace
}  // namespace systole
