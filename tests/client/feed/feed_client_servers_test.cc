// Tests a FeedClient whose servers are late, send little by little, are full, or come and go. The
// tests check from which server the client takes which steps.
#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "client/feed/feed_client.h"
#include "core/concurrency/monotonic_clock.h"
#include "core/concurrency/mutex.h"
#include "core/memory/aligned_buffer.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/client/feed/drained_feed.h"
#include "tests/client/feed/fake_server.h"
#include "tests/core/storage/temp_folder.h"
#include "tests/status_matchers.h"
#include "tests/wait_until.h"

namespace systole {
namespace {

using testing::HasSubstr;

// Blocks the calling thread for `time`.
void Pause(absl::Duration time) {
  const MonotonicClock clock = SteadyClock();
  const absl::Duration end = clock() + time;
  Mutex mu;
  CondVar never;
  MutexLock lock(mu);
  while (clock() < end) never.WaitFor(mu, end - clock());
}

TEST(FeedClientServersTest, StepsOfAHungServerMoveBeforeTheSilenceTimeout) {
  const FakeFeed feed = {.epochs = 1, .steps_per_epoch = 200};
  FakeFeed hung = feed;
  hung.spoil = [](int, int, FakeChunk& piece) { piece.hang = piece.header.step >= 20; };
  const FakeServer a(feed), b(hung);
  // Hedging is off. Otherwise a late step could come from server a as a second copy, and server b
  // would not be relieved of the step.
  FeedClientOptions options = Quick({a.address(), b.address()});
  options.hedge_fraction = 0;
  options.silence_timeout = absl::Hours(1);
  const auto client = MustCreate(feed, options);
  ASSERT_NE(client, nullptr);
  ExpectAllSteps(Drain(*client), 0, 200);
  EXPECT_GT(client->stats().relieved_steps, 0);
  EXPECT_EQ(client->stats().streams_lost, 0);
}

TEST(FeedClientServersTest, ALateStepComesFromAnotherServer) {
  const FakeFeed feed = {.epochs = 1, .steps_per_epoch = 60};
  FakeFeed hung = feed;
  hung.spoil = [](int, int, FakeChunk& piece) { piece.hang = piece.header.step % 20 == 1; };
  const FakeServer a(feed), b(hung);
  FeedClientOptions options = Quick({a.address(), b.address()});
  options.hedge_fraction = 0.1;
  // On a busy machine the client may notice a late step very late, and move all steps of the late
  // server to the other server at once. In this case no hedge wins, and the feed runs again.
  for (int64_t won = 0; won == 0;) {
    const auto client = MustCreate(feed, options);
    ASSERT_NE(client, nullptr);
    ExpectAllSteps(Drain(*client), 0, 60);
    won = client->stats().hedges_won;
  }
}

TEST(FeedClientServersTest, AServerThatTricklesAStepFailsTheFeedAfterRetryFor) {
  // A step has hundreds of chunks. From step 3 on, the server pauses 50 ms before each chunk, so a
  // step takes half a minute.
  FakeFeed feed = {.per_core_batch = 400, .spoil = [](int, int, FakeChunk& piece) {
                     if (piece.header.step >= 3) Pause(absl::Milliseconds(50));
                   }};
  const FakeServer server(feed);
  FeedClientOptions options = Quick({server.address()});
  options.retry_for = absl::Seconds(2);
  const auto client = MustCreate(feed, options);
  ASSERT_NE(client, nullptr);
  const DrainedFeed drained = Drain(*client);
  EXPECT_EQ(drained.steps, Range(0, 3));
  EXPECT_THAT(drained.end, StatusIs(absl::StatusCode::kUnavailable,
                                    HasSubstr("no server has sent step 3 for 2s")));
  EXPECT_EQ(client->stats().streams_lost, 0);
}

TEST(FeedClientServersTest, TheLongestWaitIsThatForTheSlowestStep) {
  FakeFeed feed = {.spoil = [](int, int chunk, FakeChunk& piece) {
    if (piece.header.step == 7 && chunk % 10 == 0) Pause(absl::Seconds(2));
  }};
  const FakeServer server(feed);
  for (const bool polls : {false, true}) {
    const auto client = MustCreate(feed, Quick({server.address()}));
    ASSERT_NE(client, nullptr);
    for (int step = 0; step < 20; ++step) {
      while (polls && !client->WaitForNext(absl::Milliseconds(50))) continue;
      ASSERT_THAT(client->Next(), IsOk());
    }
    EXPECT_EQ(client->stats().longest_wait_step, 7);
    EXPECT_GT(client->stats().longest_wait, absl::Seconds(1));
  }
}

TEST(FeedClientServersTest, RetryForDoesNotRunWhileTheTrainerPauses) {
  const FakeFeed feed = {.epochs = 1, .steps_per_epoch = 400};
  auto server = std::make_unique<FakeServer>(feed);
  const std::string address = server->address();
  FeedClientOptions options = Quick({address});
  options.prefetch_bytes = 0;
  options.retry_for = absl::Milliseconds(1500);
  const auto client = MustCreate(feed, options);
  ASSERT_NE(client, nullptr);
  ASSERT_THAT(client->Next(), IsOk());
  server.reset();
  Pause(absl::Milliseconds(2000));  // Longer than retry_for. No step can arrive.
  server = std::make_unique<FakeServer>(feed, address);
  ExpectAllSteps(Drain(*client), 1, 400);
}

TEST(FeedClientServersTest, AServerAddedToTheFileIsUsedAndOneRemovedIsLeft) {
  const TempFolder folder;
  const FakeFeed feed = {.epochs = 0};
  const FakeServer a(feed), b(feed);
  const std::string path = folder.Write("servers", a.address() + "\n");
  FeedClientOptions options = Quick({"file:" + path});
  options.prefetch_bytes = 0;
  const auto client = MustCreate(feed, options);
  ASSERT_NE(client, nullptr);
  int64_t step = 0;
  const auto take_one = [&] {
    const absl::StatusOr<std::optional<Step>> next = client->Next();
    ASSERT_THAT(next, IsOk());
    ASSERT_EQ((*next)->number(), step++);
    ASSERT_EQ(WrongBytesOf(**next), "");
  };
  for (int i = 0; i < 10; ++i) take_one();
  folder.Write("servers", absl::StrCat(a.address(), "\n", b.address(), "\n"));
  ASSERT_TRUE(WaitUntil([&] {
    take_one();
    return b.steps_written() > 10;
  }));
  EXPECT_EQ(client->stats().membership_changes, 1);
  folder.Write("servers", b.address() + "\n");
  ASSERT_TRUE(WaitUntil([&] {
    take_one();
    return client->stats().membership_changes == 2;
  }));
  // Steps that server a has already sent may still arrive, but server a gets no more requests.
  const size_t asked = a.requests().size();
  for (int i = 0; i < 200; ++i) take_one();
  EXPECT_EQ(a.requests().size(), asked);
  // An invalid list of servers changes nothing.
  folder.Write("servers", "no address\n");
  ASSERT_TRUE(WaitUntil([&] {
    take_one();
    return client->stats().bad_server_lists >= 1;
  }));
  EXPECT_EQ(client->stats().membership_changes, 2);
  EXPECT_EQ(client->stats().streams_lost, 0);
}

// Memory for steps that counts its buffers in use.
class CountedMemory {
 public:
  StepMemory Memory() {
    return {.allocate =
                [this](int64_t bytes) {
                  most_ = std::max(most_.load(), ++buffers_);
                  return static_cast<uint8_t*>(std::aligned_alloc(
                      static_cast<size_t>(kBufferAlignment), static_cast<size_t>(bytes)));
                },
            .free =
                [this](uint8_t* buffer, int64_t) {
                  --buffers_;
                  std::free(buffer);
                }};
  }
  int64_t most() const { return most_; }

