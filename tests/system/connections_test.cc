// The server's listener, seen from outside: floods of connections, clients that send nothing, and a
// server process that has no file descriptors left.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "core/descriptor/owned_fd.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/core/storage/temp_folder.h"
#include "tests/status_matchers.h"
#include "tests/system/process.h"
#include "tests/system/served_feed.h"
#include "tests/wait_until.h"

namespace systole {
namespace {

using ::testing::HasSubstr;

// The first bytes of an HTTP/2 client, with an empty SETTINGS frame after them.
constexpr char kPreface[] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\4\0\0\0\0\0";

class ConnectionsTest : public testing::Test {
 protected:
  void SetUp() override {
    shard_ = folder_.Write("raw.tfrecord", RawShard(0, 64, 784));
    spec_ = folder_.Write("spec.textproto", RawSpec(784, 1));
  }
  std::unique_ptr<ServerProcess> Serve(std::vector<std::string> args,
                                       const ProcessOptions& options = {}) const {
    args.insert(args.end(), {"--dataset", "raw=" + shard_});
    absl::StatusOr<std::unique_ptr<ServerProcess>> server = ServerProcess::Start(args, options);
    EXPECT_THAT(server, IsOk());
    return server.ok() ? *std::move(server) : nullptr;
  }
  void ExpectFed(const ServerProcess& server) const {
    const Finished feed = RunSystole(
        {"feed", "--server", server.address(), "--spec", spec_, "--connect-timeout", "300"});
    EXPECT_EQ(feed.exit_code, 0) << feed.err;
  }
  static OwnedFd Connect(const ServerProcess& server) {
    OwnedFd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in address = {};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int port = 0;
    EXPECT_TRUE(absl::SimpleAtoi(server.address().substr(server.address().rfind(':') + 1), &port));
    address.sin_port = htons(static_cast<uint16_t>(port));
    EXPECT_EQ(::connect(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
    return fd;
  }
  // Reads what the server sends until it closes the connection. Returns false if the server is
  // silent for kLongestWait before that.
  static bool IsClosed(const OwnedFd& client) {
    char buffer[4096];
    pollfd wanted = {.fd = client.get(), .events = POLLIN, .revents = 0};
    const int silence_ms = static_cast<int>(std::chrono::milliseconds(kLongestWait).count());
    while (::poll(&wanted, 1, silence_ms) == 1) {
      if (::recv(client.get(), buffer, sizeof(buffer), 0) <= 0) return true;
    }
    return false;
  }

  const TempFolder folder_;
  std::string shard_;
  std::string spec_;
};

TEST_F(ConnectionsTest, AServerWithoutDescriptorsServesAgainWhenConnectionsClose) {
  const auto server = Serve({"--max-connections", "1000", "--max-connections-per-peer", "1000"},
                            {.open_files = 128});
  ASSERT_NE(server, nullptr);
  // UndefinedBehaviorSanitizer needs a descriptor when it first checks an object of a class. So a
  // feed runs before the flood takes all descriptors.
  ExpectFed(*server);
  {
    std::vector<OwnedFd> clients;
    for (int i = 0; i < 300; ++i) clients.push_back(Connect(*server));
    ASSERT_TRUE(WaitUntil(
        [&] { return server->process().err().find("Too many open files") != std::string::npos; }));
  }
  ExpectFed(*server);
  EXPECT_THAT(server->process().err(), HasSubstr("ulimit -n"));
}

TEST_F(ConnectionsTest, AConnectionFloodDoesNotUseUpDescriptorsByDefault) {
  const auto server = Serve({}, {.open_files = 128});
  ASSERT_NE(server, nullptr);
  std::vector<OwnedFd> clients;
  for (int i = 0; i < 300; ++i) clients.push_back(Connect(*server));
  ASSERT_TRUE(WaitUntil(
      [&] { return server->process().err().find("--max-connections") != std::string::npos; }));
  clients.clear();
  ExpectFed(*server);
  EXPECT_THAT(server->process().err(), testing::Not(HasSubstr("Too many open files")));
}

TEST_F(ConnectionsTest, AConnectionWithoutAHandshakeTimesOut) {
  const auto server = Serve({"--handshake-timeout", "0.5", "--idle-timeout", "100"});
  ASSERT_NE(server, nullptr);
  EXPECT_TRUE(IsClosed(Connect(*server)));
}

TEST_F(ConnectionsTest, AConnectionWithoutACallIsDropped) {
  const auto server = Serve({"--handshake-timeout", "100", "--idle-timeout", "0.5"});
  ASSERT_NE(server, nullptr);
  const OwnedFd client = Connect(*server);
  ASSERT_EQ(::send(client.get(), kPreface, sizeof(kPreface) - 1, 0),
            static_cast<ssize_t>(sizeof(kPreface) - 1));
  EXPECT_TRUE(IsClosed(client));
}

TEST_F(ConnectionsTest, TheConnectionLimitPerPeerIsEnforcedAndLogged) {
  const auto server = Serve({"--max-connections-per-peer", "2"});
  ASSERT_NE(server, nullptr);
  OwnedFd first = Connect(*server);
  const OwnedFd second = Connect(*server);
  EXPECT_TRUE(IsClosed(Connect(*server)));
  ASSERT_TRUE(WaitUntil([&] {
    return server->process().err().find("--max-connections-per-peer") != std::string::npos;
  }));
  first = OwnedFd();
  ExpectFed(*server);
}

}  // namespace
}  // namespace systole
