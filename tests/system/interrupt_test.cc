// Signals end the real programs.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <csignal>
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "core/status/check.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/core/storage/temp_folder.h"
#include "tests/status_matchers.h"
#include "tests/system/process.h"
#include "tests/system/served_feed.h"

namespace systole {
namespace {

using testing::EndsWith;
using testing::HasSubstr;

class InterruptTest : public testing::Test {
 protected:
  // Starts a server for an endless feed of raw records.
  void Serve() {
    folder_.Write("shard", RawShard(0, 64, 784));
    absl::StatusOr<std::unique_ptr<ServerProcess>> server =
        ServerProcess::Start({"--dataset", "raw=" + (folder_ / "shard")});
    ASSERT_THAT(server, IsOk());
    server_ = *std::move(server);
    spec_ = folder_.Write("spec.textproto", RawSpec(784, /*epochs=*/0));
  }

  const TempFolder folder_;
  std::unique_ptr<ServerProcess> server_;
  std::string spec_;
};

TEST_F(InterruptTest, AnInterruptedFeedPrintsTheTokenToResumeWith) {
  ASSERT_NO_FATAL_FAILURE(Serve());
  Process feed({SystoleProgram(), "feed", "--server", server_->address(), "--spec", spec_,
                "--steps", "0", "--digest"},
               {.stdout_pipe_bytes = 4096});
  ASSERT_NE(feed.ReadLine(), "");
  feed.Signal(SIGINT);
  const Finished finished = feed.Wait();
  EXPECT_EQ(finished.exit_code, 130) << finished.err;
  EXPECT_THAT(finished.err, HasSubstr(" steps; to go on there, give --resume systole2:"));
  EXPECT_THAT(finished.err, EndsWith("systole feed: interrupted\n"));
}

// A server that accepts connections and never says anything.
class MuteServer {
 public:
  MuteServer() : fd_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
    socklen_t size = sizeof(address);
    SYSTOLE_CHECK(::bind(fd_, reinterpret_cast<sockaddr*>(&address), size) == 0);
    SYSTOLE_CHECK(::listen(fd_, 8) == 0);
    SYSTOLE_CHECK(::getsockname(fd_, reinterpret_cast<sockaddr*>(&address), &size) == 0);
    address_ = absl::StrCat("127.0.0.1:", ntohs(address.sin_port));
  }
  ~MuteServer() { ::close(fd_); }

  const std::string& address() const { return address_; }
  // Waits until somebody has connected. Returns false if nobody does within 20 s.
  bool AwaitClient() const {
    pollfd waiting = {.fd = fd_, .events = POLLIN};
    return ::poll(&waiting, 1, 20'000) == 1;
  }

 private:
  const int fd_;
  std::string address_;
};

TEST_F(InterruptTest, ACommandWithNothingToCleanUpEndsAtOnce) {
  const MuteServer server;
  Process feed({SystoleProgram(), "feed", "--server", server.address(), "--spec",
                folder_.Write("spec.textproto", RawSpec(784, 1)), "--connect-timeout", "600"});
  ASSERT_TRUE(server.AwaitClient());
  feed.Signal(SIGTERM);
  const Finished finished = feed.Wait();
  EXPECT_EQ(finished.exit_code, 128 + SIGTERM);
  EXPECT_EQ(finished.err, "systole: interrupted\n");
}

}  // namespace
}  // namespace systole
