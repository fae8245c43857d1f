#include "core/concurrency/descriptor_poller.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "core/concurrency/bounded_queue.h"
#include "core/concurrency/mutex.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/status_matchers.h"
#include "tests/wait_until.h"

namespace systole {
namespace {

struct Pair {
  Pair() {
    int ends[2] = {-1, -1};
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK, 0, ends), 0);
    a = OwnedFd(ends[0]);
    b = OwnedFd(ends[1]);
  }
  void Send(const std::string& message) const {
    EXPECT_EQ(send(a.get(), message.data(), message.size(), 0),
              static_cast<ssize_t>(message.size()));
  }
  // Returns "" if the peer is gone or no message has come.
  std::string Receive() const {
    char bytes[100];
    const ssize_t got = recv(b.get(), bytes, sizeof(bytes), 0);
    return std::string(bytes, got < 0 ? 0 : static_cast<size_t>(got));
  }
  OwnedFd a;
  OwnedFd b;
};

std::unique_ptr<DescriptorPoller> MustCreate() {
  absl::StatusOr<std::unique_ptr<DescriptorPoller>> poller = DescriptorPoller::Create();
  EXPECT_THAT(poller, IsOk());
  return *std::move(poller);
}

TEST(DescriptorPollerTest, CallsAHandlerForEachMessageUntilItReturnsFalse) {
  BoundedQueue<std::string> got(10);
  const Pair pair;
  const auto poller = MustCreate();
  ASSERT_THAT(poller->Add(pair.b.get(),
                          [&] {
                            const std::string message = pair.Receive();
                            EXPECT_THAT(got.Push(message), IsOk());
                            return message != "last";
                          }),
              IsOk());
  for (const std::string message : {"one", "two", "last", "unheard"}) pair.Send(message);
  for (const std::string message : {"one", "two", "last"}) {
    EXPECT_THAT(got.Pop(), IsOkAndHolds(testing::Optional(message)));
  }
  // The handler returned false for "last". So it was not called again, and this message is unread.
  EXPECT_EQ(pair.Receive(), "unheard");
}

TEST(DescriptorPollerTest, CallsTheHandlerWhenThePeerCloses) {
  BoundedQueue<std::string> got(10);
  Pair pair;
  const auto poller = MustCreate();
  ASSERT_THAT(poller->Add(pair.b.get(),
                          [&] {
                            EXPECT_THAT(got.Push(pair.Receive()), IsOk());
                            return false;
                          }),
              IsOk());
  pair.a = OwnedFd();
  EXPECT_THAT(got.Pop(), IsOkAndHolds(testing::Optional(std::string())));
}

TEST(DescriptorPollerTest, EdgeTriggeredHandlersAreNotCalledAgainForUnreadBytes) {
  const Pair pair;
  const Pair last;
  std::atomic<int> calls = 0;
  BoundedQueue<std::string> got(10);
  const auto poller = MustCreate();
  ASSERT_THAT(poller->Add(
                  pair.b.get(),
                  [&] {
                    ++calls;
                    return true;
                  },
                  CallWhen::kMoreComes),
              IsOk());
  ASSERT_THAT(poller->Add(last.b.get(),
                          [&] {
                            EXPECT_THAT(got.Push(last.Receive()), IsOk());
                            return false;
                          }),
              IsOk());
  for (int i = 1; i <= 3; ++i) {
    pair.Send("unread");
    ASSERT_TRUE(WaitUntil([&] { return calls == i; }));
  }
  // If the poller called the first handler again for the unread bytes, that call would come before
  // the call of the second handler.
  last.Send("last");
  EXPECT_THAT(got.Pop(), IsOkAndHolds(testing::Optional(std::string("last"))));
  EXPECT_EQ(calls, 3);
}

TEST(DescriptorPollerTest, AHandlerMayOwnItsDescriptorAndAddMoreHandlers) {
  BoundedQueue<std::string> got(100);
  const auto poller = MustCreate();
  // Each message opens a new pair, often with the descriptor numbers of the pair that was just
  // closed.
  std::function<void(int)> chain = [&](int left) {
    auto pair = std::make_shared<Pair>();
    const int watched = pair->b.get();
    pair->Send(std::to_string(left));
    EXPECT_THAT(poller->Add(watched,
                            [&, pair = std::move(pair), left] {
                              EXPECT_THAT(got.Push(pair->Receive()), IsOk());
                              if (left > 0) chain(left - 1);
                              return false;
                            }),
                IsOk());
  };
  chain(50);
  for (int i = 50; i >= 0; --i) {
    EXPECT_THAT(got.Pop(), IsOkAndHolds(testing::Optional(std::to_string(i))));
  }
}

TEST(DescriptorPollerTest, AnAlwaysReadableDescriptorDoesNotStarveOtherDescriptors) {
  const Pair busy;
  const Pair other;
  std::atomic<int64_t> busy_calls = 0;
  std::atomic<int> other_calls = 0;
  busy.Send("never taken");
  const auto poller = MustCreate();
  ASSERT_THAT(poller->Add(busy.b.get(),
                          [&] {
                            ++busy_calls;
                            return true;
                          }),
              IsOk());
  ASSERT_THAT(poller->Add(other.b.get(),
                          [&] {
                            EXPECT_EQ(other.Receive(), "1");
                            ++other_calls;
                            return true;
                          }),
              IsOk());
  for (int i = 1; i <= 10; ++i) {
    const int64_t before = busy_calls;
    ASSERT_TRUE(WaitUntil([&] { return busy_calls > before; }));
    other.Send("1");
    ASSERT_TRUE(WaitUntil([&] { return other_calls == i; }));
  }
}

TEST(DescriptorPollerTest, DestroyingThePollerDestroysItsHandlers) {
  const Pair pair;
  const auto alive = std::make_shared<int>();
  {
    const auto poller = MustCreate();
    ASSERT_THAT(poller->Add(pair.b.get(), [alive] { return true; }), IsOk());
    EXPECT_EQ(alive.use_count(), 2);
  }
  EXPECT_EQ(alive.use_count(), 1);
}

TEST(DescriptorPollerTest, AddRefusesARegularFileAndDropsItsHandler) {
  const auto poller = MustCreate();
  const auto alive = std::make_shared<int>();
  const OwnedFd file(open("/proc/self/exe", O_RDONLY));  // A file is always readable.
  EXPECT_FALSE(poller->Add(file.get(), [alive] { return true; }).ok());
  EXPECT_EQ(alive.use_count(), 1);
}

}  // namespace
}  // namespace systole
