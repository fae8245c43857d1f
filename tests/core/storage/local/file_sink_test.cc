#include "core/storage/local/file_sink.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "core/storage/byte_source.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/core/storage/temp_folder.h"
#include "tests/status_matchers.h"

namespace systole {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;
using ::testing::UnorderedElementsAre;

TEST(FileSinkTest, FileAppearsWholeOnlyAtClose) {
  const TempFolder folder;
  absl::StatusOr<std::unique_ptr<FileSink>> sink = FileSink::Create(folder / "out");
  ASSERT_THAT(sink, IsOk());
  EXPECT_THAT((*sink)->Append("first "), IsOk());
  EXPECT_THAT((*sink)->Append("second"), IsOk());
  EXPECT_THAT(folder.List(), ElementsAre(StartsWith(".out.")));  // The hidden temporary file.
  EXPECT_THAT((*sink)->Close(), IsOk());
  EXPECT_THAT(folder.List(), ElementsAre("out"));
  EXPECT_EQ(ReadWholeFile(folder / "out"), "first second");
  EXPECT_EQ((*sink)->name(), folder / "out");
}

TEST(FileSinkTest, DestroyedWithoutCloseLeavesNothingAndKeepsTheOldFile) {
  const TempFolder folder;
  folder.Write("out", "old");
  {
    absl::StatusOr<std::unique_ptr<FileSink>> sink = FileSink::Create(folder / "out");
    ASSERT_THAT(sink, IsOk());
    EXPECT_THAT((*sink)->Append("new"), IsOk());
  }
  EXPECT_THAT(folder.List(), ElementsAre("out"));
  EXPECT_EQ(ReadWholeFile(folder / "out"), "old");
}

TEST(FileSinkTest, OnlyMatchingTemporaryFilesOfDeadProcessesAreRemoved) {
  const TempFolder folder;
  const std::string dead = ".2147483646.7.tmp";  // No system has a process of this number.
  folder.Write(".out" + dead, "half");
  folder.Write(".other" + dead, "half");
  folder.Write(".a.b.c" + dead, "half");
  folder.Write("out" + dead, "begins without a dot");
  folder.Write(".out.x.7.tmp", "no process");
  folder.Write(".out.2147483646.7", "no temporary file");
  absl::StatusOr<std::unique_ptr<FileSink>> alive = FileSink::Create(folder / "out");
  ASSERT_THAT(alive, IsOk());
  RemoveStaleTemporaries(folder.path(), [](absl::string_view base_name) {
    return base_name == "out" || base_name == "a.b.c";
  });
  EXPECT_THAT(folder.List(), UnorderedElementsAre(StartsWith(absl::StrCat(".out.", getpid(), ".")),
                                                  ".out.2147483646.7", ".out.x.7.tmp",
                                                  ".other" + dead, "out" + dead));
  EXPECT_THAT((*alive)->Close(), IsOk());
}

TEST(FileSinkTest, ALockedTemporaryFileIsNotRemovedUntilUnlocked) {
  const TempFolder folder;
  // The file belongs to a process that cannot be seen from here, for example in another container.
  const std::string path = folder.Write(".out.2147483646.7.tmp", "half");
  const int fd = open(path.c_str(), O_WRONLY);
  ASSERT_GE(fd, 0);
  ASSERT_EQ(flock(fd, LOCK_EX | LOCK_NB), 0);
  EXPECT_THAT(CheckWritable(folder / "out"), IsOk());
  EXPECT_THAT(folder.List(), ElementsAre(".out.2147483646.7.tmp"));
  close(fd);
  EXPECT_THAT(CheckWritable(folder / "out"), IsOk());
  EXPECT_THAT(folder.List(), IsEmpty());
}

TEST(FileSinkTest, FoldersPipesAndLinksAreRefusedAsTargets) {
  const TempFolder folder;
  std::filesystem::create_directory(folder / "sub");
  EXPECT_THAT(
      FileSink::Create(folder / "sub").status(),
      StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("is a folder; want a regular")));
  ASSERT_EQ(mkfifo((folder / "pipe").c_str(), 0600), 0);
  EXPECT_THAT(FileSink::Create(folder / "pipe").status(),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("device or pipe")));
  folder.Write("old", "old");
  std::filesystem::create_symlink(folder / "old", folder / "link");
  EXPECT_THAT(FileSink::Create(folder / "link").status(),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("is a link")));
}

