#include "core/record/images/image_folder.h"

#include <sys/fsuid.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/record/images/image_record.h"
#include "core/record/shard_formats.h"
#include "core/storage/memory/memory_store.h"
#include "core/storage/stores/stored_file.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/core/http/stub_objects.h"
#include "tests/core/record/images/image_files.h"
#include "tests/status_matchers.h"

namespace systole {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;

using ImageFolderTest = ImageFilesTest;

TEST_F(ImageFolderTest, ARecordHasTheFileItsClassAndItsSize) {
  const auto shard = MustOpenAll();
  ASSERT_EQ(shard->num_records(), 4);
  const ImageClass a = {.name = "a", .label = 0};
  const ImageClass b = {.name = "b", .label = 1};
  EXPECT_THAT(
      Read(*shard),
      testing::ElementsAre(ImageRecord(Jpeg(1), a, {.height = 8, .width = 12, .channels = 3}),
                           ImageRecord(Jpeg(2, 1), a, {.height = 8, .width = 12, .channels = 1}),
                           ImageRecord(Png(3), b, {.height = 4, .width = 5, .channels = 3}),
                           ImageRecord(Png(1), b, {.height = 4, .width = 5, .channels = 1})));
  EXPECT_EQ(shard->path(), folder_.path());
  EXPECT_EQ(shard->num_damaged(), 0);
  EXPECT_EQ(shard->note(), "");
  EXPECT_EQ(shard->FileOf(2), "b/1.png");
  EXPECT_EQ(shard->PlaceOf(2), "record 2, the file \"b/1.png\"");
  EXPECT_EQ(shard->file_bytes(),
            Jpeg(1).size() + Jpeg(2, 1).size() + Png(3).size() + Png(1).size());
  for (const std::string& record : Read(*shard)) {
    EXPECT_GE(static_cast<int64_t>(record.size()), shard->payload_bytes().least);
    EXPECT_LE(static_cast<int64_t>(record.size()), shard->payload_bytes().most);
  }
}

TEST_F(ImageFolderTest, ManyRecordsAreReadInTheOrderGiven) {
  const auto shard = MustOpenAll();
  const std::vector<std::string> all = Read(*shard);
  AlignedBuffer scratch;
  std::vector<std::string> got(3);
  const std::vector<int64_t> wanted = {3, 0, 1};
  EXPECT_THAT(shard->ReadRecords(wanted, RecordBytes::kInPlace, 1 << 20, scratch,
                                 [&](size_t place, absl::StatusOr<absl::string_view> payload) {
                                   EXPECT_THAT(payload, IsOk());
                                   got[place] = std::string(*payload);
                                   return absl::OkStatus();
                                 }),
              IsOk());
  EXPECT_THAT(got, testing::ElementsAre(all[3], all[0], all[1]));
  for (const int64_t record : {-1, 4}) {
    EXPECT_THAT(shard->ReadRecord(record, scratch),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("has 4 images")));
  }
}

TEST_F(ImageFolderTest, MemoryAndHttpStoresGiveTheRecordsAndHashOfALocalFolder) {
  std::filesystem::rename(folder_ / "a", folder_ / "\xc3\xa9 clair");
  std::filesystem::rename(folder_ / "b/1.png", folder_ / "b/\xc3\xbc 1.png");
  StubObjects objects;
  std::vector<std::string> names;
  for (const auto& [name, encoded] : std::vector<std::pair<std::string, std::string>>{
           {"\xc3\xa9 clair/1.jpg", "%C3%A9%20clair/1.jpg"},
           {"\xc3\xa9 clair/2.jpg", "%C3%A9%20clair/2.jpg"},
           {"b/\xc3\xbc 1.png", "b/%C3%BC%201.png"},
           {"b/2.PNG", "b/2.PNG"}}) {
    const std::string bytes = ReadWholeFile(folder_ / name);
    ASSERT_THAT(MemoryStore::OfProcess().Put("mem://images/x/" + name, bytes), IsOk());
    names.push_back(objects.Put("/x/" + encoded, bytes));
  }
  for (const std::string labels : {"", "z\n\xc3\xa9 clair\nb\n"}) {
    SCOPED_TRACE(labels);
    if (!labels.empty()) {
      folder_.Write("labels.txt", labels);
      ASSERT_THAT(MemoryStore::OfProcess().Put("mem://images/x/labels.txt", labels), IsOk());
      objects.Put("/x/labels.txt", labels);
    }
    const auto here = MustOpenAll();
    const auto there = Open("mem://images/x/*/*");
    const auto web = OpenShard(GroupShards(names)->front(), {.index_dir = folder_.path()});
    ASSERT_THAT(there, IsOk());
    ASSERT_THAT(web, IsOk());
    EXPECT_EQ(Read(**there), Read(*here));
    EXPECT_EQ((*there)->content_hash(), here->content_hash());
    EXPECT_EQ(Read(**web), Read(*here));
    EXPECT_EQ((*web)->content_hash(), here->content_hash());
  }
  EXPECT_THAT(GetStored("mem://images/x/images.idx", 1 << 20), IsOk());
}

