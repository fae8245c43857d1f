#include "core/record/images/read_images.h"

#include <atomic>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "core/concurrency/mutex.h"
#include "core/concurrency/worker_pool.h"
#include "core/interrupt/interrupt.h"
#include "core/record/images/group_index.h"
#include "core/record/images/image_record.h"
#include "core/record/shard_formats.h"
#include "core/storage/byte_sink.h"
#include "core/storage/memory/memory_store.h"
#include "core/storage/stores/stored_file.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/core/http/stub_objects.h"
#include "tests/core/record/images/image_files.h"
#include "tests/core/record/tfrecord/shard_builder.h"
#include "tests/status_matchers.h"

namespace systole {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;

using ReadImagesTest = ImageFilesTest;

// Opening a shard does not read a file whose size and time are those in the index. So if only the
// bytes of a file change, this is noticed when a record is read, not at the opening.
TEST_F(ReadImagesTest, OnlyNewFilesAndFilesWithAChangedTimeAreReadAgain) {
  const uint64_t hash = MustOpenAll()->content_hash();
  const std::string index = ReadWholeFile(folder_ / "images.idx");
  ChangeUnnoticed("a/1.jpg");
  EXPECT_EQ(MustOpenAll()->content_hash(), hash);
  EXPECT_EQ(ReadWholeFile(folder_ / "images.idx"), index);

  folder_.Write("a/2.jpg", Jpeg(7));
  ShiftMtime(folder_ / "a/2.jpg", 60);
  folder_.Write("b/3.png", Png(1));
  const auto after = MustOpenAll();
  EXPECT_EQ(after->num_records(), 5);
  EXPECT_NE(ReadWholeFile(folder_ / "images.idx"), index);
  EXPECT_EQ(Read(*after)[1], ImageRecord(Jpeg(7), {.name = "a", .label = 0},
                                         {.height = 8, .width = 12, .channels = 3}));
  AlignedBuffer scratch;
  EXPECT_THAT(after->ReadRecord(0, scratch),  // The first read of the changed bytes.
              StatusIs(absl::StatusCode::kDataLoss, HasSubstr("CRC-32C")));
  EXPECT_NE(MustOpenAll({.index_use = IndexUse::kRebuild})->content_hash(), after->content_hash());
}

TEST_F(ReadImagesTest, GlobsOverOneFolderShareItsIndex) {
  ASSERT_THAT(Open(folder_ / "b/*"), IsOk());
  ASSERT_THAT(Open(folder_ / "a/*"), IsOk());
  const std::string both = ReadWholeFile(folder_ / "images.idx");
  EXPECT_THAT(both, AllOf(HasSubstr("a/1.jpg"), HasSubstr("b/1.png")));
  MustOpenAll();
  EXPECT_EQ(ReadWholeFile(folder_ / "images.idx"), both);
  // kRebuild makes the index anew, with only the files that the glob matches.
  ASSERT_THAT(Open(folder_ / "a/*", {.index_use = IndexUse::kRebuild}), IsOk());
  EXPECT_THAT(ReadWholeFile(folder_ / "images.idx"), Not(HasSubstr("b/1.png")));
}

TEST_F(ReadImagesTest, IndexLinesOfDeletedFilesAreDropped) {
  std::filesystem::create_directory(folder_ / "c");
  folder_.Write("c/1.jpg", Jpeg(4));
  MustOpenAll();
  for (const std::string to : {"x.jpg", "y.jpg", "z.jpg"}) {
    const auto file = std::filesystem::directory_iterator(folder_ / "a")->path();
    std::filesystem::rename(file, folder_ / ("a/" + to));
    ShiftMtime(folder_ / ("a/" + to), 60);
    std::filesystem::remove_all(folder_ / "c");
    ASSERT_THAT(Open(folder_ / "a/*"), IsOk());
    EXPECT_THAT(ReadWholeFile(folder_ / "images.idx"),
                AllOf(HasSubstr("systole-images-1 4 "), HasSubstr("a/" + to), HasSubstr("b/1.png"),
                      HasSubstr("b/2.PNG"), Not(HasSubstr("c/1.jpg"))));
  }
}

// An index may have lines of files that the glob does not match. In a local folder, the lines of
// files that no longer exist are dropped. In other stores nothing looks for the files, and such
// lines stay. So the number of lines that the glob does not match is bounded.
TEST_F(ReadImagesTest, AStoreIndexDropsLinesOfUnlistedFilesIfTheyAreTooMany) {
  MemoryStore& store = MemoryStore::OfProcess();
  for (const bool too_many : {false, true}) {
    SCOPED_TRACE(too_many);
    const std::string root = absl::StrCat("mem://others/", too_many, "/");
    ASSERT_THAT(store.Put(root + "z/1.jpg", Jpeg(1)), IsOk());
    std::string index;
    StringSink sink(&index);
    ASSERT_THAT(WriteImageIndex(
                    [&](absl::FunctionRef<void(absl::string_view)> take) {
                      const size_t count = kMostOtherFarLines + (too_many ? 1 : 0);
                      for (size_t i = 0; i < count; ++i) {
                        const std::string name = absl::StrFormat("a/%06d.jpg", i);
                        take(ImageIndexLineText({.name = name,
                                                 .identity = "1",
                                                 .facts = {.size = {.height = 1, .width = 1}},
                                                 .cause = ""}));
                      }
                    },
                    sink),
                IsOk());
    ASSERT_THAT(store.Put(root + "images.idx", index), IsOk());
    ASSERT_THAT(Open(root + "*/*"), IsOk());
    EXPECT_THAT(GetStored(root + "images.idx", 1 << 30),
                IsOkAndHolds(HasSubstr(too_many ? "systole-images-1 1 " : "-1 100001 ")));
  }
}

// The index may be from a release whose decoder refused the file.
TEST_F(ReadImagesTest, FilesThatTheIndexMarksAsDamagedAreReadAgain) {
  MustOpenAll();
  const std::string good = ReadWholeFile(folder_ / "images.idx");
  const absl::string_view lines = *CheckImageIndex(good);
  std::string refused;
  StringSink sink(&refused);
  ASSERT_THAT(WriteImageIndex(
                  [&lines](absl::FunctionRef<void(absl::string_view)> take) {
                    absl::string_view rest = lines;
                    ImageIndexLine first = TakeImageIndexLine(rest);
                    first.facts.size = {.height = 0, .width = 0, .channels = 0};
                    first.cause = "refused by an older release";
                    take(ImageIndexLineText(first));
                    while (!rest.empty()) take(ImageIndexLineText(TakeImageIndexLine(rest)));
                  },
                  sink),
              IsOk());
  folder_.Write("images.idx", refused);
  EXPECT_EQ(MustOpenAll()->num_damaged(), 0);
  EXPECT_EQ(ReadWholeFile(folder_ / "images.idx"), good);

  // At the second opening the index already calls the file damaged, so the index is not written.
  folder_.Write("a/1.jpg", "text");
  MustOpenAll();
  ShiftMtime(folder_ / "images.idx", -60);
  const auto time = std::filesystem::last_write_time(folder_ / "images.idx");
  EXPECT_EQ(MustOpenAll()->num_damaged(), 1);
  EXPECT_EQ(std::filesystem::last_write_time(folder_ / "images.idx"), time);
}

TEST_F(ReadImagesTest, ADamagedIndexIsMadeAnewWithANote) {
  MustOpenAll();
  const std::string good = ReadWholeFile(folder_ / "images.idx");
  std::string bad = good;
  bad[bad.size() / 2] ^= 1;
  folder_.Write("images.idx", bad);
  const auto shard = MustOpenAll();
  EXPECT_THAT(shard->note(), AllOf(HasSubstr("images.idx"), HasSubstr("not used")));
  EXPECT_EQ(shard->num_records(), 4);
  EXPECT_EQ(ReadWholeFile(folder_ / "images.idx"), good);
}

// The index of the shard "images" and the index of the images have the same file name. So opening
// the shard replaces the images' index, and opening the images replaces the shard's index.
TEST_F(ReadImagesTest, AShardAndAnImageGroupWithTheSameIndexPathAreBothRead) {
  const std::string shard = folder_.Write("images", ShardBuilder().Add("payload").Build());
  const std::vector<std::string> images = Read(*MustOpenAll());
  for (const std::string& index_dir : {std::string(), folder_ / "b"}) {
    for (int i = 0; i < 2; ++i) {
      const auto records = OpenShard(shard, {.index_dir = index_dir});
      ASSERT_THAT(records, IsOk());
      EXPECT_THAT(Read(**records), testing::ElementsAre("payload"));
      EXPECT_THAT((*records)->note(), HasSubstr(index_dir.empty() || i > 0 ? "not used" : ""));
      const auto group = MustOpenAll({.index_dir = index_dir});
      EXPECT_EQ(Read(*group), images);
      EXPECT_THAT(group->note(), HasSubstr("not used"));
    }
  }
}

// Most lines of such a large index would be about files outside the group, and only take memory.
TEST_F(ReadImagesTest, AServersIndexThatIsFarTooLargeIsNotRead) {
  StubObjects objects;
  std::atomic<int> fetched = 0;
  objects.SetFault([&](const StubRequest& request) -> std::optional<StubAnswer> {
    if (absl::EndsWith(request.target, "/images.idx") && request.method == "GET") ++fetched;
    return std::nullopt;
  });
  const auto note_with_index = [&](const std::string& root, std::string index) {
    objects.Put(root + "/images.idx", std::move(index));
    const std::string name = objects.Put(root + "/a/1.jpg", ReadWholeFile(folder_ / "a/1.jpg"));
    return OpenShard(GroupShards({name})->front()).value()->note();
  };
  EXPECT_THAT(note_with_index("/x", std::string(kMostFarIndexBytes + (1 << 20), '\0')),
              HasSubstr("has 17825792 bytes, want at most 16777"));
  EXPECT_EQ(fetched, 0);
  EXPECT_THAT(note_with_index("/y", "text"), HasSubstr("is not an index of images"));
  EXPECT_GT(fetched, 0);
}

TEST_F(ReadImagesTest, AnIndexThatCannotBeWrittenGivesANoteAndFailsARebuild) {
  const ShardOptions away = {.index_dir = folder_ / "none"};
  EXPECT_THAT(MustOpenAll(away)->note(), HasSubstr("index not kept"));
  EXPECT_THAT(
      Open(folder_ / "*/*", {.index_dir = folder_ / "none", .index_use = IndexUse::kRebuild}),
      StatusIs(absl::StatusCode::kPermissionDenied, HasSubstr("index not kept")));
  MustOpenAll({.index_use = IndexUse::kIgnore});
  EXPECT_THAT(folder_.List(), Not(Contains("images.idx")));
}

// No call of file_done returns before file_done was called for all four files.
TEST_F(ReadImagesTest, ImageFilesAreReadOnSeveralThreads) {
  WorkerPool pool(3);  // The calling thread works, too.
  Mutex mu;
  CondVar changed;
  int done = 0;
  const ShardOptions parallel = {.for_each =
                                     [&pool](int64_t count, absl::FunctionRef<void(int64_t)> work) {
                                       ParallelFor(pool, count, work);
                                     },
                                 .file_done =
                                     [&](uint64_t /*bytes*/) {
                                       MutexLock lock(mu);
                                       ++done;
                                       changed.SignalAll();
                                       while (done < 4) changed.Wait(mu);
                                     }};
  const auto shard = MustOpenAll(parallel);
  EXPECT_EQ(done, 4);
  EXPECT_EQ(Read(*shard), Read(*MustOpenAll()));
}

// The test looks at the files from the last one to the first one.
TEST_F(ReadImagesTest, TheFirstFailingFileInRecordOrderIsReported) {
  const auto shards = GroupShards(
      {folder_ / "a/1.jpg", folder_ / "a/none.jpg", folder_ / "b/1.png", folder_ / "b/none.png"});
  ASSERT_THAT(shards, IsOk());
  const ShardOptions backwards = {
      .for_each = [](int64_t count, absl::FunctionRef<void(int64_t)> work) {
        for (int64_t i = count - 1; i >= 0; --i) work(i);
      }};
  EXPECT_THAT(OpenShard(shards->front(), backwards),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("a/none.jpg")));
}

