#include "core/storage/local/file_source.h"

#include <sys/resource.h>
#include <sys/stat.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <limits>
#include <memory>
#include <string>

#include "core/interrupt/read_progress.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/core/storage/temp_folder.h"
#include "tests/status_matchers.h"

namespace systole {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

std::unique_ptr<FileSource> MustOpen(const std::string& path) {
  absl::StatusOr<std::unique_ptr<FileSource>> source = FileSource::Open(path);
  EXPECT_THAT(source, IsOk());
  return *std::move(source);
}

// Matches FailedPrecondition with `how` in its message. The message goes to clients, so it has the
// file's base name but not the folder.
auto IsChanged(const std::string& how, const TempFolder& folder) {
  return StatusIs(absl::StatusCode::kFailedPrecondition,
                  AllOf(HasSubstr("shard \"a.tfrecord\" " + how), HasSubstr("a new LocalFeed"),
                        Not(HasSubstr(folder.path()))));
}

TEST(FileSourceTest, ReadsAnywhereAndShortOnlyAtTheEnd) {
  const TempFolder folder;
  const std::unique_ptr<FileSource> source = MustOpen(folder.Write("digits", "0123456789"));
  std::string out(4, '.');
  EXPECT_THAT(source->ReadAt(3, absl::MakeSpan(out)), IsOkAndHolds(4u));
  EXPECT_EQ(out, "3456");
  EXPECT_THAT(source->ReadAt(9, absl::MakeSpan(out)), IsOkAndHolds(1u));
  EXPECT_EQ(out, "9456");
  EXPECT_THAT(source->ReadAt(10, absl::MakeSpan(out)), IsOkAndHolds(0u));
  EXPECT_THAT(source->ReadAt(std::numeric_limits<uint64_t>::max(), absl::MakeSpan(out)),
              IsOkAndHolds(0u));
  EXPECT_THAT(source->Size(), IsOkAndHolds(10u));
  EXPECT_EQ(source->name(), folder / "digits");
}

TEST(FileSourceTest, BytesReadFromANetworkFileAreCountedAsProgress) {
  const TempFolder folder;
  const std::string bytes =
      std::string(size_t{1} << 20, 'a') + std::string(size_t{1} << 20, 'b') + "c";
  absl::StatusOr<std::unique_ptr<FileSource>> source =
      FileSource::Open(folder.Write("a.tfrecord", bytes), FileSource::Where::kOnANetwork);
  ASSERT_THAT(source, IsOk());
  ReadProgress progress;
  const ReadProgressScope scope(progress);
  std::string out(bytes.size() + 10, '.');
  EXPECT_THAT((*source)->ReadAt(0, absl::MakeSpan(out)), IsOkAndHolds(bytes.size()));
  EXPECT_EQ(progress.bytes(), static_cast<int64_t>(bytes.size()));
  EXPECT_TRUE(out == bytes + std::string(10, '.'));
}

TEST(FileSourceTest, AFileOnANetworkMayWaitAndIsNotMapped) {
  const TempFolder folder;
  const std::string path = folder.path() + "/a.tfrecord";
  std::ofstream(path) << "0123456789";
  absl::StatusOr<std::unique_ptr<FileSource>> source =
      FileSource::Open(path, FileSource::Where::kOnANetwork);
  ASSERT_THAT(source, IsOk());
  EXPECT_TRUE((*source)->may_wait());
  EXPECT_TRUE((*source)->is_local());
  EXPECT_EQ((*source)->mapping(), nullptr);
  EXPECT_FALSE(MustOpen(path)->may_wait());
  EXPECT_NE(MustOpen(path)->mapping(), nullptr);
}

TEST(FileSourceTest, MissingFileIsNotFoundAndNamed) {
  const TempFolder folder;
  EXPECT_THAT(FileSource::Open(folder / "none"),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr(folder / "none")));
  EXPECT_THAT(StatFile(folder / "none"),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr(folder / "none")));
}

TEST(FileSourceTest, AFileBelowAFileOrBehindALoopOfLinksIsNotFound) {
  const TempFolder folder;
  folder.Write("file", "bytes");
  std::filesystem::create_symlink("loop", folder / "loop");
  for (const char* name : {"file/none", "loop"}) {
    EXPECT_THAT(FileSource::Open(folder / name),
                StatusIs(absl::StatusCode::kNotFound, HasSubstr(folder / name)));
    EXPECT_THAT(StatFile(folder / name),
                StatusIs(absl::StatusCode::kNotFound, HasSubstr(folder / name)));
  }
}

TEST(FileSourceTest, FolderIsInvalid) {
  const TempFolder folder;
  EXPECT_THAT(FileSource::Open(folder.path()),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("is a folder")));
}

TEST(FileSourceTest, NamedPipeIsInvalidAndDoesNotBlock) {
  const TempFolder folder;
  ASSERT_EQ(mkfifo((folder / "pipe").c_str(), 0600), 0);
  EXPECT_THAT(FileSource::Open(folder / "pipe"),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("not a regular file")));
}