TEST_F(ImageFolderTest, LabelsTxtNumbersTheClasses) {
  const uint64_t by_place = MustOpenAll()->content_hash();
  folder_.Write("labels.txt", "z\nb\na\n");
  const auto shard = Open(folder_ / "*/*");
  ASSERT_THAT(shard, IsOk());
  EXPECT_EQ(Read(**shard)[0], ImageRecord(Jpeg(1), {.name = "a", .label = 2},
                                          {.height = 8, .width = 12, .channels = 3}));
  EXPECT_NE((*shard)->content_hash(), by_place);
  // If a shard has only some of the classes, their labels still come from labels.txt.
  const auto some = Open(folder_ / "b/*");
  ASSERT_THAT(some, IsOk());
  EXPECT_EQ(Read(**some)[0], ImageRecord(Png(3), {.name = "b", .label = 1},
                                         {.height = 4, .width = 5, .channels = 3}));

  folder_.Write("labels.txt", "a\n");
  EXPECT_THAT(Open(folder_ / "*/*"),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("\"b\" has no line for it")));
  folder_.Write("labels.txt", "a\na\n");
  EXPECT_THAT(Open(folder_ / "*/*"),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("line above already")));
}

// If all images of a shard are in one folder, the shard has a single class. A note says so, unless
// labels.txt numbers the classes.
TEST_F(ImageFolderTest, ANoteReportsASingleClassWithoutLabelsTxt) {
  const auto one = Open(folder_ / "a/*");
  ASSERT_THAT(one, IsOk());
  EXPECT_THAT((*one)->note(), AllOf(HasSubstr("in the folder \"a\""), HasSubstr("label 0")));
  folder_.Write("labels.txt", "b\na\n");
  EXPECT_EQ((*Open(folder_ / "a/*"))->note(), "");
}

TEST_F(ImageFolderTest, DotDotAfterASymlinkResolvesFromTheLinksTarget) {
  const TempFolder project;
  std::filesystem::create_directories(folder_ / "deep/inside");
  std::filesystem::create_directory_symlink(folder_ / "deep/inside", project / "link");
  std::filesystem::rename(folder_ / "a", folder_ / "deep/a");
  project.Write("labels.txt", "b\na\n");
  folder_.Write("deep/labels.txt", "x\ny\na\n");
  const auto shard = Open(project / "link/../a/*");
  ASSERT_THAT(shard, IsOk());
  EXPECT_EQ(Read(**shard)[0], ImageRecord(Jpeg(1), {.name = "a", .label = 2},
                                          {.height = 8, .width = 12, .channels = 3}));
  EXPECT_TRUE(std::filesystem::exists(folder_ / "deep/images.idx"));
  EXPECT_THAT(project.List(), Not(Contains("images.idx")));
}

TEST_F(ImageFolderTest, TheContentHashDependsOnContentOnly) {
  const uint64_t hash = MustOpenAll()->content_hash();
  std::filesystem::rename(folder_ / "a/1.jpg", folder_ / "a/0.jpg");
  ShiftMtime(folder_ / "b/1.png", 60);
  EXPECT_EQ(MustOpenAll()->content_hash(), hash);
  folder_.Write("a/0.jpg", Jpeg(3));
  const uint64_t changed = MustOpenAll()->content_hash();
  EXPECT_NE(changed, hash);
  std::filesystem::rename(folder_ / "b", folder_ / "c");
  EXPECT_NE(MustOpenAll()->content_hash(), changed);  // The class's name is a feature.
}

