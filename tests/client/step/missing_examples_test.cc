#include "client/step/missing_examples.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "client/feed/feed_client.h"
#include "core/spec/order_spec.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/client/feed/drained_feed.h"
#include "tests/client/feed/fake_server.h"
#include "tests/status_matchers.h"

namespace systole {
namespace {

using testing::ElementsAre;
using testing::ElementsAreArray;

// A feed of 2 cores of 4 places, so 8 places a step. With 17 to 24 records, an epoch has 3 steps.
// The places for which `missing` is true are not valid.
FakeFeed FeedWithout(int64_t num_records, std::function<bool(int64_t step, int64_t slot)> missing) {
  return {.epochs = 0,
          .steps_per_epoch = 3,
          .byte =
              [missing](int64_t step, int core, int tensor, int64_t place) {
                const bool valid = tensor == 1;  // The tensors are label, valid, x.
                if (valid && missing(step, core * 4 + place)) return uint8_t{0};
                return valid ? uint8_t{1} : FakeByte(step, core, tensor, place);
              },
          .resolve =
              [num_records](v1::ResolveFeedResponse& answer) {
                answer.set_num_records(num_records);
                return absl::OkStatus();
              }};
}

v1::FeedSpec PaddedSpec(const FakeFeed& feed) {
  v1::FeedSpec spec = SpecOf(feed);
  spec.set_tail(v1::PAD);
  spec.set_seed(5);
  spec.mutable_shuffle()->set_mode(v1::Shuffle::GLOBAL);
  return spec;
}

FeedClientStats StatsAfter(const v1::FeedSpec& spec, FeedClientOptions options) {
  const absl::StatusOr<std::unique_ptr<FeedClient>> client = FeedClient::Create(spec, options);
  EXPECT_THAT(client, IsOk());
  if (!client.ok()) return {};
  EXPECT_THAT(Drain(**client).end, IsOk());
  return (*client)->stats();
}

TEST(MissingExamplesTest, InvalidPlacesCountAsMaskedIfTheyHaveARecordElseAsPadding) {
  // With 20 records the last 4 places of each epoch's third step are padding. In the second epoch
  // (steps 3 to 5) place 2 of step 4 is missing too. That place is position 10 of the epoch.
  const FakeFeed feed = FeedWithout(20, [](int64_t step, int64_t slot) {
    return (step % 3 == 2 && slot >= 4) || (step == 4 && slot == 2);
  });
  const FakeServer server(feed);
  const v1::FeedSpec spec = PaddedSpec(feed);
  FeedClientOptions options = Quick({server.address()});
  options.steps = 6;
  const FeedClientStats stats = StatsAfter(spec, options);
  EXPECT_EQ(stats.masked_examples, 1);
  EXPECT_EQ(stats.padded_examples, 8);
  const absl::StatusOr<Order> order = Order::Create(*OrderSpecOf(spec, {{.num_records = 20}}));
  ASSERT_THAT(order, IsOk());
  EXPECT_THAT(stats.masked_records, ElementsAre(order->RecordAt(/*epoch=*/1, /*position=*/10)));
}

TEST(MissingExamplesTest, AMaskedExampleWithoutAKnownRecordIsCountedAndNotNamed) {
  MissingExamples missing = {.masked_unknown = 3};
  EXPECT_FALSE(missing.empty());
  EXPECT_EQ(MaskedText(1, missing), "step 1: examples masked for damage: 3");
  missing.masked_records = {7};
  EXPECT_EQ(MaskedText(1, missing), "step 1: examples masked for damage: 4; record_id 7");
  FeedClientStats stats;
  AddMissing(missing, stats);
  EXPECT_EQ(stats.masked_examples, 4);
  EXPECT_THAT(stats.masked_records, ElementsAre(7));
}

TEST(MissingExamplesTest, OnlyExamplesOfTheClientsOwnCoresCount) {
  const FakeFeed feed =
      FeedWithout(24, [](int64_t, int64_t slot) { return slot == 3 || slot == 4; });
  const FakeServer server(feed);
  const v1::FeedSpec spec = PaddedSpec(feed);
  FeedClientOptions options = Quick({server.address()});
  options.steps = 1;
  options.core_begin = 1;
  options.core_end = 2;
  const FeedClientStats stats = StatsAfter(spec, options);
  EXPECT_EQ(stats.masked_examples, 1);
  const absl::StatusOr<Order> order = Order::Create(*OrderSpecOf(spec, {{.num_records = 24}}));
  ASSERT_THAT(order, IsOk());
  EXPECT_THAT(stats.masked_records, ElementsAre(order->RecordAt(0, 4)));
}

TEST(MissingExamplesTest, ARecordIsListedOnceAndCountedEachTime) {
  FakeFeed feed = FeedWithout(24, [](int64_t, int64_t slot) { return slot == 0; });
  const FakeServer server(feed);
  v1::FeedSpec spec = PaddedSpec(feed);
  spec.clear_shuffle();  // Slot 0 has records 0, 8 and 16 in each epoch.
  FeedClientOptions options = Quick({server.address()});
  options.steps = 9;
  const FeedClientStats stats = StatsAfter(spec, options);
  EXPECT_EQ(stats.masked_examples, 9);
  EXPECT_THAT(stats.masked_records, ElementsAre(0, 8, 16));
}

TEST(MissingExamplesTest, TheListHoldsTheFirst100RecordsAndTheCountHasNoBound) {
  // An epoch has 15 steps of 8 records, so more records than the list can hold.
  FakeFeed feed = FeedWithout(120, [](int64_t, int64_t) { return true; });
  feed.steps_per_epoch = 15;
  const FakeServer server(feed);
  v1::FeedSpec spec = PaddedSpec(feed);
  spec.clear_shuffle();
  FeedClientOptions options = Quick({server.address()});
  options.steps = 100;
  const FeedClientStats stats = StatsAfter(spec, options);
  EXPECT_EQ(stats.masked_examples, 800);
  EXPECT_EQ(kMaxMaskedRecords, 100u);
  EXPECT_THAT(stats.masked_records, ElementsAreArray(Range(0, 100)));
}

TEST(MissingExamplesTest, AStepThatCameTwiceCountsOnce) {
  FakeFeed feed = FeedWithout(24, [](int64_t, int64_t slot) { return slot == 0; });
  feed.spoil = [](int stream, int chunk, FakeChunk& piece) {
    // The first stream breaks in the middle of its fifth step.
    if (stream == 0 && piece.header.step == 4 && chunk % 2 == 1) {
      piece.end = absl::UnavailableError("gone");
    }
  };
  const FakeServer server(feed);
  FeedClientOptions options = Quick({server.address()});
  options.steps = 9;
  const FeedClientStats stats = StatsAfter(PaddedSpec(feed), options);
  EXPECT_EQ(stats.streams_lost, 1);
  EXPECT_EQ(stats.masked_examples, 9);
}

}  // namespace
}  // namespace systole