TEST_F(ReadImagesTest, OpeningForOneRecordReadsOnlyTheFileOfThisRecord) {
  folder_.Write("images.idx", "text");
  const std::vector<std::string> all = Read(*MustOpenAll({.index_use = IndexUse::kIgnore}));
  const auto shards = GroupShards(*ListShards({folder_ / "*/*"}));
  for (const char* gone : {"a/1.jpg", "a/2.jpg", "b/2.PNG"})
    std::filesystem::remove(folder_ / gone);
  int done = 0;
  const auto shard =
      OpenShard(shards->front(), {.file_done = [&done](uint64_t) { ++done; }, .only_record = 2});
  ASSERT_THAT(shard, IsOk());
  EXPECT_EQ(done, 1);
  EXPECT_EQ((*shard)->note(), "");
  EXPECT_EQ((*shard)->num_records(), 4);
  EXPECT_EQ((*shard)->PlaceOf(2), "record 2, the file \"b/1.png\"");
  AlignedBuffer scratch;
  EXPECT_THAT((*shard)->ReadRecord(2, scratch), IsOkAndHolds(absl::string_view(all[2])));
  EXPECT_FALSE((*shard)->ReadRecord(1, scratch).ok());
  EXPECT_EQ(ReadWholeFile(folder_ / "images.idx"), "text");
  for (const int64_t none : {-1, 4}) {
    EXPECT_THAT(OpenShard(shards->front(), {.only_record = none}),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("has 4 images")));
  }
}