TEST(FileSourceTest, NoDescriptorLeftIsResourceExhaustedWithTheRemedy) {
  const TempFolder folder;
  const std::string path = folder.Write("a", "x");
  struct rlimit before;
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  const struct rlimit none = {.rlim_cur = 0, .rlim_max = before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &none), 0);
  const absl::Status opened = FileSource::Open(path).status();
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);  // A sanitizer needs descriptors too.
  EXPECT_THAT(opened, StatusIs(absl::StatusCode::kResourceExhausted,
                               AllOf(HasSubstr(path), HasSubstr("ulimit -n"))));
}

TEST(FileSourceTest, StateIsThatOfTheOpenedFile) {
  const TempFolder folder;
  const std::string path = folder.Write("a", "abc");
  const std::unique_ptr<FileSource> source = MustOpen(path);
  EXPECT_EQ(source->state().size_bytes, 3u);
  EXPECT_THAT(StatFile(path), IsOkAndHolds(source->state()));
  ShiftMtime(path, 5);
  absl::StatusOr<FileState> later = StatFile(path);
  ASSERT_THAT(later, IsOk());
  EXPECT_EQ(later->mtime_ns, source->state().mtime_ns + 5'000'000'000);
  EXPECT_EQ(later->inode, source->state().inode);
}

TEST(FileSourceTest, IdentityDependsOnSizeAndModificationTimeButNotOnTheInode) {
  const TempFolder folder;
  const std::string path = folder.Write("a", "abc");
  const std::string copy = folder.Write("copy", "abc");
  std::filesystem::last_write_time(copy, std::filesystem::last_write_time(path));
  EXPECT_EQ(MustOpen(copy)->identity(), MustOpen(path)->identity());
  EXPECT_NE(StatFile(copy)->inode, StatFile(path)->inode);
  ShiftMtime(copy, 1);
  EXPECT_NE(MustOpen(copy)->identity(), MustOpen(path)->identity());
  std::filesystem::last_write_time(folder.Write("copy", "abcd"),
                                   std::filesystem::last_write_time(path));
  EXPECT_NE(MustOpen(copy)->identity(), MustOpen(path)->identity());
}

TEST(FileSourceTest, UntouchedFileIsUnchanged) {
  const TempFolder folder;
  const std::unique_ptr<FileSource> source = MustOpen(folder.Write("a.tfrecord", "abc"));
  EXPECT_THAT(source->CheckUnchanged(), IsOk());
}

TEST(FileSourceTest, FileReplacedByRenameIsNoticedAndTheOldOneStillRead) {
  const TempFolder folder;
  const std::unique_ptr<FileSource> source = MustOpen(folder.Write("a.tfrecord", "abc"));
  std::filesystem::rename(folder.Write("new", "xyz"), folder / "a.tfrecord");
  EXPECT_THAT(source->CheckUnchanged(), IsChanged("was replaced", folder));
  std::string out(3, '.');
  EXPECT_THAT(source->ReadAt(0, absl::MakeSpan(out)), IsOkAndHolds(3u));
  EXPECT_EQ(out, "abc");
}

TEST(FileSourceTest, FileReplacedByAFolderIsNoticed) {
  const TempFolder folder;
  const std::unique_ptr<FileSource> source = MustOpen(folder.Write("a.tfrecord", "abc"));
  std::filesystem::remove(folder / "a.tfrecord");
  std::filesystem::create_directory(folder / "a.tfrecord");
  EXPECT_THAT(source->CheckUnchanged(), IsChanged("was replaced", folder));
}

TEST(FileSourceTest, FileTakenAwayIsNoticed) {
  const TempFolder folder;
  const std::unique_ptr<FileSource> source = MustOpen(folder.Write("a.tfrecord", "abc"));
  std::filesystem::remove(folder / "a.tfrecord");
  EXPECT_THAT(source->CheckUnchanged(), IsChanged("was removed", folder));
}

TEST(FileSourceTest, ResizedFileIsNoticed) {
  const TempFolder folder;
  const std::unique_ptr<FileSource> source = MustOpen(folder.Write("a.tfrecord", "abc"));
  std::filesystem::resize_file(folder / "a.tfrecord", 2);
  EXPECT_THAT(source->CheckUnchanged(), IsChanged("was resized from 3 to 2 bytes", folder));
}

TEST(FileSourceTest, FileRewrittenInPlaceWithEqualSizeIsNoticed) {
  const TempFolder folder;
  const std::unique_ptr<FileSource> source = MustOpen(folder.Write("a.tfrecord", "abc"));
  folder.Write("a.tfrecord", "xyz");
  // The file system's clock is coarse, so both writes may have got the same time.
  ShiftMtime(folder / "a.tfrecord", 1);
  EXPECT_THAT(source->CheckUnchanged(), IsChanged("was rewritten", folder));
}

}  // namespace
}  // namespace systole
