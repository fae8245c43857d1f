// The form in which a FeedClient asks for its tensors (FeedClientOptions::finish).
#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
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

std::unique_ptr<FeedClient> CreateAs(const std::string& finish, const FakeFeed& feed,
                                     std::vector<std::string> servers) {
  FeedClientOptions options = Quick(std::move(servers));
  options.finish = finish;
  absl::StatusOr<std::unique_ptr<FeedClient>> client = FeedClient::Create(SpecOf(feed), options);
  EXPECT_THAT(client, IsOk());
  return client.ok() ? *std::move(client) : nullptr;
}

// For each stream that was asked for, "FIRST_STEP finished" or "FIRST_STEP compact".
std::vector<std::string> Streams(const FakeServer& server) {
  std::vector<std::string> streams;
  for (const v1::StreamStepsRequest& request : server.requests()) {
    streams.push_back(
        absl::StrCat(request.first_step(), request.compact() ? " compact" : " finished"));
  }
  return streams;
}

TEST(FeedClientFinishTest, TensorsFromANetworkServerAreFinishedByTheClient) {
  const FakeFeed feed = {.pixels = true};
  for (const char* const finish : {"auto", "client"}) {
    const FakeServer server(feed);
    const auto client = CreateAs(finish, feed, {server.address()});
    ASSERT_NE(client, nullptr);
    EXPECT_TRUE(client->can_be_compact());
    const int x = client->layout().IndexOf("x");
    EXPECT_EQ(client->layout().tensors()[static_cast<size_t>(x)].spec.dtype, DType::kFloat32);
    ExpectAllSteps(Drain(*client), 0, 20);
    EXPECT_THAT(Streams(server), ElementsAre("0 compact"));
    // 2 cores * 4 examples * 100 values travelled as one byte each instead of four.
    EXPECT_EQ(client->stats().delivered_bytes, 20 * client->info().bytes_per_step());
    EXPECT_EQ(client->stats().payload_bytes, client->stats().delivered_bytes - 20 * 2 * 400 * 3);
    EXPECT_EQ(client->stats().compact_steps, 20);
  }
}

TEST(FeedClientFinishTest, WithFinishServerNoCompactFormIsRequested) {
  FakeFeed feed = {.pixels = true};
  feed.resolve = [](v1::ResolveFeedResponse& answer) {
    for (const v1::TensorDescription& tensor : answer.tensors()) {
      EXPECT_FALSE(tensor.has_compact());
    }
    return absl::OkStatus();
  };
  const FakeServer server(feed);
  const auto client = CreateAs("server", feed, {server.address()});
  ASSERT_NE(client, nullptr);
  EXPECT_FALSE(client->can_be_compact());
  ExpectAllSteps(Drain(*client), 0, 20);
  EXPECT_THAT(Streams(server), ElementsAre("0 finished"));
  EXPECT_EQ(client->stats().payload_bytes, client->stats().delivered_bytes);
  EXPECT_EQ(client->stats().compact_steps, 0);
}

TEST(FeedClientFinishTest, OverAUnixSocketTheServerFinishesUnlessFinishIsClient) {
  const TempFolder folder;
  const FakeFeed feed = {.pixels = true};
  const FakeServer server(feed, "unix:" + (folder / "socket"));
  for (const char* const finish : {"auto", "server", "client"}) {
    const auto client = CreateAs(finish, feed, {server.address()});
    ASSERT_NE(client, nullptr);
    ExpectAllSteps(Drain(*client), 0, 20);
  }
  // With "client" the stream is compact, because the server shares no memory.
  EXPECT_THAT(Streams(server), ElementsAre("0 finished", "0 finished", "0 compact"));
}

TEST(FeedClientFinishTest, LocalServersSendFinishedAndRemoteServersCompactSteps) {
  const TempFolder folder;
  const FakeFeed feed = {.pixels = true};
  const FakeServer near(feed, "unix:" + (folder / "socket")), far(feed);
  const auto client = CreateAs("auto", feed, {near.address(), far.address()});
  ASSERT_NE(client, nullptr);
  ExpectAllSteps(Drain(*client), 0, 20);
  EXPECT_THAT(Streams(near), ElementsAre("0 finished"));
  EXPECT_THAT(Streams(far), ElementsAre("1 compact"));
  EXPECT_EQ(client->stats().compact_steps, 10);
}