TEST(FileSinkTest, CheckWritableAcceptsOldAndNewFilesInExistingFolders) {
  const TempFolder folder;
  folder.Write("old", "old");
  EXPECT_THAT(CheckWritable(folder / "old"), IsOk());
  EXPECT_THAT(CheckWritable(folder / "new"), IsOk());
  EXPECT_THAT(CheckWritable(folder / "none/new"),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("none/new")));
  EXPECT_THAT(folder.List(), ElementsAre("old"));
  EXPECT_EQ(ReadWholeFile(folder / "old"), "old");
}

TEST(FileSinkTest, EachOfTwoSinksReplacesTheFileWithItsOwnBytes) {
  const TempFolder folder;
  folder.Write("out", "old");
  absl::StatusOr<std::unique_ptr<FileSink>> one = FileSink::Create(folder / "out");
  absl::StatusOr<std::unique_ptr<FileSink>> two = FileSink::Create(folder / "out");
  ASSERT_THAT(one, IsOk());
  ASSERT_THAT(two, IsOk());
  EXPECT_THAT((*one)->Append("one"), IsOk());
  EXPECT_THAT((*two)->Append("two"), IsOk());
  EXPECT_THAT((*one)->Close(), IsOk());
  EXPECT_EQ(ReadWholeFile(folder / "out"), "one");
  EXPECT_THAT((*two)->Close(), IsOk());
  EXPECT_EQ(ReadWholeFile(folder / "out"), "two");
}

TEST(FileSinkTest, PiecesAroundTheBufferSizeArriveInOrder) {
  const TempFolder folder;
  absl::StatusOr<std::unique_ptr<FileSink>> sink =
      FileSink::Create(folder / "out", {.buffer_bytes = 8, .sync = false});
  ASSERT_THAT(sink, IsOk());
  std::string wanted;
  for (size_t size = 0; size < 20; ++size) {
    const std::string piece(size, static_cast<char>('a' + size));
    EXPECT_THAT((*sink)->Append(piece), IsOk());
    wanted += piece;
  }
  EXPECT_THAT((*sink)->Close(), IsOk());
  EXPECT_EQ(ReadWholeFile(folder / "out"), wanted);
}

// The appended pieces have several sizes, and begin at several offsets within a page of memory. A
// direct sink may write some of them without the page cache.
TEST(FileSinkTest, ADirectSinkWritesTheSameBytes) {
  const TempFolder folder;
  std::string wanted;
  for (size_t i = 0; i < 5 * kFilePageBytes; ++i) wanted += static_cast<char>(i * i >> 7);
  alignas(kFilePageBytes) static char memory[6 * kFilePageBytes];
  for (const size_t first : {size_t{0}, size_t{1}, size_t{48}, size_t{4096}, size_t{5000}}) {
    for (const size_t at : {first, first + 512, size_t{0}}) {
      for (const size_t size : {3 * kFilePageBytes, 2 * kFilePageBytes + 17, uint64_t{9}}) {
        absl::StatusOr<std::unique_ptr<FileSink>> sink =
            FileSink::Create(folder / "out", {.buffer_bytes = 8192, .sync = false, .direct = true});
        ASSERT_THAT(sink, IsOk());
        const absl::string_view bytes(wanted);
        EXPECT_THAT((*sink)->Append(bytes.substr(0, first)), IsOk());
        char* const piece = memory + at % kFilePageBytes;
        bytes.copy(piece, size, first);
        EXPECT_THAT((*sink)->Append({piece, size}), IsOk());
        EXPECT_THAT((*sink)->Append(bytes.substr(first + size)), IsOk());
        EXPECT_THAT((*sink)->Close(), IsOk());
        EXPECT_TRUE(ReadWholeFile(folder / "out") == wanted) << first << " " << at << " " << size;
      }
    }
  }
}