TEST_F(ReadImagesTest, AnInterruptionStopsReadingBeforeTheNextFile) {
  InterruptFlag flag;
  const InterruptScope scope(flag);
  int done = 0;
  EXPECT_THAT(Open(folder_ / "*/*", {.file_done =
                                         [&](uint64_t /*bytes*/) {
                                           ++done;
                                           flag.Raise();
                                         }}),
              StatusIs(absl::StatusCode::kCancelled, testing::_));
  EXPECT_EQ(done, 1);  // The next file is not looked at.
}

TEST_F(ReadImagesTest, FilesReadBeforeAnErrorAreKeptInTheIndexExceptInARebuild) {
  const auto shards = GroupShards(
      {folder_ / "a/1.jpg", folder_ / "a/2.jpg", folder_ / "b/none.png", folder_ / "b/2.PNG"});
  ASSERT_THAT(shards, IsOk());
  const auto read = [&](IndexUse use) {
    EXPECT_THAT(OpenShard(shards->front(), {.index_use = use}),
                StatusIs(absl::StatusCode::kNotFound, HasSubstr("b/none.png")));
  };
  read(IndexUse::kRebuild);
  EXPECT_THAT(folder_.List(), Not(Contains("images.idx")));
  read(IndexUse::kUse);
  const std::string index = ReadWholeFile(folder_ / "images.idx");
  EXPECT_THAT(index, AllOf(HasSubstr("systole-images-1 3 "), HasSubstr("a/1.jpg"),
                           HasSubstr("a/2.jpg"), HasSubstr("b/2.PNG")));
  // At the second try all files that can be read are in the index, so the index is not written.
  ShiftMtime(folder_ / "images.idx", -60);
  const auto time = std::filesystem::last_write_time(folder_ / "images.idx");
  read(IndexUse::kUse);
  EXPECT_EQ(std::filesystem::last_write_time(folder_ / "images.idx"), time);
}

