#include "client/servers/receive_meter.h"

#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <memory>
#include <string>
#include <utility>

#include "client/servers/socket_observer.h"
#include "gmock/gmock.h"
#include "grpcpp/create_channel.h"
#include "gtest/gtest.h"
#include "tests/loopback_socket.h"
#include "tests/status_matchers.h"
#include "tests/wait_until.h"

namespace systole {
namespace {

using testing::HasSubstr;

constexpr int64_t kMiB = int64_t{1} << 20;

// A connection with a meter at its near end.
class Connection {
 public:
  explicit Connection(ReceiveMeter& meter) {
    int port = 0;
    const OwnedFd listener = ListenOnLoopback(port);
    near_ = OwnedFd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    meter.AddSocket(near_.get());  // Before it connects, as gRPC does.
    const sockaddr_in to = LoopbackAddress(port);
    EXPECT_EQ(::connect(near_.get(), reinterpret_cast<const sockaddr*>(&to), sizeof(to)), 0);
    far_ = AcceptOnLoopback(listener);
  }
  // A connection that exists already.
  Connection(ReceiveMeter& meter, OwnedFd near, OwnedFd far)
      : near_(std::move(near)), far_(std::move(far)) {
    meter.AddSocket(near_.get());
  }

  // The far end sends `bytes`, and the near end reads them. Returns false if the connection was cut
  // off.
  bool Send(int64_t bytes) {
    constexpr int64_t kBlock = 32 << 10;  // Fits into the kernel's buffers.
    const std::string block(kBlock, 'x');
    std::string taken(kBlock, '\0');
    for (int64_t left = bytes; left > 0;) {
      const auto now = static_cast<size_t>(std::min(left, kBlock));
      if (::send(far_.get(), block.data(), now, MSG_NOSIGNAL) != static_cast<ssize_t>(now) ||
          ::recv(near_.get(), taken.data(), now, MSG_WAITALL) != static_cast<ssize_t>(now)) {
        return false;
      }
      left -= static_cast<int64_t>(now);
    }
    return true;
  }
  // Whether the near end was shut down.
  bool is_closed() const {
    char byte;
    const ssize_t got = ::recv(near_.get(), &byte, 1, MSG_DONTWAIT);
    return got == 0 || (got < 0 && errno != EAGAIN);
  }
  void Close() { near_ = OwnedFd(); }