TEST(FileSinkTest, ClosedSinkRefusesEverything) {
  const TempFolder folder;
  absl::StatusOr<std::unique_ptr<FileSink>> sink = FileSink::Create(folder / "out");
  ASSERT_THAT(sink, IsOk());
  EXPECT_THAT((*sink)->Close(), IsOk());
  const auto refused = StatusIs(absl::StatusCode::kFailedPrecondition,
                                AllOf(HasSubstr(folder / "out"), HasSubstr("closed already")));
  EXPECT_THAT((*sink)->Append("more"), refused);
  EXPECT_THAT((*sink)->Close(), refused);
  EXPECT_EQ(ReadWholeFile(folder / "out"), "");
}

TEST(FileSinkTest, FolderThatIsNotThereIsNotFound) {
  const TempFolder folder;
  EXPECT_THAT(FileSink::Create(folder / "none/out"),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr(folder / "none/out")));
}

TEST(FileSinkTest, PathWithoutAFileNameIsInvalid) {
  EXPECT_THAT(FileSink::Create("folder/"),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("names no file")));
}

TEST(FileSinkTest, AFolderWithTheFinalNameFailsCloseAndNoTemporaryFileIsLeft) {
  const TempFolder folder;
  {
    absl::StatusOr<std::unique_ptr<FileSink>> sink = FileSink::Create(folder / "out");
    ASSERT_THAT(sink, IsOk());
    std::filesystem::create_directory(folder / "out");
    const absl::Status closed = (*sink)->Close();
    EXPECT_FALSE(closed.ok());
    EXPECT_THAT(std::string(closed.message()), HasSubstr("cannot rename"));
    EXPECT_EQ((*sink)->Append("more"), closed);  // The first error is kept.
  }
  EXPECT_THAT(folder.List(), ElementsAre("out"));
}

TEST(FileSinkTest, FullDeviceIsAnErrorThatSticksAndLeavesNothing) {
  // With a limit on the file's size, write() fails as on a full device.
  struct rlimit before;
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  const auto old_handler = std::signal(SIGXFSZ, SIG_IGN);
  const absl::Cleanup restore = [&] {
    setrlimit(RLIMIT_FSIZE, &before);
    std::signal(SIGXFSZ, old_handler);
  };
  const TempFolder folder;
  {
    absl::StatusOr<std::unique_ptr<FileSink>> sink =
        FileSink::Create(folder / "out", {.buffer_bytes = 16, .sync = false});
    ASSERT_THAT(sink, IsOk());
    const struct rlimit small = {.rlim_cur = 64, .rlim_max = before.rlim_max};
    ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
    const absl::Status appended = (*sink)->Append(std::string(100, 'x'));
    EXPECT_FALSE(appended.ok());
    EXPECT_THAT(std::string(appended.message()), HasSubstr(folder / "out"));
    EXPECT_EQ((*sink)->Close(), appended);
  }
  EXPECT_THAT(folder.List(), IsEmpty());
}

TEST(FileSinkTest, FileIsReadableByOthersAsUmaskAllows) {
  const TempFolder folder;
  const mode_t before = umask(022);
  const absl::Status written = WriteFileAtomically(folder / "out", "x");
  umask(before);
  EXPECT_THAT(written, IsOk());
  struct stat info;
  ASSERT_EQ(stat((folder / "out").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0644u);
}

TEST(WriteFileAtomicallyTest, WritesIntoTheCurrentFolderToo) {
  const TempFolder folder;
  const std::filesystem::path before = std::filesystem::current_path();
  std::filesystem::current_path(folder.path());
  const absl::Status written = WriteFileAtomically("out", "bytes");
  std::filesystem::current_path(before);
  EXPECT_THAT(written, IsOk());
  EXPECT_EQ(ReadWholeFile(folder / "out"), "bytes");
}

}  // namespace
}  // namespace systole
