#include "server/listener/meter.h"

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/http2_frames.h"

namespace systole {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

constexpr int kFd = -1;  // Not a socket, so the Meter counts 0 bytes as sent by the server.

class MeterTest : public testing::Test {
 protected:
  struct Connection {
    std::shared_ptr<OpenCalls::Connection> calls;
    std::shared_ptr<ReadObserver> observer;

    bool Send(absl::string_view bytes) const {
      return observer->OnBytes(bytes.size()) &&
             observer->OnPlainText({reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()});
    }
  };

  Connection Connect(int fd, const std::string& peer) {
    auto calls = std::make_shared<OpenCalls::Connection>([] { return absl::ZeroDuration(); });
    auto observer = meter_->Add(fd, peer, calls);
    return {.calls = std::move(calls), .observer = std::move(observer)};
  }
  static std::string Request(int i) {
    return Http2Frame(1, 4, static_cast<uint32_t>(2 * i + 1), "header");
  }

  int told_ = 0;
  const std::shared_ptr<Meter> meter_ = std::make_shared<Meter>(
      kPlainConnectionCost, [] { return absl::ZeroDuration(); }, [this] { ++told_; });
};

// gRPC must get neither the stream that is one too many nor any later frame, however many bytes are
// read at a time.
TEST_F(MeterTest, TheStreamOverTheLimitAndAllLaterBytesAreRefused) {
  const Connection connection = Connect(kFd, "a");
  ASSERT_TRUE(connection.Send(kHttp2Preface));
  for (int i = 0; i < kMaxUnearnedStreams; ++i) ASSERT_TRUE(connection.Send(Request(i))) << i;
  EXPECT_THAT(meter_->TakeExcess(), IsEmpty());
  EXPECT_FALSE(connection.Send(Request(kMaxUnearnedStreams)));
  EXPECT_FALSE(connection.Send(Http2Frame(6, 0, 0, "12345678")));  // Later frames are refused too.
  EXPECT_EQ(told_, 1);
  const std::vector<Meter::Excess> excess = meter_->TakeExcess();
  ASSERT_THAT(excess, SizeIs(1));
  EXPECT_TRUE(excess[0].alone);
  EXPECT_THAT(excess[0].what, HasSubstr(absl::StrCat(kMaxUnearnedStreams + 1, " requests")));
  EXPECT_THAT(meter_->TakeExcess(), IsEmpty());

  const Connection other = Connect(kFd, "b");
  std::string many = kHttp2Preface;
  for (int i = 0; i <= kMaxUnearnedStreams; ++i) many += Request(i);
  EXPECT_FALSE(other.Send(many));
}

TEST_F(MeterTest, RequestsThatAreServedAreAdmittedBeyondTheStreamLimit) {
  const Connection connection = Connect(kFd, "a");
  ASSERT_TRUE(connection.Send(kHttp2Preface));
  for (int i = 0; i < 10 * kMaxUnearnedStreams; ++i) {
    ASSERT_TRUE(connection.Send(
        Request(i) + Http2Frame(0, 1, static_cast<uint32_t>(2 * i + 1), std::string(3000, 'r'))));
    connection.calls->Begin();
    connection.calls->Serve();
    connection.calls->End(/*served=*/true);
  }
}

// gRPC keeps the bytes of an incomplete request until the request is complete.
TEST_F(MeterTest, AnIncompleteRequestIsLimitedDespiteServedCalls) {
  const Connection connection = Connect(kFd, "a");
  ASSERT_TRUE(connection.Send(kHttp2Preface + Request(0)));
  int64_t sent = 0;
  const auto serve_one = [&](int i) {
    if (!connection.Send(Request(i) + Http2Frame(0, 1, static_cast<uint32_t>(2 * i + 1), ""))) {
      return false;
    }
    connection.calls->Begin();
    connection.calls->Serve();
    connection.calls->End(/*served=*/true);
    return true;
  };
  for (int i = 1; i < 1000; ++i) {
    if (!serve_one(i) || !connection.Send(Http2Frame(0, 0, 1, std::string(16 << 10, 'm')))) break;
    sent += 16 << 10;
  }
  EXPECT_LE(sent, kMaxUnearnedBytes);
}

// When a client does not read its answers, the server keeps the answers and their calls.
TEST_F(MeterTest, CallsOfAConnectionThatStayUnservedAreLimited) {
  const Connection connection = Connect(kFd, "a");
  ASSERT_TRUE(connection.Send(kHttp2Preface));
  int calls = 0;
  for (; calls < 1000; ++calls) {
    if (!connection.Send(Request(calls) +
                         Http2Frame(0, 1, static_cast<uint32_t>(2 * calls + 1), ""))) {
      break;
    }
    connection.calls->Begin();
  }
  EXPECT_EQ(calls, kMaxUnearnedStreams);
}

TEST_F(MeterTest, OverTheTotalLimitTheCostliestPeerLosesAConnection) {
  const Connection one = Connect(0, "one");
  ASSERT_TRUE(one.Send(std::string(kMaxUnearnedBytes - 1, 'x')));
  std::vector<Connection> crowd;
  while (told_ == 0) {
    crowd.push_back(Connect(static_cast<int>(crowd.size()) + 1, "crowd"));
    crowd.back().Send(std::string(kMaxUnearnedBytes / 2, 'x'));
  }
  constexpr int64_t kOne = kPlainConnectionCost + kByteCost * (kMaxUnearnedBytes - 1);
  constexpr int64_t kOfCrowd = kPlainConnectionCost + kByteCost * kMaxUnearnedBytes / 2;
  EXPECT_EQ(static_cast<int64_t>(crowd.size()), (kMaxUnearnedCost - kOne) / kOfCrowd + 1);
  const std::vector<Meter::Excess> excess = meter_->TakeExcess();
  ASSERT_THAT(excess, SizeIs(1));
  EXPECT_NE(excess[0].fd, 0);
  EXPECT_FALSE(excess[0].alone);
  EXPECT_FALSE(crowd[static_cast<size_t>(excess[0].fd) - 1].Send("x"));
  EXPECT_TRUE(one.Send("x"));
}

TEST_F(MeterTest, BytesOfAnEndedConnectionAreRefusedAndItsDescriptorIsReusable) {
  const Connection first = Connect(5, "a");
  ASSERT_TRUE(first.Send(kHttp2Preface));
  meter_->Remove(5);
  meter_->Remove(5);
  const Connection second = Connect(5, "a");
  EXPECT_FALSE(first.Send("x"));
  EXPECT_TRUE(second.Send(kHttp2Preface));
}

TEST_F(MeterTest, APeerMayNotReconnectAtOnceAfterManyCostlyConnections) {
  EXPECT_TRUE(meter_->MayComeIn("a"));
  for (int i = 0; i < 20; ++i) {
    ASSERT_TRUE(Connect(i, "a").Send(std::string(kMaxUnearnedBytes, 'x')));
    meter_->Remove(i);
  }
  EXPECT_FALSE(meter_->MayComeIn("a"));
  EXPECT_TRUE(meter_->MayComeIn("b"));
}

}  // namespace
}  // namespace systole