TEST_F(ImageFolderTest, AFileThatIsNoImageIsADamagedRecord) {
  folder_.Write("a/1.jpg", "");
  folder_.Write("a/2.jpg", "GIF89a");
  folder_.Write("b/1.png", Jpeg(1).substr(0, 30));
  for (const bool indexed : {false, true}) {
    SCOPED_TRACE(indexed);
    const auto shard = MustOpenAll();
    EXPECT_EQ(shard->num_records(), 4);
    EXPECT_EQ(shard->num_damaged(), 3);
    ASSERT_EQ(shard->damaged().size(), 3u);
    EXPECT_EQ(shard->damaged()[1].cause, "the file is neither a JPEG nor a PNG");
    EXPECT_THAT(shard->CheckHoldsRecords(), IsOk());
    AlignedBuffer scratch;
    const auto damaged = [&](const std::string& file, const std::string& cause) {
      return StatusIs(absl::StatusCode::kDataLoss,
                      AllOf(HasSubstr(file), HasSubstr(cause), Not(HasSubstr(folder_.path()))));
    };
    EXPECT_THAT(shard->ReadRecord(0, scratch), damaged("\"a/1.jpg\"", "the file is empty"));
    EXPECT_THAT(shard->ReadRecord(1, scratch), damaged("\"a/2.jpg\"", "neither a JPEG nor a PNG"));
    EXPECT_THAT(shard->ReadRecord(2, scratch), damaged("\"b/1.png\"", "JPEG"));
    EXPECT_THAT(shard->ReadRecord(3, scratch), IsOk());
  }
}

TEST_F(ImageFolderTest, AFileOverTheSizeLimitIsRefusedAndNotIndexed) {
  const auto large = static_cast<int64_t>(Jpeg(1).size());
  ASSERT_GT(large, static_cast<int64_t>(Png(3).size()) + 100);
  const auto shard = MustOpenAll({.max_record_bytes = large});
  AlignedBuffer scratch;
  // The file has as many bytes as the limit allows. But the record has more bytes than the file.
  EXPECT_THAT(shard->ReadRecord(0, scratch),
              StatusIs(absl::StatusCode::kResourceExhausted, HasSubstr("\"a/1.jpg\"")));
  EXPECT_THAT(shard->ReadRecord(2, scratch), IsOk());
  const auto small = MustOpenAll({.index_use = IndexUse::kRebuild, .max_record_bytes = large - 1});
  EXPECT_EQ(small->num_damaged(), 0);
  EXPECT_THAT(small->ReadRecord(0, scratch),
              StatusIs(absl::StatusCode::kResourceExhausted, HasSubstr("the limit is")));
  EXPECT_THAT(ReadWholeFile(folder_ / "images.idx"), Not(HasSubstr("a/1.jpg")));
  EXPECT_EQ(Read(*MustOpenAll())[0], ImageRecord(Jpeg(1), {.name = "a", .label = 0},
                                                 {.height = 8, .width = 12, .channels = 3}));
}

TEST_F(ImageFolderTest, TheContentHashOfATooLargeFileIgnoresTheIndex) {
  const ShardOptions small = {.max_record_bytes = static_cast<int64_t>(Jpeg(1).size()) - 1};
  const uint64_t hash = MustOpenAll(small)->content_hash();
  std::filesystem::remove(folder_ / "images.idx");
  MustOpenAll();  // Writes an index with the CRC of each file.
  EXPECT_EQ(MustOpenAll(small)->content_hash(), hash);
  ShardOptions scanning = small;
  scanning.index_use = IndexUse::kIgnore;
  EXPECT_EQ(MustOpenAll(scanning)->content_hash(), hash);
  EXPECT_EQ(MustOpenAll(scanning)->num_damaged(), 0);
}

