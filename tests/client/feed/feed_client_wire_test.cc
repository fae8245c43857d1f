// In which form a FeedClient has its tensors sent, and when it changes that.
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "client/feed/feed_client.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/client/feed/drained_feed.h"
#include "tests/client/feed/fake_server.h"
#include "tests/core/storage/temp_folder.h"
#include "tests/status_matchers.h"

namespace systole {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::unique_ptr<FeedClient> CreateAs(v1::Wire wire, const FakeFeed& feed,
                                     std::vector<std::string> servers) {
  v1::FeedSpec spec = SpecOf(feed);
  spec.set_wire(wire);
  FeedClientOptions options = Quick(std::move(servers));
  // The trainer never holds anything up, whatever the machine does.
  options.prefetch_bytes = int64_t{1} << 30;
  absl::StatusOr<std::unique_ptr<FeedClient>> client = FeedClient::Create(spec, options);
  EXPECT_THAT(client, IsOk());
  return client.ok() ? *std::move(client) : nullptr;
}

// "first_step form" of each stream that was asked for.
std::vector<std::string> Streams(const FakeServer& server) {
  std::vector<std::string> streams;
  for (const v1::StreamStepsRequest& request : server.requests()) {
    EXPECT_EQ(request.spec().wire(), v1::FINISHED);  // Not the servers' business.
    streams.push_back(
        absl::StrCat(request.first_step(),
                     request.spec().outputs(0).dtype() == v1::UINT8 ? " compact" : " finished"));
  }
  return streams;
}

// A feed in which the way limits in the steps for which `slow` is true, and the making elsewhere.
FakeFeed PacedFeed(std::function<bool(int64_t step)> slow, int64_t steps = 400) {
  return {.pixels = true,
          .epochs = 1,
          .steps_per_epoch = steps,
          .spoil = [slow = std::move(slow)](int, int, FakeChunk& piece) {
            piece.header.waited_us = slow(piece.header.step) ? 1 : 1000;
            piece.header.sent_us = slow(piece.header.step) ? 1000 : 1;
          }};
}

TEST(FeedClientWireTest, FinishedAsksForWhatTheSpecSays) {
  const FakeFeed feed = {.pixels = true};
  const FakeServer server(feed);
  const auto client = CreateAs(v1::FINISHED, feed, {server.address()});
  ASSERT_NE(client, nullptr);
  ExpectAllSteps(Drain(*client), 0, 20);
  EXPECT_THAT(Streams(server), ElementsAre("0 finished"));
  EXPECT_EQ(client->stats().payload_bytes, client->stats().delivered_bytes);
  EXPECT_EQ(client->stats().compact_steps, 0);
}

TEST(FeedClientWireTest, CompactAsksForUint8AndHandsOutTheSpecsTensors) {
  const FakeFeed feed = {.pixels = true};
  const FakeServer server(feed);
  const auto client = CreateAs(v1::COMPACT, feed, {server.address()});
  ASSERT_NE(client, nullptr);
  const int x = client->layout().IndexOf("x");
  EXPECT_EQ(client->layout().tensors()[static_cast<size_t>(x)].spec.dtype, DType::kFloat32);
  ExpectAllSteps(Drain(*client), 0, 20);
  EXPECT_THAT(Streams(server), ElementsAre("0 compact"));
  // 2 cores * 4 examples * 100 values travelled as one byte, not four.
  EXPECT_EQ(client->stats().delivered_bytes, 20 * client->info().bytes_per_step());
  EXPECT_EQ(client->stats().payload_bytes, client->stats().delivered_bytes - 20 * 2 * 400 * 3);
  EXPECT_EQ(client->stats().compact_steps, 20);
  EXPECT_EQ(client->stats().wire_changes, 0);
}

TEST(FeedClientWireTest, WhatCannotTravelCompactlyTravelsAsItIs) {
  const FakeFeed feed;  // Nothing but uint8 and labels.
  const FakeServer server(feed);
  for (const v1::Wire wire : {v1::COMPACT, v1::AUTO}) {
    const auto client = CreateAs(wire, feed, {server.address()});
    ASSERT_NE(client, nullptr);
    ExpectAllSteps(Drain(*client), 0, 20);
    EXPECT_EQ(client->stats().payload_bytes, client->stats().delivered_bytes);
    EXPECT_EQ(client->stats().compact_steps, 0);
  }
}

TEST(FeedClientWireTest, AutoChangesInMidFeedAndBackWithoutLosingAStep) {
  const FakeFeed feed =
      PacedFeed([](int64_t step) { return (step >= 50 && step < 120) || step >= 200; });
  const FakeServer server(feed);
  const auto client = CreateAs(v1::AUTO, feed, {server.address()});
  ASSERT_NE(client, nullptr);
  ExpectAllSteps(Drain(*client), 0, 400);
  // A stream's first step does not count; then 8 steps, 16, 32 decide, whichever began them.
  const std::vector<std::string> streams = Streams(server);
  ASSERT_EQ(streams.size(), 4u) << absl::StrJoin(streams, ", ");
  EXPECT_THAT(streams[0], "0 finished");
  EXPECT_THAT(streams[1], HasSubstr(" compact"));
  EXPECT_THAT(streams[2], HasSubstr(" finished"));
  EXPECT_THAT(streams[3], HasSubstr(" compact"));
  EXPECT_EQ(client->stats().wire_changes, 3);
  EXPECT_EQ(client->stats().streams_lost, 0);
  EXPECT_EQ(client->stats().steps_received, 400);
}

TEST(FeedClientWireTest, AutoStaysFinishedWhileTheMakingLimits) {
  const FakeFeed feed = PacedFeed([](int64_t) { return false; });
  const FakeServer server(feed);
  const auto client = CreateAs(v1::AUTO, feed, {server.address()});
  ASSERT_NE(client, nullptr);
  ExpectAllSteps(Drain(*client), 0, 400);
  EXPECT_THAT(Streams(server), ElementsAre("0 finished"));
}

TEST(FeedClientWireTest, EachServerHasTheFormThatItsWayWants) {
  const FakeFeed slow = PacedFeed([](int64_t) { return true; });
  const FakeFeed quick = PacedFeed([](int64_t) { return false; });
  const FakeServer far(slow), near(quick);
  const auto client = CreateAs(v1::AUTO, slow, {far.address(), near.address()});
  ASSERT_NE(client, nullptr);
  ExpectAllSteps(Drain(*client), 0, 400);
  // Steps 0, 2, .. of which the first does not count.
  EXPECT_THAT(Streams(far), ElementsAre("0 finished", "18 compact"));
  EXPECT_THAT(Streams(near), ElementsAre("1 finished"));
  EXPECT_EQ(client->stats().compact_steps, 200 - 9);
}

TEST(FeedClientWireTest, AServerThatReplacesAnotherOneBeginsAnew) {
  FakeFeed slow = PacedFeed([](int64_t) { return true; }, /*steps=*/60);
  slow.spoil = [pace = slow.spoil](int stream, int chunk, FakeChunk& piece) {
    pace(stream, chunk, piece);
    if (piece.header.step >= 20) piece.end = absl::UnavailableError("gone");
  };
  // Answers once for each form.
  slow.resolve = [asked = std::make_shared<std::atomic<int>>(0)](v1::ResolveFeedResponse&) {
    return (*asked)++ < 2 ? absl::OkStatus() : absl::UnavailableError("gone");
  };
  FakeFeed quick = PacedFeed([](int64_t) { return false; }, /*steps=*/60);
  const FakeServer far(slow), near(quick);
  const auto client = CreateAs(v1::AUTO, slow, {far.address(), near.address()});
  ASSERT_NE(client, nullptr);
  ExpectAllSteps(Drain(*client), 0, 60);
  EXPECT_THAT(Streams(far), ElementsAre("0 finished", "18 compact"));
  EXPECT_THAT(Streams(near), ElementsAre("1 finished", "20 finished"));
  EXPECT_EQ(client->stats().wire_changes, 1);
}

TEST(FeedClientWireTest, WhatASocketOfThisMachineSaysDecidesNothingForTheServerBehindIt) {
  const TempFolder folder;
  FakeFeed here = PacedFeed([](int64_t) { return true; }, /*steps=*/60);
  here.spoil = [pace = here.spoil](int stream, int chunk, FakeChunk& piece) {
    pace(stream, chunk, piece);
    if (piece.header.step >= 30) piece.end = absl::UnavailableError("gone");
  };
  here.resolve = [asked = std::make_shared<std::atomic<int>>(0)](v1::ResolveFeedResponse&) {
    return (*asked)++ == 0 ? absl::OkStatus() : absl::UnavailableError("gone");
  };
  FakeFeed quick = PacedFeed([](int64_t) { return false; }, /*steps=*/60);
  const FakeServer local(here, "unix:" + (folder / "socket")), remote(quick);
  const auto client = CreateAs(v1::AUTO, here, {local.address(), remote.address()});
  ASSERT_NE(client, nullptr);
  ExpectAllSteps(Drain(*client), 0, 60);
  EXPECT_THAT(Streams(local), ElementsAre("0 finished"));
  EXPECT_THAT(Streams(remote), ElementsAre("1 finished", "30 finished"));
  EXPECT_EQ(client->stats().wire_changes, 0);
}

TEST(FeedClientWireTest, AServerLostInEitherFormChangesNothing) {
  // A step and which stream of its server breaks there: 0 is finished, 1 compact.
  const std::pair<int64_t, int> kBreaks[] = {{5, 0}, {9, 0}, {10, 0}, {30, 1}, {31, 1}};
  for (const auto& [broken, in_stream] : kBreaks) {
    std::atomic<bool> once = false;
    FakeFeed feed = PacedFeed([](int64_t) { return true; }, /*steps=*/60);
    feed.spoil = [&once, broken = broken, in_stream = in_stream, pace = feed.spoil](
                     int stream, int chunk, FakeChunk& piece) {
      pace(stream, chunk, piece);
      if (stream == in_stream && piece.header.step == broken && piece.header.core == 1 &&
          !once.exchange(true)) {
        piece.end = absl::UnavailableError("gone");
      }
    };
    const FakeServer a(feed), b(feed);
    const auto client = CreateAs(v1::AUTO, feed, {a.address(), b.address()});
    ASSERT_NE(client, nullptr);
    ExpectAllSteps(Drain(*client), 0, 60);
    EXPECT_EQ(client->stats().streams_lost, 1);
    // One in each lane, and one more where a lane that was compact begins anew.
    EXPECT_EQ(client->stats().wire_changes, in_stream == 0 ? 2 : 3) << broken;
  }
}

TEST(FeedClientWireTest, ACompactChunkDamagedOnTheWayIsFetchedAgain) {
  FakeFeed feed = {.pixels = true};
  feed.spoil = [](int stream, int chunk, FakeChunk& piece) {
    if (stream == 0 && chunk == 25) piece.data[0] ^= 1;
  };
  const FakeServer server(feed);
  const auto client = CreateAs(v1::COMPACT, feed, {server.address()});
  ASSERT_NE(client, nullptr);
  ExpectAllSteps(Drain(*client), 0, 20);
  EXPECT_EQ(client->stats().streams_lost, 1);
}

TEST(FeedClientWireTest, NothingTravelsBetweenProcessesOfOneMachine) {
  const TempFolder folder;
  const FakeFeed feed = PacedFeed([](int64_t) { return true; }, /*steps=*/60);
  const FakeServer server(feed, "unix:" + (folder / "socket"));
  for (const v1::Wire wire : {v1::COMPACT, v1::AUTO}) {
    const auto client = CreateAs(wire, feed, {server.address()});
    ASSERT_NE(client, nullptr);
    ExpectAllSteps(Drain(*client), 0, 60);
    EXPECT_EQ(client->stats().compact_steps, 0);
    EXPECT_EQ(client->stats().wire_changes, 0);
  }
  EXPECT_THAT(Streams(server), ElementsAre("0 finished", "0 finished"));
}

TEST(FeedClientWireTest, AFormOfANewerVersionIsRefused) {
  const FakeFeed feed;
  const FakeServer server(feed);
  v1::FeedSpec spec = SpecOf(feed);
  spec.set_wire(static_cast<v1::Wire>(9));
  EXPECT_THAT(FeedClient::Create(spec, Quick({server.address()})),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("wire is 9")));
}

}  // namespace
}  // namespace systole