 private:
  std::atomic<int64_t> buffers_ = 0;
  std::atomic<int64_t> most_ = 0;
};

TEST(FeedClientServersTest, SixtyFourServersTakeNoMoreMemoryThanFour) {
  constexpr int64_t kWindow = 3;
  for (const size_t listed : {4, 64}) {
    // A server takes 10 ms for a step, so the client can make the feed faster with more servers.
    std::atomic<int64_t> answers = 0;
    const FakeFeed feed = {.epochs = 0,
                           .spoil =
                               [](int, int, FakeChunk& piece) {
                                 const ChunkHeader& header = piece.header;
                                 if (header.core + header.tensor + header.offset == 0) {
                                   Pause(absl::Milliseconds(10));
                                 }
                               },
                           .resolve =
                               [&answers](v1::ResolveFeedResponse&) {
                                 ++answers;
                                 return absl::OkStatus();
                               }};
    CountedMemory memory;
    std::vector<std::unique_ptr<FakeServer>> servers;
    std::vector<std::string> addresses;
    for (size_t i = 0; i < listed; ++i) {
      servers.push_back(std::make_unique<FakeServer>(feed));
      addresses.push_back(servers.back()->address());
    }
    FeedClientOptions options = Quick(addresses);
    auto client = MustCreate(feed, Quick({addresses[0]}));
    ASSERT_NE(client, nullptr);
    options.prefetch_bytes = kWindow * client->shape().bytes();
    options.memory = memory.Memory();
    client.reset();
    answers = 0;
    client = MustCreate(feed, options);
    ASSERT_NE(client, nullptr);
    ASSERT_EQ(client->window_steps(), kWindow);
    int64_t step = 0;
    const auto take_one = [&] {
      const absl::StatusOr<std::optional<Step>> next = client->Next();
      ASSERT_THAT(next, IsOk());
      ASSERT_EQ((*next)->number(), step++);
      ASSERT_EQ(WrongBytesOf(**next), "");
    };
    ASSERT_TRUE(WaitUntil([&] {
      take_one();
      return client->stats().servers_in_use == 4 || HasFatalFailure();
    }));
    for (int i = 0; i < 200; ++i) take_one();
    client.reset();
    size_t used = 0;
    for (const auto& server : servers) used += server->requests().empty() ? 0 : 1;
    EXPECT_GE(used, 4u);
    EXPECT_LE(used, 17u);  // 16 of this client, and 1 of the client before.
    // The client calls ResolveFeed of each server before it uses the server. These servers do not
    // say how busy they are. So the client has no reason to call a server again, or to try another
    // server in its place.
    EXPECT_LE(answers, 2 + 2 * 16);
    // The steps in the window, two steps of which two copies arrive, and the trainer's step.
    EXPECT_LE(memory.most(), kWindow + 2 + 1) << listed << " servers";
  }
}

TEST(FeedClientServersTest, ANewcomerWithOtherDataEndsTheFeed) {
  const TempFolder folder;
  FakeFeed feed = {.epochs = 0};
  const FakeServer a(feed);
  feed.order_fingerprint = 0xdef;
  const FakeServer b(feed);
  const std::string path = folder.Write("servers", a.address() + "\n");
  FeedClientOptions options = Quick({"file:" + path});
  options.prefetch_bytes = 0;
  const auto client = MustCreate(feed, options);
  ASSERT_NE(client, nullptr);
  folder.Write("servers", absl::StrCat(a.address(), "\n", b.address(), "\n"));
  absl::Status end;
  ASSERT_TRUE(WaitUntil([&] {
    end = client->Next().status();
    return !end.ok();
  }));
  EXPECT_THAT(end, StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("def")));
}

TEST(FeedClientServersTest, AFullServerIsRetriedAfterItsPushbackDelay) {
  const MonotonicClock clock = SteadyClock();
  std::atomic<int64_t> refused_us = 0;
  std::atomic<int64_t> came_back_us = 0;
  const FakeFeed feed = {.pushback = [&](int stream) -> std::optional<std::string> {
    const int64_t now_us = absl::ToInt64Microseconds(clock());
    (stream == 0 ? refused_us : came_back_us) = now_us;
    if (stream > 0) return std::nullopt;
    return "300";
  }};
  const FakeServer server(feed);
  const auto client = MustCreate(feed, Quick({server.address()}));
  ASSERT_NE(client, nullptr);
  ExpectAllSteps(Drain(*client), 0, 20);
  EXPECT_GE(came_back_us - refused_us, 300'000);
  EXPECT_EQ(client->stats().retries, 1);
}

TEST(FeedClientServersTest, AFullServerWithoutAValidPushbackDelayEndsTheFeed) {
  for (const char* pushback : {"-1", "soon", "", "1e9"}) {
    const FakeFeed feed = {
        .pushback = [pushback](int) { return std::optional<std::string>(pushback); }};
    const FakeServer server(feed);
    const auto client = MustCreate(feed, Quick({server.address()}));
    ASSERT_NE(client, nullptr);
    EXPECT_THAT(Drain(*client).end,
                StatusIs(absl::StatusCode::kResourceExhausted, HasSubstr("full")));
  }
}

TEST(FeedClientServersTest, AListThatCannotBeReadIsAnErrorAtOnce) {
  const TempFolder folder;
  EXPECT_THAT(FeedClient::Create(SpecOf({}), Quick({"file:" + folder / "none"})),
              StatusIs(absl::StatusCode::kNotFound, HasSubstr("none")));
}

}  // namespace
}  // namespace systole
