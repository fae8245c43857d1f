#include "server/listener/listener.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "core/concurrency/monotonic_clock.h"
#include "core/concurrency/mutex.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/listener/allowance.h"
#include "server/listener/listening_sockets.h"
#include "server/listener/open_calls.h"
#include "tests/core/storage/temp_folder.h"
#include "tests/status_matchers.h"
#include "tests/wait_until.h"

namespace systole {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::SizeIs;

OwnedFd ConnectTo(int port, in_addr_t from = INADDR_ANY) {
  OwnedFd fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(from);
  EXPECT_EQ(::bind(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
  address.sin_port = htons(static_cast<uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  EXPECT_EQ(::connect(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
  return fd;
}

// Whether the other end closes within 30 s.
bool IsClosed(const OwnedFd& client) {
  pollfd wanted = {.fd = client.get(), .events = POLLIN, .revents = 0};
  if (::poll(&wanted, 1, 30'000) != 1) return false;
  char byte;
  return ::recv(client.get(), &byte, 1, 0) <= 0;
}

// A listener, the connections that it accepted, and its messages about the connections that it
// dropped.
class ListenerTest : public testing::Test {
 protected:
  // REQUIRES: called only once in a test.
  void Open(ListeningSockets listeners, ListenerOptions options = {}) {
    port_ = listeners.port;
    options.turned_away = [this](absl::string_view, absl::string_view why) {
      MutexLock lock(mu_);
      told_.emplace_back(why);
    };
    absl::StatusOr<std::unique_ptr<Listener>> listener = Listener::Open(
        std::move(listeners), std::move(options), [this](int connection, std::optional<uid_t>) {
          MutexLock lock(mu_);
          taken_.emplace_back(connection);
        });
    ASSERT_THAT(listener, IsOk());
    listener_ = *std::move(listener);
  }
  void OpenOnLoopback(ListenerOptions options = {}) {
    absl::StatusOr<ListeningSockets> listeners = ListenOnTcp("127.0.0.1", 0);
    ASSERT_THAT(listeners, IsOk());
    Open(*std::move(listeners), std::move(options));
  }
  size_t taken() {
    MutexLock lock(mu_);
    return taken_.size();
  }
  std::vector<std::string> told() {
    MutexLock lock(mu_);
    return told_;
  }
  bool HasOpen(int64_t connections) {
    return static_cast<bool>(WaitUntil([&] { return listener_->counters().open == connections; }));
  }
  // Ends a connection as gRPC does.
  void EndFirstTaken() {
    MutexLock lock(mu_);
    ::shutdown(taken_.front().get(), SHUT_RDWR);
    taken_.erase(taken_.begin());
  }

  Mutex mu_;
  std::vector<OwnedFd> taken_ ABSL_GUARDED_BY(mu_);
  std::vector<std::string> told_ ABSL_GUARDED_BY(mu_);
  int port_ = 0;
  std::unique_ptr<Listener> listener_;  // Last, because it uses the members above.
};

TEST_F(ListenerTest, AcceptedSocketsAreNonBlockingWithTcpOptionsSet) {
  OpenOnLoopback({.silence_timeout = absl::Seconds(42)});
  const OwnedFd client = ConnectTo(port_);
  ASSERT_TRUE(WaitUntil([&] { return taken() == 1; }));
  MutexLock lock(mu_);
  char byte;
  EXPECT_EQ(::recv(taken_[0].get(), &byte, 1, 0), -1);
  EXPECT_EQ(errno, EAGAIN);
  unsigned int value = 0;
  socklen_t length = sizeof(value);
  ASSERT_EQ(::getsockopt(taken_[0].get(), IPPROTO_TCP, TCP_USER_TIMEOUT, &value, &length), 0);
  EXPECT_EQ(value, 42'000u);
  ASSERT_EQ(::getsockopt(taken_[0].get(), IPPROTO_TCP, TCP_NODELAY, &value, &length), 0);
  EXPECT_NE(value, 0u);
}

TEST_F(ListenerTest, AConnectionThatItsOwnerShutsDownIsClosedAndNotCounted) {
  OpenOnLoopback();
  const OwnedFd first = ConnectTo(port_);
  const OwnedFd second = ConnectTo(port_);
  ASSERT_TRUE(HasOpen(2));
  ASSERT_TRUE(WaitUntil([&] { return taken() == 2; }));
  EndFirstTaken();
  EXPECT_TRUE(HasOpen(1));
  EXPECT_TRUE(IsClosed(first));
}

TEST_F(ListenerTest, ConnectionsOverTheLimitAreClosedAndReportedUntilOneEnds) {
  OpenOnLoopback({.max_connections = 2});
  const OwnedFd first = ConnectTo(port_);
  const OwnedFd second = ConnectTo(port_);
  ASSERT_TRUE(HasOpen(2));
  EXPECT_TRUE(IsClosed(ConnectTo(port_)));
  EXPECT_EQ(listener_->counters().over_total, 1);
  ASSERT_THAT(told(), SizeIs(1));
  EXPECT_THAT(told()[0], AllOf(HasSubstr("127.0.0.1"), HasSubstr("2 connections are open"),
                               HasSubstr("--max-connections")));
  ASSERT_TRUE(WaitUntil([&] { return taken() == 2; }));
  EndFirstTaken();
  ASSERT_TRUE(HasOpen(1));
  const OwnedFd third = ConnectTo(port_);
  EXPECT_TRUE(HasOpen(2));
  EXPECT_EQ(listener_->counters().let_in, 3);
}

TEST_F(ListenerTest, ThePerPeerLimitClosesOnlyConnectionsOfThatPeer) {
  OpenOnLoopback({.max_connections = 8, .max_connections_per_peer = 1});
  const OwnedFd first = ConnectTo(port_);
  ASSERT_TRUE(HasOpen(1));
  EXPECT_TRUE(IsClosed(ConnectTo(port_)));
  EXPECT_EQ(listener_->counters().over_peer, 1);
  const OwnedFd other = ConnectTo(port_, 0x7f000002);  // A connection from 127.0.0.2.
  EXPECT_TRUE(HasOpen(2));
}

TEST_F(ListenerTest, RunningOutOfDescriptorsIsReportedAndListeningContinues) {
  OpenOnLoopback();
  const OwnedFd before = ConnectTo(port_);
  ASSERT_TRUE(HasOpen(1));
  ASSERT_TRUE(WaitUntil([&] { return taken() == 1; }));
  const OwnedFd waiting = OwnedFd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(port_));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  rlimit limit = {};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &limit), 0);
  const rlimit full = {.rlim_cur = 3, .rlim_max = limit.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &full), 0);
  ASSERT_EQ(::connect(waiting.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
  EXPECT_TRUE(WaitUntil([&] { return listener_->counters().no_descriptor > 0; }));
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &limit), 0);
  const OwnedFd after = ConnectTo(port_);
  EXPECT_TRUE(WaitUntil([&] { return listener_->counters().let_in >= 2; }));
  EXPECT_THAT(told(), testing::Contains(HasSubstr("ulimit -n")));
}

TEST_F(ListenerTest, StopListeningFreesThePortAndKeepsOpenConnections) {
  OpenOnLoopback();
  const OwnedFd inside = ConnectTo(port_);
  ASSERT_TRUE(HasOpen(1));
  listener_->StopListening();
  listener_->StopListening();
  EXPECT_THAT(ListenOnTcp("127.0.0.1", port_), IsOk());  // The port is free again.
  EXPECT_EQ(listener_->counters().open, 1);
}

TEST_F(ListenerTest, HangUpEndsAConnectionThatNobodyReads) {
  OpenOnLoopback();
  const OwnedFd client = ConnectTo(port_);
  ASSERT_TRUE(HasOpen(1));
  ASSERT_TRUE(WaitUntil([&] { return taken() == 1; }));
  listener_->HangUp();
  EXPECT_TRUE(IsClosed(client));
  EXPECT_TRUE(HasOpen(0));
}

// Options with which the listener counts what connections send.
ListenerOptions Counting() {
  return {.calls = std::make_shared<OpenCalls>(SteadyClock()),
          .clock = [] { return absl::ZeroDuration(); }};
}

// Reads what has come, as gRPC does. Returns false if the connection has ended.
bool ReadAll(const OwnedFd& fd) {
  std::string buffer(8192, '\0');
  iovec piece = {.iov_base = buffer.data(), .iov_len = buffer.size()};
  msghdr message = {};
  message.msg_iov = &piece;
  message.msg_iovlen = 1;
  ssize_t got;
  while ((got = ::recvmsg(fd.get(), &message, 0)) > 0) {
  }
  return got < 0 && errno == EAGAIN;
}

TEST_F(ListenerTest, AConnectionThatSendsTooMuchIsDroppedAndReported) {
  OpenOnLoopback(Counting());
  const OwnedFd client = ConnectTo(port_);
  ASSERT_TRUE(WaitUntil([&] { return taken() == 1; }));
  const std::string bytes(4096, 'x');
  EXPECT_TRUE(WaitUntil([&] {
    ::send(client.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    MutexLock lock(mu_);
    return !ReadAll(taken_[0]);
  }));
  EXPECT_TRUE(IsClosed(client));
  EXPECT_TRUE(WaitUntil([&] { return listener_->counters().sent_too_much == 1; }));
  EXPECT_TRUE(WaitUntil([&] { return told().size() == 1; }));
  EXPECT_THAT(told()[0], AllOf(HasSubstr("127.0.0.1, which sent 26"), HasSubstr("1 so far")));
}

TEST_F(ListenerTest, APeerWithUnpaidCostIsDelayedAndOtherPeersAreNot) {
  ListenerOptions options = Counting();
  options.clock = SteadyClock();
  OpenOnLoopback(std::move(options));
  // Sixteen connections cost a MiB each, and end.
  for (size_t i = 0; i < 16; ++i) {
    const OwnedFd client = ConnectTo(port_);
    ASSERT_TRUE(WaitUntil([&] { return taken() == 1; }));
    const std::string bytes(kMaxUnearnedBytes - 4096, 'x');
    size_t sent = 0;
    ASSERT_TRUE(WaitUntil([&] {
      const ssize_t now = ::send(client.get(), bytes.data() + sent, bytes.size() - sent,
                                 MSG_NOSIGNAL | MSG_DONTWAIT);
      if (now > 0) sent += static_cast<size_t>(now);
      MutexLock lock(mu_);
      return ReadAll(taken_[0]) && sent == bytes.size();
    }));
    EndFirstTaken();
    ASSERT_TRUE(HasOpen(0));
  }
  const OwnedFd late = ConnectTo(port_);
  const OwnedFd other = ConnectTo(port_, 0x7f000002);
  ASSERT_TRUE(WaitUntil([&] { return taken() > 0; }));
  {
    MutexLock lock(mu_);
    sockaddr_in peer = {};
    socklen_t size = sizeof(peer);
    ASSERT_EQ(::getpeername(taken_[0].get(), reinterpret_cast<sockaddr*>(&peer), &size), 0);
    EXPECT_EQ(ntohl(peer.sin_addr.s_addr), 0x7f000002u);
  }
  EXPECT_TRUE(WaitUntil([&] { return taken() == 2; }));
}

TEST_F(ListenerTest, UnixSocketLimitsApplyPerUserAndTheFileIsRemovedAtTheEnd) {
  const TempFolder folder;
  const std::string path = folder / "s";
  absl::StatusOr<ListeningSockets> listeners = ListenOnUnix(path);
  ASSERT_THAT(listeners, IsOk());
  Open(*std::move(listeners), {.max_connections_per_peer = 1});
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  std::strncpy(address.sun_path, path.c_str(), sizeof(address.sun_path) - 1);
  std::vector<OwnedFd> clients;
  for (int i = 0; i < 2; ++i) {
    clients.emplace_back(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
    ASSERT_EQ(
        ::connect(clients.back().get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
  }
  EXPECT_TRUE(IsClosed(clients[1]));
  ASSERT_THAT(told(), SizeIs(1));
  EXPECT_THAT(told()[0], HasSubstr("user " + std::to_string(::geteuid())));
  listener_ = nullptr;
  EXPECT_THAT(folder.List(), testing::IsEmpty());
}

TEST_F(ListenerTest, AConnectionLimitBelowOneIsRefused) {
  absl::StatusOr<ListeningSockets> listeners = ListenOnTcp("127.0.0.1", 0);
  ASSERT_THAT(listeners, IsOk());
  EXPECT_THAT(Listener::Open(*std::move(listeners), {.max_connections = 0},
                             [](int, std::optional<uid_t>) {}),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("want 1 or more")));
}

TEST(ListeningSocketsTest, ATakenPortIsUnavailable) {
  const absl::StatusOr<ListeningSockets> first = ListenOnTcp("127.0.0.1", 0);
  ASSERT_THAT(first, IsOk());
  ASSERT_GT(first->port, 0);
  EXPECT_THAT(ListenOnTcp("127.0.0.1", first->port),
              StatusIs(absl::StatusCode::kUnavailable, HasSubstr("in use")));
  EXPECT_THAT(ListenOnTcp("0.0.0.0", first->port),
              StatusIs(absl::StatusCode::kUnavailable, testing::Ne("")));
}

TEST(ListeningSocketsTest, ListeningOnAHostNameAcceptsConnections) {
  const absl::StatusOr<ListeningSockets> sockets = ListenOnTcp("localhost", 0);
  ASSERT_THAT(sockets, IsOk());
  EXPECT_FALSE(sockets->fds.empty());
  const OwnedFd client = ConnectTo(sockets->port);
}

TEST(ListeningSocketsTest, TheIpv6WildcardAddressAlsoAcceptsIpv4) {
  const absl::StatusOr<ListeningSockets> sockets = ListenOnTcp("[::]", 0);
  if (!sockets.ok()) {  // The machine may have no IPv6.
    EXPECT_THAT(sockets, StatusIs(absl::StatusCode::kUnavailable, testing::Ne("")));
    return;
  }
  const OwnedFd client = ConnectTo(sockets->port);
}

TEST(ListeningSocketsTest, AddressesOfOtherMachinesAndUnknownNamesAreUnavailable) {
  EXPECT_THAT(ListenOnTcp("192.0.2.1", 0),
              StatusIs(absl::StatusCode::kUnavailable, testing::Ne("")));
  EXPECT_THAT(ListenOnTcp("no such name", 0),
              StatusIs(absl::StatusCode::kUnavailable, testing::Ne("")));
}

TEST(ListeningSocketsTest, AUnixPathTooLongOrInAMissingFolderIsRefused) {
  EXPECT_THAT(ListenOnUnix("/tmp/" + std::string(200, 'x')),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("205 bytes")));
  EXPECT_THAT(ListenOnUnix("/no/such/folder/s"),
              StatusIs(absl::StatusCode::kUnavailable, testing::Ne("")));
}

}  // namespace
}  // namespace systole