TEST_F(ReadImagesTest, AfterAnErrorTheIndexKeepsTheLinesOfFilesNotYetRead) {
  MustOpenAll();
  const auto shards = GroupShards(*ListShards({folder_ / "*/*"}));
  folder_.Write("a/1.jpg", Jpeg(1) + "x");
  std::filesystem::remove(folder_ / "a/2.jpg");
  EXPECT_THAT(OpenShard(shards->front()),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("a/2.jpg")));
  const std::string index = ReadWholeFile(folder_ / "images.idx");
  EXPECT_THAT(index, AllOf(HasSubstr(absl::StrCat("\n", Jpeg(1).size() + 1, " ")),
                           HasSubstr("b/1.png"), HasSubstr("b/2.PNG")));
}

TEST_F(ReadImagesTest, FilesReadBeforeAnInterruptionAreNotReadAgain) {
  const auto open = [this](int until, int& looked) {
    InterruptFlag flag;
    const InterruptScope scope(flag);
    return Open(folder_ / "*/*", {.file_done =
                                      [&](uint64_t /*bytes*/) {
                                        if (++looked == until) flag.Raise();
                                      }})
        .status();
  };
  int looked = 0;
  EXPECT_THAT(open(2, looked), StatusIs(absl::StatusCode::kCancelled, testing::_));
  EXPECT_THAT(ReadWholeFile(folder_ / "images.idx"), HasSubstr("systole-images-1 2 "));
  // Two files are in the index by now. Of these files only the size and the time are looked at.
  ChangeUnnoticed("a/1.jpg");
  EXPECT_THAT(open(100, looked), IsOk());
  EXPECT_THAT(ReadWholeFile(folder_ / "images.idx"), HasSubstr("systole-images-1 4 "));
  AlignedBuffer scratch;
  EXPECT_THAT(MustOpenAll()->ReadRecord(0, scratch),
              StatusIs(absl::StatusCode::kDataLoss, HasSubstr("CRC-32C")));
}

TEST_F(ReadImagesTest, AGroupOfOnlyDamagedFilesIsDataLossAndGetsNoIndex) {
  const auto shard = [&] {
    for (const char* name : {"a/1.jpg", "a/2.jpg", "b/1.png", "b/2.PNG"}) {
      folder_.Write(name, "text");
    }
    return MustOpenAll();
  }();
  EXPECT_THAT(shard->CheckHoldsRecords(),
              StatusIs(absl::StatusCode::kDataLoss,
                       AllOf(HasSubstr("none of the 4 image files"), HasSubstr("\"a/1.jpg\""))));
  EXPECT_THAT(folder_.List(), Not(Contains("images.idx")));
}

TEST_F(ReadImagesTest, MissingFilesAreNamedByTheirPathWhenTheGroupIsOpened) {
  const auto shards = GroupShards({folder_ / "a/1.jpg", folder_ / "a/none.jpg"});
  ASSERT_THAT(shards, IsOk());
  EXPECT_THAT(OpenShard(shards->front()),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr(folder_ / "a/none.jpg")));
}

}  // namespace
}  // namespace systole