TEST_F(ImageFolderTest, AChangedFileIsNotServed) {
  const auto shard = MustOpenAll();
  AlignedBuffer scratch;
  const auto changed = [&](const std::string& how) {
    return StatusIs(absl::StatusCode::kFailedPrecondition,
                    AllOf(HasSubstr("\"1.jpg\""), HasSubstr(how), Not(HasSubstr(folder_.path()))));
  };
  ShiftMtime(folder_ / "a/1.jpg", 60);
  EXPECT_THAT(shard->ReadRecord(0, scratch), changed("was rewritten or replaced"));
  folder_.Write("a/1.jpg", Jpeg(1) + "more");
  EXPECT_THAT(shard->ReadRecord(0, scratch), changed("was resized"));
  std::filesystem::remove(folder_ / "a/1.jpg");
  EXPECT_THAT(shard->ReadRecord(0, scratch), changed("was removed"));
  EXPECT_THAT(shard->ReadRecord(1, scratch), IsOk());
  EXPECT_THAT(shard->CheckUnchanged(), IsOk());
}

TEST_F(ImageFolderTest, AFileReplacedByAFolderOrBrokenLinkIsReportedAsChanged) {
  const auto shard = MustOpenAll();
  AlignedBuffer scratch;
  const auto changed = [&](const std::string& how) {
    return StatusIs(
        absl::StatusCode::kFailedPrecondition,
        AllOf(HasSubstr(how), HasSubstr("since it was opened"), Not(HasSubstr(folder_.path()))));
  };
  std::filesystem::remove(folder_ / "a/1.jpg");
  std::filesystem::create_directory(folder_ / "a/1.jpg");
  EXPECT_THAT(shard->ReadRecord(0, scratch),
              changed("\"1.jpg\" was replaced by something that is not a file"));
  std::filesystem::remove(folder_ / "a/2.jpg");
  std::filesystem::create_symlink("2.jpg", folder_ / "a/2.jpg");
  EXPECT_THAT(shard->ReadRecord(1, scratch), changed("\"2.jpg\" was removed"));
  std::filesystem::remove_all(folder_ / "b");
  folder_.Write("b", "text");
  EXPECT_THAT(shard->ReadRecord(2, scratch), changed("\"1.png\" was removed"));
}

// The error is not PermissionDenied, because the client asked for nothing that is forbidden.
TEST_F(ImageFolderTest, ALostReadPermissionIsNotFoundAndNotPermissionDenied) {
  folder_.Write("a/2.jpg", "text");
  const auto shard = MustOpenAll();
  for (const char* name : {"a/1.jpg", "a"}) {
    std::filesystem::permissions(folder_ / name, std::filesystem::perms::none);
  }
  // The test may run as root, who may read all files. So the test reads the files as another user.
  const int user = ::setfsuid(65534);
  AlignedBuffer scratch;
  for (const int64_t record : {0, 1}) {
    EXPECT_THAT(shard->ReadRecord(record, scratch),
                StatusIs(absl::StatusCode::kNotFound,
                         AllOf(HasSubstr(absl::StrCat("record ", record)),
                               HasSubstr("Permission denied"), Not(HasSubstr(folder_.path())))));
  }
  ::setfsuid(static_cast<uid_t>(user));
  std::filesystem::permissions(folder_ / "a", std::filesystem::perms::owner_all);
}

TEST_F(ImageFolderTest, AReplacedDamagedFileIsReportedAsChanged) {
  folder_.Write("a/1.jpg", "text");
  const auto shard = MustOpenAll();
  AlignedBuffer scratch;
  EXPECT_THAT(shard->ReadRecord(0, scratch), StatusIs(absl::StatusCode::kDataLoss, testing::_));
  folder_.Write("a/1.jpg", Jpeg(1));
  EXPECT_THAT(shard->ReadRecord(0, scratch),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("was resized")));
}

// A disk may change bytes without a new time of modification.
TEST_F(ImageFolderTest, BytesThatChangeWithoutANewMtimeAreDamage) {
  const auto shard = MustOpenAll();
  ChangeUnnoticed("a/1.jpg");
  AlignedBuffer scratch;
  EXPECT_THAT(shard->ReadRecord(0, scratch),
              StatusIs(absl::StatusCode::kDataLoss,
                       AllOf(HasSubstr("\"a/1.jpg\""), HasSubstr("CRC-32C of the file is"),
                             HasSubstr("systole index"))));
  // With kIgnore all files are scanned. Their CRC-32Cs are still compared with those in the index.
  const auto scanned = MustOpenAll({.index_use = IndexUse::kIgnore});
  EXPECT_EQ(scanned->num_damaged(), 1);
  EXPECT_THAT(scanned->damaged()[0].cause, HasSubstr("the index says"));
}

}  // namespace
}  // namespace systole