TEST(FeedClientFinishTest, TensorsWithoutACompactFormAreSentFinished) {
  const FakeFeed feed;  // Its tensors are uint8 and int64, which have no compact form.
  const FakeServer server(feed);
  const auto client = CreateAs("client", feed, {server.address()});
  ASSERT_NE(client, nullptr);
  EXPECT_FALSE(client->can_be_compact());
  ExpectAllSteps(Drain(*client), 0, 20);
  EXPECT_THAT(Streams(server), ElementsAre("0 finished"));
  EXPECT_EQ(client->stats().payload_bytes, client->stats().delivered_bytes);
}

// If a server is lost while it sends a step in one form, the client fetches the step again in the
// other form.
TEST(FeedClientFinishTest, LosingALocalOrRemoteServerChangesNoStepData) {
  for (const bool far_dies : {false, true}) {
    for (const int64_t broken : {1, 6, 7, 11}) {
      SCOPED_TRACE(absl::StrCat(far_dies, " ", broken));
      const TempFolder folder;
      const FakeFeed good = {.pixels = true};
      FakeFeed bad = good;
      bad.spoil = [broken](int, int, FakeChunk& piece) {
        if (piece.header.step >= broken && piece.header.core == 1) {
          piece.end = absl::UnavailableError("gone");
        }
      };
      bad.resolve = [asked = std::make_shared<std::atomic<int>>(0)](v1::ResolveFeedResponse&) {
        return (*asked)++ == 0 ? absl::OkStatus() : absl::UnavailableError("gone");
      };
      const FakeServer near(far_dies ? good : bad, "unix:" + (folder / "socket")),
          far(far_dies ? bad : good);
      const auto client = CreateAs("auto", good, {near.address(), far.address()});
      ASSERT_NE(client, nullptr);
      ExpectAllSteps(Drain(*client), 0, 20);
      for (const std::string& stream : Streams(near)) EXPECT_THAT(stream, HasSubstr("finished"));
      for (const std::string& stream : Streams(far)) EXPECT_THAT(stream, HasSubstr("compact"));
      EXPECT_GE(client->stats().streams_lost, 1);
    }
  }
}

TEST(FeedClientFinishTest, ACompactChunkDamagedOnTheWayIsFetchedAgain) {
  FakeFeed feed = {.pixels = true};
  feed.spoil = [](int stream, int chunk, FakeChunk& piece) {
    if (stream == 0 && chunk == 25) piece.data[0] ^= 1;
  };
  const FakeServer server(feed);
  const auto client = CreateAs("auto", feed, {server.address()});
  ASSERT_NE(client, nullptr);
  ExpectAllSteps(Drain(*client), 0, 20);
  EXPECT_EQ(client->stats().streams_lost, 1);
  EXPECT_EQ(client->stats().damaged_chunks, 1);
}

// With another scale, the client would make other floats of the same uint8 values.
TEST(FeedClientFinishTest, AServerWithADifferentCompactFormIsRefused) {
  const FakeFeed feed = {.pixels = true};
  FakeFeed other = feed;
  other.resolve = [](v1::ResolveFeedResponse& answer) {
    for (v1::TensorDescription& tensor : *answer.mutable_tensors()) {
      if (tensor.has_compact()) tensor.mutable_compact()->set_scale(0, 2);
    }
    return absl::OkStatus();
  };
  FakeFeed none = feed;
  none.resolve = [](v1::ResolveFeedResponse& answer) {
    for (v1::TensorDescription& tensor : *answer.mutable_tensors()) tensor.clear_compact();
    return absl::OkStatus();
  };
  for (const FakeFeed& wrong : {other, none}) {
    const FakeServer first(feed), second(wrong);
    FeedClientOptions options = Quick({first.address(), second.address()});
    // The server that answers first is taken, and the other server is refused.
    absl::StatusOr<std::unique_ptr<FeedClient>> client = FeedClient::Create(SpecOf(feed), options);
    absl::Status status = client.status();
    if (client.ok()) status = Drain(**client).end;
    EXPECT_THAT(status, StatusIs(absl::StatusCode::kFailedPrecondition,
                                 HasSubstr("tensor 'x' finished in a different way")));
    options.finish = "server";
    client = FeedClient::Create(SpecOf(feed), options);
    ASSERT_THAT(client, IsOk());
    ExpectAllSteps(Drain(**client), 0, 20);
  }
}

TEST(FeedClientFinishTest, AnUnknownFinishValueIsRefused) {
  const FakeFeed feed;
  FeedClientOptions options = Quick({"127.0.0.1:1"});
  for (const char* const word : {"", "Client", "compact"}) {
    options.finish = word;
    EXPECT_THAT(
        FeedClient::Create(SpecOf(feed), options),
        StatusIs(absl::StatusCode::kInvalidArgument,
                 HasSubstr(absl::StrCat("finish is '", word, "', want auto, server or client"))));
  }
}

}  // namespace
}  // namespace systole