 private:
  OwnedFd near_;
  OwnedFd far_;
};

TEST(ReceiveMeterTest, AConnectionThatSendsTooManyUnaskedBytesIsClosed) {
  // An idle connection is allowed some bytes for each second, so time stands still here.
  ReceiveMeter meter([] { return absl::ZeroDuration(); });
  Connection connection(meter);
  ASSERT_TRUE(connection.Send(kUnaskedBytes));
  meter.Look();
  EXPECT_FALSE(connection.is_closed());
  ASSERT_TRUE(connection.Send(1000));
  meter.Look();
  EXPECT_TRUE(connection.is_closed());
}

TEST(ReceiveMeterTest, ACallAllowsItsBytesInAdvanceButOnlyUntilItEnds) {
  const auto meter = std::make_shared<ReceiveMeter>();
  Connection connection(*meter);
  {
    MeteredCall call(meter, 8 * kMiB);
    ASSERT_TRUE(connection.Send(kUnaskedBytes + 8 * kMiB));
    meter->Look();
    EXPECT_FALSE(connection.is_closed());
    EXPECT_THAT(call.End(absl::UnavailableError("gone")),
                StatusIs(absl::StatusCode::kUnavailable, "gone"));
  }
  MeteredCall next(meter, kMiB);
  ASSERT_TRUE(connection.Send(2 * kMiB));  // The ended call has used up its 8 MiB.
  meter->Look();
  EXPECT_TRUE(connection.is_closed());
  EXPECT_THAT(next.End(absl::UnavailableError("gone")),
              StatusIs(absl::StatusCode::kInternal, HasSubstr("16 MiB more than was asked for")));
}

TEST(ReceiveMeterTest, ASuccessfulCallStaysOkAlthoughItsConnectionWasClosed) {
  const auto meter = std::make_shared<ReceiveMeter>();
  Connection connection(*meter);
  MeteredCall call(meter, kMiB);
  ASSERT_TRUE(connection.Send(kUnaskedBytes + 2 * kMiB));
  meter->Look();
  EXPECT_TRUE(connection.is_closed());
  EXPECT_THAT(call.End(absl::OkStatus()), IsOk());
}

// On a busy machine the meter looks late. Since its last look many bytes may have come, and the
// call may have taken them.
TEST(ReceiveMeterTest, TheLimitDoesNotDependOnHowOftenTheMeterLooks) {
  for (const int looks : {1, 3, 50}) {
    const auto meter = std::make_shared<ReceiveMeter>();
    MeteredCall call(meter, kMiB);
    Connection connection(*meter);
    for (int i = 0; i < 50; ++i) {
      ASSERT_TRUE(connection.Send(kMiB));
      call.Took(kMiB);
      if (i % (50 / looks) == 0) meter->Look();
    }
    meter->Look();
    EXPECT_FALSE(connection.is_closed()) << looks;
    ASSERT_TRUE(connection.Send(kUnaskedBytes + 2 * kMiB));
    meter->Look();
    EXPECT_TRUE(connection.is_closed()) << looks;
  }
}

TEST(ReceiveMeterTest, TheRestOfACancelledCallIsAllowedUntilALaterCallIsAnswered) {
  const auto meter = std::make_shared<ReceiveMeter>();
  Connection connection(*meter);
  {
    MeteredCall call(meter, 20 * kMiB);
    EXPECT_THAT(call.End(absl::CancelledError("by us")),
                StatusIs(absl::StatusCode::kCancelled, "by us"));
  }
  MeteredCall later(meter, kMiB);
  meter->Look();
  ASSERT_TRUE(connection.Send(kUnaskedBytes + 20 * kMiB));
  meter->Look();
  EXPECT_FALSE(connection.is_closed());
  later.Took(0);
  meter->Look();
  ASSERT_TRUE(connection.Send(4 * kMiB));
  meter->Look();
  EXPECT_TRUE(connection.is_closed());
}

TEST(ReceiveMeterTest, AnAnswerToAnEarlierCallDoesNotEndTheAllowanceOfACancelledCall) {
  const auto meter = std::make_shared<ReceiveMeter>();
  Connection connection(*meter);
  MeteredCall earlier(meter, kMiB);
  EXPECT_FALSE(MeteredCall(meter, 20 * kMiB).End(absl::CancelledError("by us")).ok());
  earlier.Took(0);
  meter->Look();
  ASSERT_TRUE(connection.Send(kUnaskedBytes + 20 * kMiB));
  meter->Look();
  EXPECT_FALSE(connection.is_closed());
}

TEST(ReceiveMeterTest, CallsThatTimeOutUnansweredAllowTheBytesOfTwoCallsAtMost) {
  const auto meter = std::make_shared<ReceiveMeter>();
  Connection connection(*meter);
  for (int i = 0; i < 100; ++i) {
    EXPECT_FALSE(MeteredCall(meter, kMiB).End(absl::DeadlineExceededError("late")).ok());
  }
  meter->Look();
  ASSERT_TRUE(connection.Send(kUnaskedBytes + 2 * kMiB));
  meter->Look();
  EXPECT_FALSE(connection.is_closed());
  ASSERT_TRUE(connection.Send(kMiB));
  meter->Look();
  EXPECT_TRUE(connection.is_closed());
}

TEST(ReceiveMeterTest, BytesThatACallTakesAreAllowedWithoutLimit) {
  const auto meter = std::make_shared<ReceiveMeter>();
  MeteredCall call(meter, kMiB);
  Connection connection(*meter);
  for (int i = 0; i < 100; ++i) {
    ASSERT_TRUE(connection.Send(kMiB + kMiB / 8));  // The headers of small frames add an eighth.
    meter->Look();
    call.Took(kMiB);
  }
  EXPECT_FALSE(connection.is_closed());
}

TEST(ReceiveMeterTest, UnusedAllowanceIsNotSavedUp) {
  const auto meter = std::make_shared<ReceiveMeter>();
  MeteredCall call(meter, kMiB);
  Connection connection(*meter);
  call.Took(100 * kMiB);
  meter->Look();
  ASSERT_TRUE(connection.Send(kUnaskedBytes + 2 * kMiB));
  meter->Look();
  EXPECT_TRUE(connection.is_closed());
}

TEST(ReceiveMeterTest, AllConnectionsOfALinkCountTogetherUntilAllAreClosed) {
  // An idle connection is allowed some bytes for each second, so time stands still here.
  ReceiveMeter meter([] { return absl::ZeroDuration(); });
  Connection a(meter), b(meter);
  ASSERT_TRUE(a.Send(kUnaskedBytes - kMiB));
  meter.Look();
  a.Close();
  ASSERT_TRUE(b.Send(kMiB));
  meter.Look();
  EXPECT_FALSE(b.is_closed());
  b.Close();
  meter.Look();
  Connection c(meter), d(meter), e(meter);
  ASSERT_TRUE(c.Send(kUnaskedBytes - kMiB));
  meter.Look();
  c.Close();
  ASSERT_TRUE(d.Send(kMiB));  // As a and b are closed, their bytes no longer count.
  meter.Look();
  EXPECT_FALSE(d.is_closed());
  EXPECT_FALSE(e.is_closed());
  ASSERT_TRUE(d.Send(1));  // With the bytes of c, this is one too many.
  meter.Look();
  EXPECT_TRUE(d.is_closed());
  EXPECT_TRUE(e.is_closed());
}

TEST(ReceiveMeterTest, ADescriptorReusedByAnotherConnectionIsNotClosed) {
  ReceiveMeter meter;
  ReceiveMeter other;
  auto first = std::make_unique<Connection>(meter);
  ASSERT_TRUE(first->Send(kMiB));
  meter.Look();
  first.reset();
  Connection second(other);  // Gets the descriptor numbers of `first`.
  ASSERT_TRUE(second.Send(kUnaskedBytes + kMiB));
  meter.Look();
  EXPECT_FALSE(second.is_closed());
  other.Look();
  EXPECT_TRUE(second.is_closed());
}

TEST(ReceiveMeterTest, UnixSocketsAreNeitherCountedNorClosedAndInvalidOnesIgnored) {
  // An idle connection is allowed some bytes for each second, so time stands still here.
  ReceiveMeter meter([] { return absl::ZeroDuration(); });
  int ends[2];
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
  Connection local(meter, OwnedFd(ends[0]), OwnedFd(ends[1]));
  meter.AddSocket(-1);
  for (int i = 0; i < 18; ++i) {
    ASSERT_TRUE(local.Send(kMiB));
    meter.Look();
  }
  EXPECT_FALSE(local.is_closed());
  Connection remote(meter);
  ASSERT_TRUE(remote.Send(kUnaskedBytes));
  meter.Look();
  EXPECT_FALSE(remote.is_closed());
  ASSERT_TRUE(remote.Send(1));
  meter.Look();
  EXPECT_TRUE(remote.is_closed());
  EXPECT_FALSE(local.is_closed());
}

TEST(ReceiveWatchTest, ClosesAConnectionOverTheLimitWithoutACallToLook) {
  ReceiveWatch watch;
  const auto meter = std::make_shared<ReceiveMeter>();
  watch.Add(meter);
  watch.Add(std::make_shared<ReceiveMeter>());  // This meter is destroyed at once.
  Connection connection(*meter);
  ASSERT_TRUE(connection.Send(kUnaskedBytes));
  EXPECT_FALSE(connection.is_closed());
  // Each look allows a few bytes more. So the test sends until the connection is closed.
  EXPECT_TRUE(WaitUntil([&] { return !connection.Send(kMiB); }));
  EXPECT_TRUE(connection.is_closed());
}

TEST(SocketObserverTest, SeesTheSocketsOfAChannel) {
  int port = 0;
  const OwnedFd listener = ListenOnLoopback(port);
  std::atomic<int> seen = -1;
  {
    grpc::ChannelArguments args;
    ObserveSockets(args, [&seen](int fd) { seen = fd; });
    const auto channel = grpc::CreateCustomChannel("127.0.0.1:" + std::to_string(port),
                                                   grpc::InsecureChannelCredentials(), args);
    channel->GetState(/*try_to_connect=*/true);
    const OwnedFd accepted = AcceptOnLoopback(listener);
    ASSERT_TRUE(accepted.ok());
    EXPECT_GE(seen, 0);
  }
}

}  // namespace
}  // namespace systole
