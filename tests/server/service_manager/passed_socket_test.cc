#include "server/service_manager/passed_socket.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <cstring>
#include <map>
#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/core/storage/temp_folder.h"
#include "tests/status_matchers.h"

namespace systole {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr pid_t kOwn = 7;

// A Unix socket at `path`, as a service manager makes it: it blocks and survives exec.
int Bound(const std::string& path, int type = SOCK_STREAM, bool listens = true) {
  const int fd = socket(AF_UNIX, type, 0);
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, path.data(), path.size());
  EXPECT_EQ(bind(fd, reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
  if (listens) {
    EXPECT_EQ(listen(fd, 1), 0);
  }
  return fd;
}

absl::StatusOr<OwnedFd> Take(const std::string& path, int first, const std::string& fds = "1",
                             const std::string& pid = absl::StrCat(kOwn)) {
  const std::map<std::string, std::string> environment = {{"LISTEN_FDS", fds}, {"LISTEN_PID", pid}};
  return TakePassedSocket(
      path, [&environment](const char* name) { return environment.at(name); }, kOwn, first);
}

TEST(PassedSocketTest, ASocketAtThePathIsTakenOver) {
  const TempFolder folder;
  const int fd = Bound(folder / "s");
  const absl::StatusOr<OwnedFd> taken = Take(folder / "s", fd);
  ASSERT_THAT(taken, IsOk());
  EXPECT_EQ(taken->get(), fd);
  EXPECT_NE(fcntl(fd, F_GETFL) & O_NONBLOCK, 0);
  EXPECT_EQ(fcntl(fd, F_GETFD), FD_CLOEXEC);
}

TEST(PassedSocketTest, SocketsNotPassedToThisProcessAreNotTouched) {
  const TempFolder folder;
  const OwnedFd fd(Bound(folder / "s"));
  for (const char* const pid : {"", "8", "x"}) {
    const absl::StatusOr<OwnedFd> taken = Take(folder / "s", fd.get(), "1", pid);
    ASSERT_THAT(taken, IsOk());
    EXPECT_FALSE(taken->ok());
  }
  const absl::StatusOr<OwnedFd> none = Take(folder / "s", fd.get(), "0");
  ASSERT_THAT(none, IsOk());
  EXPECT_FALSE(none->ok());
  EXPECT_EQ(fcntl(fd.get(), F_GETFL) & O_NONBLOCK, 0);
}

TEST(PassedSocketTest, ASocketWithAnotherPathIsRefusedNamingBothPaths) {
  const TempFolder folder;
  const OwnedFd fd(Bound(folder / "s"));
  EXPECT_THAT(Take(folder / "other", fd.get()),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       AllOf(HasSubstr(folder / "s"), HasSubstr(folder / "other"),
                             HasSubstr("ListenStream=PATH"), HasSubstr("--listen"))));
  EXPECT_THAT(Take("", fd.get()), StatusIs(absl::StatusCode::kInvalidArgument,
                                           HasSubstr("--listen names no Unix socket")));
}

TEST(PassedSocketTest, DescriptorsOtherThanListeningUnixStreamSocketsAreRefused) {
  const TempFolder folder;
  const OwnedFd unheard(Bound(folder / "a", SOCK_STREAM, /*listens=*/false));
  const OwnedFd packets(Bound(folder / "b", SOCK_SEQPACKET));
  const OwnedFd tcp(socket(AF_INET, SOCK_STREAM, 0));
  ASSERT_EQ(listen(tcp.get(), 1), 0);
  const OwnedFd file(open("/dev/null", O_RDWR));
  for (const int fd : {unheard.get(), packets.get(), tcp.get(), file.get(), 1'000'000}) {
    EXPECT_THAT(Take(folder / "a", fd),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("listens for streams")));
  }
  const OwnedFd unnamed(socket(AF_UNIX, SOCK_STREAM, 0));
  EXPECT_THAT(Take("", unnamed.get()), StatusIs(absl::StatusCode::kInvalidArgument,
                                                HasSubstr("not a Unix socket that listens")));
}

TEST(PassedSocketTest, MoreThanOneSocketOrAnInvalidCountIsRefused) {
  const TempFolder folder;
  const OwnedFd fd(Bound(folder / "s"));
  EXPECT_THAT(Take(folder / "s", fd.get(), "2"),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("opened 2 of them")));
  for (const char* const fds : {"", "-1", "one", "99999999999"}) {
    EXPECT_THAT(Take(folder / "s", fd.get(), fds),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("$LISTEN_FDS")));
  }
}

}  // namespace
}  // namespace systole
