#include "server/socket_lock.h"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
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

// A socket bound to `path`. With `listens` it also accepts connections.
OwnedFd Bound(const std::string& path, int type, bool listens) {
  OwnedFd fd(socket(AF_UNIX, type, 0));
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, path.data(), path.size());
  EXPECT_EQ(bind(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
  if (listens) {
    EXPECT_EQ(listen(fd.get(), 1), 0);
  }
  return fd;
}

TEST(SocketLockTest, OnlyOneServerHoldsALockAndReleaseLeavesNoFile) {
  const TempFolder folder;
  std::optional<absl::StatusOr<SocketLock>> first(SocketLock::Take(folder / "s"));
  ASSERT_THAT(*first, IsOk());
  EXPECT_THAT(
      SocketLock::Take(folder / "s"),
      StatusIs(absl::StatusCode::kUnavailable,
               AllOf(HasSubstr(absl::StrCat("'unix:", folder / "s", "'")),
                     HasSubstr(absl::StrCat("process ", getpid())), HasSubstr("--listen"))));
  EXPECT_THAT(SocketLock::Take(folder / "other"), IsOk());
  first.reset();
  EXPECT_THAT(SocketLock::Take(folder / "s"), IsOk());
  EXPECT_THAT(folder.List(), IsEmpty());
}

TEST(SocketLockTest, AMovedLockStaysHeld) {
  const TempFolder folder;
  absl::StatusOr<SocketLock> taken = SocketLock::Take(folder / "s");
  ASSERT_THAT(taken, IsOk());
  const SocketLock lock = *std::move(taken);
  taken = absl::UnknownError("gone");
  EXPECT_THAT(folder.List(), ElementsAre("s.lock"));
  EXPECT_THAT(SocketLock::Take(folder / "s"),
              StatusIs(absl::StatusCode::kUnavailable, HasSubstr("another server")));
}

TEST(SocketLockTest, StaleFilesOfAKilledServerAreTakenOver) {
  const TempFolder folder;
  Bound(folder / "s", SOCK_STREAM, /*listens=*/true);  // Closed at once, so nobody listens.
  folder.Write("s.lock", "123\n");
  EXPECT_TRUE(std::filesystem::exists(folder / "s"));
  const absl::StatusOr<SocketLock> lock = SocketLock::Take(folder / "s");
  ASSERT_THAT(lock, IsOk());
  EXPECT_FALSE(std::filesystem::exists(folder / "s"));
}

TEST(SocketLockTest, AListeningSocketWithoutALockIsNotTakenOver) {
  const TempFolder folder;
  for (const int type : {SOCK_STREAM, SOCK_SEQPACKET}) {
    const std::string path = folder / absl::StrCat("s", type);
    const OwnedFd other = Bound(path, type, /*listens=*/true);
    EXPECT_THAT(SocketLock::Take(path),
                StatusIs(absl::StatusCode::kUnavailable, HasSubstr("a process listens")));
    EXPECT_TRUE(std::filesystem::exists(path));
    EXPECT_FALSE(std::filesystem::exists(path + ".lock"));
  }
}

TEST(SocketLockTest, AnOrdinaryFileAtThePathIsRefusedAndKept) {
  const TempFolder folder;
  folder.Write("s", "precious");
  EXPECT_THAT(SocketLock::Take(folder / "s"),
              StatusIs(absl::StatusCode::kAlreadyExists, HasSubstr("not a socket")));
  EXPECT_EQ(ReadWholeFile(folder / "s"), "precious");
}

TEST(SocketLockTest, AMissingFolderIsNamedInTheError) {
  EXPECT_THAT(SocketLock::Take("/nowhere/s"),
              StatusIs(absl::StatusCode::kNotFound,
                       AllOf(HasSubstr("/nowhere/s.lock"), HasSubstr("folder"))));
}

}  // namespace
}  // namespace systole
