#include "core/access_token/token_file.h"

#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <string>

#include "core/concurrency/worker_pool.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/core/storage/temp_folder.h"
#include "tests/status_matchers.h"

namespace systole {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

TEST(TokenFileTest, ATokenThatWasAddedIsFoundByItsText) {
  const TempFolder folder;
  const absl::StatusOr<std::string> first = AddToken(folder / "tokens", "a", std::nullopt);
  const absl::StatusOr<std::string> second =
      AddToken(folder / "tokens", "a", absl::CivilDay(1970, 1, 1));
  ASSERT_THAT(first, IsOk());
  ASSERT_THAT(second, IsOk());
  EXPECT_NE(*first, *second);
  EXPECT_GE(first->size(), 43u);  // 256 bits in base 64.
  const absl::StatusOr<TokenTable> table = ReadTokenFile(folder / "tokens");
  ASSERT_THAT(table, IsOk());
  EXPECT_NE(table->Find(HashOfToken(*first), absl::UnixEpoch()), nullptr);
  EXPECT_NE(table->Find(HashOfToken(*second), absl::UnixEpoch()), nullptr);
  EXPECT_EQ(table->Find(HashOfToken(*second), absl::UnixEpoch() + absl::Hours(24)), nullptr);
  // Neither the secret nor a temporary file is left on disk.
  EXPECT_THAT(ReadWholeFile(folder / "tokens"), Not(HasSubstr(*first)));
  EXPECT_THAT(folder.List(), ElementsAre("tokens"));
}

TEST(TokenFileTest, ANewFileIsForItsOwnerAloneAndAModeIsKept) {
  const TempFolder folder;
  const mode_t before = ::umask(0);
  ASSERT_THAT(AddToken(folder / "tokens", "a", std::nullopt), IsOk());
  ::umask(before);
  EXPECT_EQ(IdentityOfTokenFile(folder / "tokens").mode & 07777, 0600u);
  ::chmod((folder / "tokens").c_str(), 0640);
  ASSERT_THAT(AddToken(folder / "tokens", "a", std::nullopt), IsOk());
  EXPECT_EQ(IdentityOfTokenFile(folder / "tokens").mode & 07777, 0640u);
}

// Root may add a token to a file of the server's user, who must still be able to read it.
TEST(TokenFileTest, AFileKeepsItsOwnerAndItsGroup) {
  const TempFolder folder;
  ASSERT_THAT(AddToken(folder / "tokens", "a", std::nullopt), IsOk());
  const bool is_root = ::geteuid() == 0;
  const uid_t owner = is_root ? 12345 : ::geteuid();  // Only root can give a file away.
  const gid_t group = is_root ? 23456 : ::getegid();
  ASSERT_EQ(::chown((folder / "tokens").c_str(), owner, group), 0);
  ASSERT_EQ(::chmod((folder / "tokens").c_str(), 0640), 0);
  ASSERT_THAT(AddToken(folder / "tokens", "b", std::nullopt), IsOk());
  struct stat file = {};
  ASSERT_EQ(::stat((folder / "tokens").c_str(), &file), 0);
  EXPECT_EQ(file.st_uid, owner);
  EXPECT_EQ(file.st_gid, group);
  EXPECT_EQ(file.st_mode & 07777, 0640u);
}

TEST(TokenFileTest, AFileThatOthersCanReadIsRefused) {
  const TempFolder folder;
  const std::string path = folder.Write("tokens", "");
  for (const mode_t mode : {0644, 0660, 0606, 0602}) {
    ::chmod(path.c_str(), mode);
    EXPECT_THAT(ReadTokenFile(path),
                StatusIs(absl::StatusCode::kPermissionDenied, HasSubstr("chmod 600")));
    EXPECT_THAT(AddToken(path, "a", std::nullopt),
                StatusIs(absl::StatusCode::kPermissionDenied, HasSubstr("chmod 600")));
  }
  ::chmod(path.c_str(), 0640);
  EXPECT_THAT(ReadTokenFile(path), IsOk());
}

TEST(TokenFileTest, MissingFilesFoldersLinksAndBadTokenNamesAreRefused) {
  const TempFolder folder;
  EXPECT_THAT(ReadTokenFile(folder / "none"),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("none")));
  EXPECT_THAT(ReadTokenFile(folder.path()),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("not a regular file")));
  ASSERT_EQ(::symlink("tokens", (folder / "link").c_str()), 0);
  EXPECT_THAT(AddToken(folder / "link", "a", std::nullopt),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("link")));
  EXPECT_THAT(AddToken(folder / "tokens", "no name", std::nullopt),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("no name")));
}

TEST(TokenFileTest, AFileWithABadLineIsLeftAsItIs) {
  const TempFolder folder;
  const std::string path = folder.Write("tokens", "nonsense\n");
  ::chmod(path.c_str(), 0600);
  EXPECT_THAT(AddToken(path, "a", std::nullopt),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("line 1")));
  EXPECT_EQ(ReadWholeFile(path), "nonsense\n");
}

TEST(TokenFileTest, TokensAddedAtOnceAreAllThere) {
  const TempFolder folder;
  WorkerPool threads(4);
  ParallelFor(threads, 40, [&](int64_t) {
    EXPECT_THAT(AddToken(folder / "tokens", "a", std::nullopt), IsOk());
  });
  const absl::StatusOr<TokenTable> table = ReadTokenFile(folder / "tokens");
  ASSERT_THAT(table, IsOk());
  EXPECT_EQ(table->entries().size(), 40u);
}

TEST(TokenFileTest, AChangedFileHasAnotherIdentity) {
  const TempFolder folder;
  EXPECT_EQ(IdentityOfTokenFile(folder / "tokens"), TokenFileIdentity());
  const std::string path = folder.Write("tokens", "");
  const TokenFileIdentity before = IdentityOfTokenFile(path);
  EXPECT_EQ(IdentityOfTokenFile(path), before);
  ShiftMtime(path, 1);
  EXPECT_FALSE(IdentityOfTokenFile(path) == before);
}

}  // namespace
}  // namespace systole
