// Tests a FeedClient whose servers are lost, lie, disagree or stay silent.
#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "client/feed/feed_client.h"
#include "client/schedule/failure.h"
#include "core/concurrency/worker_pool.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/client/feed/drained_feed.h"
#include "tests/client/feed/fake_server.h"
#include "tests/dead_address.h"
#include "tests/status_matchers.h"
#include "tests/wait_until.h"

namespace systole {
namespace {

using testing::AllOf;
using testing::HasSubstr;

// A step of the default FakeFeed has 10 chunks: 2 cores * (1 of label + 1 of valid + 3 of x).
constexpr int kChunksPerStep = 10;

using Spoil = std::function<void(int stream, int chunk, FakeChunk& piece)>;

// Drains a feed from one server, whose chunks are changed by `spoil`. Sets options.servers.
DrainedFeed DrainSpoiled(Spoil spoil, FeedClientStats* stats = nullptr,
                         FeedClientOptions options = Quick({})) {
  const FakeFeed feed = {.spoil = std::move(spoil)};
  const FakeServer server(feed);
  options.servers = {server.address()};
  const auto client = MustCreate(feed, options);
  if (client == nullptr) return {};
  DrainedFeed drained = Drain(*client);
  if (stats != nullptr) *stats = client->stats();
  return drained;
}

TEST(FeedClientLossTest, AStreamThatBreaksAnywhereIsTakenUpAgain) {
  for (int broken = 0; broken <= 2 * kChunksPerStep; ++broken) {
    FeedClientStats stats;
    const DrainedFeed drained = DrainSpoiled(
        [broken](int stream, int chunk, FakeChunk& piece) {
          if (stream == 0 && chunk == broken) piece.end = absl::UnavailableError("gone");
        },
        &stats);
    ExpectAllSteps(drained, 0, 20);
    EXPECT_EQ(stats.streams_lost, 1);
    EXPECT_EQ(stats.steps_received, 20);
  }
}

// The first server sends the even steps, and its stream breaks after step 18, the last of these.
// The second server's streams break at step 19, so step 19 must come from the first server. The
// first server answers its second question only when the second server has got another request for
// step 19. If the client requested step 19 from the first server without an answer, the second
// server would not get that request.
TEST(FeedClientLossTest, AServerThatBrokeAfterItsLastStepIsAskedBeforeItGetsMoreSteps) {
  const FakeFeed feed;
  std::atomic<int> first_asked = 0;
  std::atomic<bool> second_tried_again = false;
  FakeFeed first = feed, second = feed;
  first.resolve = [&](v1::ResolveFeedResponse&) {
    if (++first_asked == 2) {
      EXPECT_TRUE(WaitUntil([&] { return second_tried_again.load(); }));
    }
    return absl::OkStatus();
  };
  first.spoil = [](int stream, int chunk, FakeChunk& piece) {
    if (stream == 0 && chunk == 10 * kChunksPerStep - 1) piece.end = absl::UnavailableError("gone");
  };
  second.spoil = [&](int stream, int, FakeChunk& piece) {
    if (piece.header.step != 19) return;
    if (stream > 0) second_tried_again = true;
    EXPECT_TRUE(WaitUntil([&] { return first_asked >= 2; }));
    piece.end = absl::UnavailableError("gone, too");
  };
  const FakeServer a(first), b(second);
  const auto client = MustCreate(feed, Quick({a.address(), b.address()}));
  ASSERT_NE(client, nullptr);
  ExpectAllSteps(Drain(*client), 0, 20);
  EXPECT_EQ(a.requests().back().first_step(), 19);
}

TEST(FeedClientLossTest, AStreamThatEndsTooEarlyIsTakenUpAgain) {
  ExpectAllSteps(DrainSpoiled([](int stream, int chunk, FakeChunk& piece) {
                   if (stream < 3 && chunk == 14) piece.end = absl::OkStatus();
                 }),
                 0, 20);
}

TEST(FeedClientLossTest, StatusCodesOfALostConnectionAreRetried) {
  for (const absl::StatusCode code :
       {absl::StatusCode::kUnavailable, absl::StatusCode::kDeadlineExceeded,
        absl::StatusCode::kCancelled, absl::StatusCode::kInternal, absl::StatusCode::kUnknown}) {
    ExpectAllSteps(DrainSpoiled([code](int stream, int chunk, FakeChunk& piece) {
                     if (stream < 2 && chunk == 3) piece.end = absl::Status(code, "torn");
                   }),
                   0, 20);
  }
}

TEST(FeedClientLossTest, AnInternalErrorThatRepeatsEndsTheFeed) {
  const DrainedFeed drained = DrainSpoiled([](int, int, FakeChunk& piece) {
    if (piece.header.step == 3) piece.end = absl::InternalError("a bug of the server's");
  });
  EXPECT_EQ(drained.steps, Range(0, 3));
  EXPECT_THAT(drained.end,
              StatusIs(absl::StatusCode::kInternal,
                       AllOf(HasSubstr("a bug of the server's"), HasSubstr("[server 127.0.0.1:"))));
}

TEST(FeedClientLossTest, PermanentErrorsEndTheFeedAfterTheEarlierSteps) {
  for (const absl::StatusCode code :
       {absl::StatusCode::kDataLoss, absl::StatusCode::kFailedPrecondition,
        absl::StatusCode::kInvalidArgument, absl::StatusCode::kNotFound}) {
    FeedClientStats stats;
    const DrainedFeed drained = DrainSpoiled(
        [code](int, int, FakeChunk& piece) {
          if (piece.header.step == 7) piece.end = absl::Status(code, "shard-3, record 8");
        },
        &stats);
    EXPECT_EQ(drained.steps, Range(0, 7));
    EXPECT_EQ(drained.wrong, "");
    EXPECT_THAT(drained.end, StatusIs(code, HasSubstr("shard-3, record 8")));
    EXPECT_EQ(stats.streams_lost, 1);
  }
}

TEST(FeedClientLossTest, ARunningFeedRetriesSuspectErrorsBelowTheLimit) {
  for (const absl::StatusCode code :
       {absl::StatusCode::kUnimplemented, absl::StatusCode::kResourceExhausted,
        absl::StatusCode::kUnauthenticated, absl::StatusCode::kPermissionDenied}) {
    SCOPED_TRACE(absl::StatusCodeToString(code));
    // The error ends some calls of ResolveFeed, and some streams. Each of the two happens fewer
    // than kMaxSuspectFailures times, so the feed goes on.
    int asked = 0;
    const FakeFeed feed = {.spoil =
                               [code](int stream, int, FakeChunk& piece) {
                                 if (piece.header.step == 7 && stream < kMaxSuspectFailures - 1) {
                                   piece.end = absl::Status(code, "a bit is flipped");
                                 }
                               },
                           .resolve =
                               [&asked, code](v1::ResolveFeedResponse&) {
                                 ++asked;
                                 return asked > 1 && asked < kMaxSuspectFailures
                                            ? absl::Status(code, "a bit is flipped")
                                            : absl::OkStatus();
                               }};
    const FakeServer server(feed);
    const auto client = MustCreate(feed, Quick({server.address()}));
    ASSERT_NE(client, nullptr);
    ExpectAllSteps(Drain(*client), 0, 20);
    EXPECT_GT(client->stats().streams_lost, kMaxSuspectFailures);
  }
}

TEST(FeedClientLossTest, SuspectErrorsThatRepeatUpToTheLimitEndTheFeed) {
  for (const absl::StatusCode code :
       {absl::StatusCode::kUnimplemented, absl::StatusCode::kUnauthenticated}) {
    FeedClientStats stats;
    const DrainedFeed drained = DrainSpoiled(
        [code](int, int, FakeChunk& piece) {
          if (piece.header.step == 7) piece.end = absl::Status(code, "not here");
        },
        &stats);
    EXPECT_EQ(drained.steps, Range(0, 7));
    EXPECT_THAT(drained.end, StatusIs(code, HasSubstr("not here")));
    EXPECT_EQ(stats.streams_lost, kMaxSuspectFailures);
  }
}

TEST(FeedClientLossTest, WithManyServersTheFeedEndsAtTheFirstBadStep) {
  const FakeFeed feed = {.spoil = [](int, int, FakeChunk& piece) {
    if (piece.header.step >= 11) piece.end = absl::DataLossError("damaged");
  }};
  const FakeServer a(feed), b(feed), c(feed);
  for (int i = 0; i < 20; ++i) {
    const auto client = MustCreate(feed, Quick({a.address(), b.address(), c.address()}));
    ASSERT_NE(client, nullptr);
    const DrainedFeed drained = Drain(*client);
    EXPECT_EQ(drained.steps, Range(0, 11));
    EXPECT_THAT(drained.end, StatusIs(absl::StatusCode::kDataLoss, HasSubstr("damaged")));
    EXPECT_THAT(client->Next(), StatusIs(absl::StatusCode::kDataLoss, HasSubstr("damaged")));
    EXPECT_EQ(client->next_step(), 11);
  }
}

TEST(FeedClientLossTest, AServerKilledInMidStreamIsReplacedByTheOther) {
  // When the lost server dies, most of its steps have not arrived, because the steps are far larger
  // than the buffers of sockets and the windows of gRPC.
  const FakeFeed feed = {
      .example_bytes = 1 << 16, .epochs = 1, .steps_per_epoch = 100, .chunk_bytes = 1 << 16};
  const FakeServer stays(feed);
  auto dies = std::make_unique<FakeServer>(feed);
  FeedClientOptions options = Quick({dies->address(), stays.address()});
  options.prefetch_bytes = 0;
  const auto client = MustCreate(feed, options);
  ASSERT_NE(client, nullptr);
  for (int64_t step = 0; step < 7; ++step) {
    absl::StatusOr<std::optional<Step>> next = client->Next();
    ASSERT_THAT(next, IsOk());
    ASSERT_TRUE(next->has_value());
    EXPECT_EQ((*next)->number(), step);
  }
  dies.reset();
  ExpectAllSteps(Drain(*client), 7, 100);
  EXPECT_GE(client->stats().streams_lost, 1);
}

TEST(FeedClientLossTest, AServerThatComesBackIsUsedAgain) {
  const FakeFeed feed = {.epochs = 1, .steps_per_epoch = 400};
  auto server = std::make_unique<FakeServer>(feed);
  const std::string address = server->address();
  FeedClientOptions options = Quick({address});
  options.prefetch_bytes = 0;
  const auto client = MustCreate(feed, options);
  ASSERT_NE(client, nullptr);
  for (int i = 0; i < 5; ++i) ASSERT_THAT(client->Next(), IsOk());
  server.reset();
  server = std::make_unique<FakeServer>(feed, address);
  ExpectAllSteps(Drain(*client), 5, 400);
}

TEST(FeedClientLossTest, AServerThatComesBackWithOtherDataIsRefused) {
  FakeFeed feed = {.epochs = 1, .steps_per_epoch = 400};
  auto server = std::make_unique<FakeServer>(feed);
  const std::string address = server->address();
  FeedClientOptions options = Quick({address});
  options.prefetch_bytes = 0;
  const auto client = MustCreate(feed, options);
  ASSERT_NE(client, nullptr);
  for (int i = 0; i < 5; ++i) ASSERT_THAT(client->Next(), IsOk());
  server.reset();
  feed.dataset_fingerprint = 12;
  server = std::make_unique<FakeServer>(feed, address);
  EXPECT_THAT(Drain(*client).end,
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("000000000000000c")));
}

TEST(FeedClientLossTest, ServersThatComeAndGoChangeNothing) {
  const FakeFeed feed = {.epochs = 0};
  std::unique_ptr<FakeServer> servers[] = {std::make_unique<FakeServer>(feed),
                                           std::make_unique<FakeServer>(feed)};
  const std::string addresses[] = {servers[0]->address(), servers[1]->address()};
  FeedClientOptions options = Quick({addresses[0], addresses[1]});
  options.prefetch_bytes = 0;
  const auto client = MustCreate(feed, options);
  ASSERT_NE(client, nullptr);
  int64_t step = 0;
  for (int round = 0; round < 20; ++round) {
    // A thread takes steps while a server is stopped and started again.
    WorkerPool trainer(1);
    trainer.Submit([&] {
      for (int i = 0; i < 50; ++i, ++step) {
        const absl::StatusOr<std::optional<Step>> next = client->Next();
        ASSERT_THAT(next, IsOk());
        ASSERT_TRUE(next->has_value());
        ASSERT_EQ((*next)->number(), step);
        ASSERT_EQ(WrongBytesOf(**next), "");
      }
    });
    std::unique_ptr<FakeServer>& restarted = servers[round % 2];
    restarted.reset();
    restarted = std::make_unique<FakeServer>(feed, addresses[round % 2]);
  }
  EXPECT_EQ(step, 20 * 50);
}

TEST(FeedClientLossTest, OneOfTwoServersMayBeMissingFromTheStart) {
  const FakeFeed feed;
  const FakeServer server(feed);
  const auto client = MustCreate(feed, Quick({DeadAddress(), server.address()}));
  ASSERT_NE(client, nullptr);
  ExpectAllSteps(Drain(*client), 0, 20);
}

TEST(FeedClientLossTest, IfNoServerAnswersCreateFailsAsUnavailable) {
  const std::string a = DeadAddress(), b = DeadAddress();
  FeedClientOptions options = Quick({a, b});
  options.connect_timeout = absl::Milliseconds(300);
  EXPECT_THAT(
      FeedClient::Create(SpecOf(FakeFeed()), options),
      StatusIs(absl::StatusCode::kUnavailable, AllOf(HasSubstr(a), HasSubstr(b), HasSubstr("300ms"),
                                                     HasSubstr("Is systole-server running"))));
}

TEST(FeedClientLossTest, LosingTheOnlyServerForGoodIsUnavailable) {
  const FakeFeed feed = {.epochs = 1, .steps_per_epoch = 400};
  auto server = std::make_unique<FakeServer>(feed);
  FeedClientOptions options = Quick({server->address()});
  options.prefetch_bytes = 0;
  options.retry_for = absl::Seconds(2);  // Step 0 must arrive within this time.
  const auto client = MustCreate(feed, options);
  ASSERT_NE(client, nullptr);
  ASSERT_THAT(client->Next(), IsOk());
  const std::string address = server->address();
  server.reset();
  const DrainedFeed drained = Drain(*client);
  EXPECT_EQ(drained.wrong, "");
  EXPECT_THAT(drained.end, StatusIs(absl::StatusCode::kUnavailable,
                                    AllOf(HasSubstr(address), HasSubstr("for 2s"))));
}

TEST(FeedClientLossTest, AFeedThatIsOverdueWhenTheTrainerAsksEndsAtOnce) {
  const FakeFeed feed = {
      .spoil = [](int, int, FakeChunk& piece) { piece.hang = piece.header.step > 0; }};
  const FakeServer server(feed);
  FeedClientOptions options = Quick({server.address()});
  options.retry_for = absl::Nanoseconds(1);
  for (const bool polls : {false, true}) {
    const auto client = MustCreate(feed, options);
    ASSERT_NE(client, nullptr);
    ASSERT_TRUE(WaitUntil([&] { return client->stats().steps_received == 1; }));
    ASSERT_THAT(client->Next(), IsOk());
    // With this call, the trainer's wait for step 1 begins. The next call finds that step 1 is
    // overdue.
    client->WaitForNext(absl::ZeroDuration());
    if (polls) {
      EXPECT_TRUE(client->WaitForNext(absl::InfiniteDuration()));
    }
    EXPECT_THAT(client->Next(), StatusIs(absl::StatusCode::kUnavailable, HasSubstr("for 1ns")));
  }
}

TEST(FeedClientLossTest, AServerThatNeverFinishesAStepIsGivenUp) {
  FeedClientOptions options = Quick({});
  options.retry_for = absl::Seconds(2);
  // Each stream ends in the middle of step 2. This is no progress, because only whole steps count.
  const DrainedFeed drained = DrainSpoiled(
      [](int, int, FakeChunk& piece) {
        if (piece.header.step == 2 && piece.header.core == 1) {
          piece.end = absl::UnavailableError("gone again");
        }
      },
      nullptr, options);
  EXPECT_EQ(drained.steps, Range(0, 2));
  EXPECT_THAT(drained.end, StatusIs(absl::StatusCode::kUnavailable, HasSubstr("gone again")));
}

// server_roster_test.cc, with a simulated clock, tests how long the client leaves a draining server
// alone.
TEST(FeedClientLossTest, StepsOfADrainingServerComeFromAnother) {
  std::atomic<int> refused = 0;
  FakeFeed feed = {.epochs = 1, .steps_per_epoch = 100};
  const FakeServer stays(feed);
  feed.spoil = [&](int, int, FakeChunk& piece) {
    if (piece.header.step < 10) return;
    ++refused;
    piece.header.draining = true;
    piece.data.clear();
    piece.end = absl::OkStatus();
  };
  const FakeServer drains(feed);
  // On a busy machine, `stays` may send all steps from 10 on, so that `drains` refuses none. Then
  // the feed runs again.
  while (refused == 0) {
    const auto client = MustCreate(feed, Quick({drains.address(), stays.address()}));
    ASSERT_NE(client, nullptr);
    ExpectAllSteps(Drain(*client), 0, 100);
  }
}

TEST(FeedClientLossTest, ADrainingServerThatIsAloneIsWaitedFor) {
  ExpectAllSteps(DrainSpoiled([](int stream, int chunk, FakeChunk& piece) {
                   if (stream < 3 && chunk == 25) {
                     piece.header.draining = true;
                     piece.data.clear();
                     piece.end = absl::OkStatus();
                   }
                 }),
                 0, 20);
}

TEST(FeedClientLossTest, ASilentServerCountsAsLost) {
  FeedClientOptions options = Quick({});
  options.silence_timeout = absl::Seconds(1);
  FeedClientStats stats;
  ExpectAllSteps(DrainSpoiled(
                     [](int stream, int chunk, FakeChunk& piece) {
                       if (stream == 0 && chunk == 33) piece.hang = true;
                     },
                     &stats, options),
                 0, 20);
  EXPECT_GE(stats.streams_lost, 1);
}

TEST(FeedClientLossTest, AServerThatStaysSilentEndsTheFeedAsUnavailable) {
  FeedClientOptions options = Quick({});
  options.silence_timeout = absl::Milliseconds(50);
  options.retry_for = absl::Seconds(2);
  EXPECT_THAT(
      DrainSpoiled([](int, int, FakeChunk& piece) { piece.hang = true; }, nullptr, options).end,
      StatusIs(absl::StatusCode::kUnavailable, HasSubstr("has sent nothing for 50ms")));
}

TEST(FeedClientLossTest, AChunkDamagedOnTheWayIsFetchedAgain) {
  FeedClientStats stats;
  ExpectAllSteps(DrainSpoiled(
                     [](int stream, int chunk, FakeChunk& piece) {
                       if (stream < 2 && chunk == 12) piece.data[0] ^= 1;
                     },
                     &stats),
                 0, 20);
  EXPECT_EQ(stats.streams_lost, 2);
  EXPECT_EQ(stats.damaged_chunks, 2);
  EXPECT_EQ(stats.damaged_requests, 0);
  EXPECT_EQ(stats.damaged_answers, 0);
}

TEST(FeedClientLossTest, ADamagedChunkHeaderIsRetriedAndThenEndsTheFeed) {
  const std::function<void(v1::Chunk&)> kDamages[] = {
      [](v1::Chunk& chunk) { chunk.set_step(chunk.step() ^ 64); },
      [](v1::Chunk& chunk) { chunk.set_core(chunk.core() ^ 1); },
      [](v1::Chunk& chunk) { chunk.set_tensor(chunk.tensor() ^ 2); },
      [](v1::Chunk& chunk) { chunk.set_offset(chunk.offset() ^ 4); },
      [](v1::Chunk& chunk) { chunk.set_draining(true); },
      [](v1::Chunk& chunk) { chunk.set_slot(1); },
      [](v1::Chunk& chunk) { chunk.set_header_crc32c(chunk.header_crc32c() ^ 1); },
      [](v1::Chunk& chunk) { chunk.clear_header_crc32c(); },
  };
  for (const auto& damage : kDamages) {
    FeedClientStats stats;
    ExpectAllSteps(DrainSpoiled(
                       [&damage](int stream, int chunk, FakeChunk& piece) {
                         if (stream < 2 && chunk == 12) piece.alter = damage;
                       },
                       &stats),
                   0, 20);
    EXPECT_EQ(stats.streams_lost, 2);
    EXPECT_EQ(stats.damaged_chunks, 2);
    const DrainedFeed drained = DrainSpoiled([&damage](int, int, FakeChunk& piece) {
      if (piece.header.step == 4) piece.alter = damage;
    });
    EXPECT_EQ(drained.steps, Range(0, 4));
    EXPECT_THAT(drained.end,
                StatusIs(absl::StatusCode::kDataLoss, HasSubstr("header was damaged on the way")));
  }
}

TEST(FeedClientLossTest, ARequestDamagedOnTheWayIsSentAgain) {
  FeedClientStats stats;
  ExpectAllSteps(DrainSpoiled(
                     [](int stream, int chunk, FakeChunk& piece) {
                       if (stream < 2 && chunk == 0) piece.end = absl::AbortedError("damaged");
                     },
                     &stats),
                 0, 20);
  EXPECT_EQ(stats.damaged_requests, 2);
  EXPECT_EQ(stats.damaged_chunks, 0);
  const DrainedFeed drained = DrainSpoiled([](int, int, FakeChunk& piece) {
    if (piece.header.step == 4) piece.end = absl::AbortedError("damaged");
  });
  EXPECT_EQ(drained.steps, Range(0, 4));
  EXPECT_THAT(drained.end,
              StatusIs(absl::StatusCode::kDataLoss,
                       HasSubstr(absl::StrCat(kMaxDamagedFailures, " attempts in a row"))));
}

TEST(FeedClientLossTest, ADamagedResolveFeedAnswerIsRequestedAgain) {
  std::atomic<int> asked = 0;
  FakeFeed feed;
  feed.resolve_checksum = [&asked](std::string& checksum) {
    if (asked++ < 2) checksum = "0badcafe";
  };
  {
    const FakeServer server(feed);
    const auto client = MustCreate(feed, Quick({server.address()}));
    ASSERT_NE(client, nullptr);
    ExpectAllSteps(Drain(*client), 0, 20);
    EXPECT_EQ(client->stats().damaged_answers, 2);
    EXPECT_EQ(client->stats().streams_lost, 2);
  }
  feed.resolve_checksum = [](std::string& checksum) { checksum = "0badcafe"; };
  const FakeServer server(feed);
  EXPECT_THAT(FeedClient::Create(SpecOf(feed), Quick({server.address()})),
              StatusIs(absl::StatusCode::kDataLoss,
                       AllOf(HasSubstr("answer to ResolveFeed"), HasSubstr("[server 127.0.0.1:"))));
}

TEST(FeedClientLossTest, AStepDamagedOverAndOverIsDataLoss) {
  FeedClientStats stats;
  const DrainedFeed drained = DrainSpoiled(
      [](int, int, FakeChunk& piece) {
        if (piece.header.step == 4) piece.header.crc32c ^= 1;
      },
      &stats);
  EXPECT_EQ(drained.steps, Range(0, 4));
  EXPECT_THAT(drained.end, StatusIs(absl::StatusCode::kDataLoss,
                                    AllOf(HasSubstr("step 4, core 0"), HasSubstr("CRC-32C"),
                                          HasSubstr("[server 127.0.0.1:"))));
  EXPECT_EQ(stats.streams_lost, kMaxDamagedFailures);
  EXPECT_EQ(stats.damaged_chunks, kMaxDamagedFailures);
}

TEST(FeedClientLossTest, AChunkInTheWrongPlaceEndsTheFeed) {
  const struct {
    const char* message;
    Spoil spoil;
  } kCases[] = {
      {"step 6, want 5", [](int, int, FakeChunk& piece) { piece.header.step = 6; }},
      {"step 4, want 5", [](int, int, FakeChunk& piece) { piece.header.step = 4; }},
      {"step -5, want 5", [](int, int, FakeChunk& piece) { piece.header.step = -5; }},
      {"core 1, want 0", [](int, int, FakeChunk& piece) { piece.header.core = 1; }},
      {"core 2, want 0", [](int, int, FakeChunk& piece) { piece.header.core = 2; }},
      {"core -1, want 0", [](int, int, FakeChunk& piece) { piece.header.core = -1; }},
      {"tensor 3, want 0", [](int, int, FakeChunk& piece) { piece.header.tensor = 3; }},
      {"tensor -1, want 0", [](int, int, FakeChunk& piece) { piece.header.tensor = -1; }},
      {"offset 1, want 0", [](int, int, FakeChunk& piece) { piece.header.offset = 1; }},
      {"offset -8, want 0", [](int, int, FakeChunk& piece) { piece.header.offset = -8; }},
      {"holds 97 bytes", [](int, int, FakeChunk& piece) { piece.data.resize(97); }},
      {"holds 0 bytes", [](int, int, FakeChunk& piece) { piece.data.clear(); }},
      {"tensor 1, want 0", [](int, int, FakeChunk& piece) { piece.skip = true; }},
  };
  for (const auto& test : kCases) {
    SCOPED_TRACE(test.message);
    FeedClientStats stats;
    const DrainedFeed drained = DrainSpoiled(
        [&test](int stream, int chunk, FakeChunk& piece) {
          const ChunkHeader& header = piece.header;
          const bool begins_step = header.core == 0 && header.tensor == 0 && header.offset == 0;
          if (header.step == 5 && begins_step) test.spoil(stream, chunk, piece);
        },
        &stats);
    EXPECT_EQ(stats.streams_lost, kMaxSuspectFailures);
    EXPECT_EQ(drained.steps, Range(0, 5));
    EXPECT_THAT(drained.end,
                StatusIs(absl::StatusCode::kInternal,
                         AllOf(HasSubstr(test.message), HasSubstr("[server 127.0.0.1:"))));
  }
}

TEST(FeedClientLossTest, AChunkThatWasLostOnTheWayIsFetchedAgain) {
  FeedClientStats stats;
  ExpectAllSteps(DrainSpoiled(
                     [](int stream, int chunk, FakeChunk& piece) {
                       if (stream < 2 && chunk == 12) piece.skip = true;
                     },
                     &stats),
                 0, 20);
  EXPECT_EQ(stats.streams_lost, 2);
}

TEST(FeedClientLossTest, AnOverlappingChunkEndsTheFeed) {
  // Chunk 3 is the second chunk of core 0's `x`: 150 bytes at offset 150.
  EXPECT_THAT(DrainSpoiled([](int, int chunk, FakeChunk& piece) {
                if (chunk == 3) piece.header.offset = 100;
              }).end,
              StatusIs(absl::StatusCode::kInternal, HasSubstr("offset 100, want 150")));
}

TEST(FeedClientLossTest, AMessageLargerThanAChunkCanBeEndsTheFeed) {
  EXPECT_THAT(DrainSpoiled([](int, int chunk, FakeChunk& piece) {
                if (chunk == 3) piece.data.resize(static_cast<size_t>(kMaxChunkMessageBytes) + 1);
              }).end,
              StatusIs(absl::StatusCode::kResourceExhausted, HasSubstr("larger than max")));
}

}  // namespace
}  // namespace systole
