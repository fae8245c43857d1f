#include "client/local/local_engine.h"

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "client/local/local_feed.h"
#include "core/cache/value_cache.h"
#include "core/engine/slice_budget.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/core/dataset/test_dataset.h"
#include "tests/status_matchers.h"
#include "tests/wait_until.h"

namespace systole {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using Digests = std::vector<std::string>;

std::shared_ptr<LocalEngine> MakeEngine(const LocalEngineOptions& options) {
  absl::StatusOr<std::shared_ptr<LocalEngine>> engine = LocalEngine::Create(options);
  EXPECT_THAT(engine, IsOk());
  return *std::move(engine);
}

// The spec of a feed of 12 steps. Another `seed` gives another order.
v1::FeedSpec SpecOf(int seed) {
  return SpecFromText(absl::StrCat("dataset: 'test' seed: ", seed, R"pb(
    shuffle { mode: GLOBAL }
    global_batch: 8
    num_cores: 2
    epochs: 3
    outputs {
      name: "image"
      feature: "image"
      transforms { decode_jpeg {} }
      transforms { random_resized_crop { height: 9 width: 7 } }
      dtype: FLOAT32
    }
  )pb"));
}

constexpr int kSteps = 12;

std::shared_ptr<const Dataset> SmallDataset() { return OpenTestDataset(TestShards({20, 12})); }

std::unique_ptr<LocalFeed> MakeFeed(const std::shared_ptr<LocalEngine>& engine, int seed,
                                    LocalFeedOptions options = {}) {
  options.engine = engine;
  absl::StatusOr<std::unique_ptr<LocalFeed>> feed =
      LocalFeed::Create(SpecOf(seed), SmallDataset(), options);
  EXPECT_THAT(feed, IsOk());
  return *std::move(feed);
}

// The digest of the next step, or nothing at the end.
std::optional<std::string> NextDigest(Feed& feed) {
  const absl::StatusOr<std::optional<Step>> step = feed.Next();
  EXPECT_THAT(step, IsOk());
  if (!step.ok() || !step->has_value()) return std::nullopt;
  return absl::StrCat(StepDigest(**step, 0), " ", StepDigest(**step, 1));
}

Digests Drain(Feed& feed) {
  Digests digests;
  while (std::optional<std::string> digest = NextDigest(feed)) digests.push_back(*digest);
  return digests;
}

// The digests of the feed with this seed, read from an engine that has no other feed.
Digests DigestsAlone(int seed) { return Drain(*MakeFeed(nullptr, seed)); }

int64_t ThreadsOfThisProcess() {
  return std::distance(std::filesystem::directory_iterator("/proc/self/task"), {});
}

// Not always 1: a sanitizer may have threads of its own.
const int64_t kThreadsAtStart = ThreadsOfThisProcess();

// The kernel drops a thread a moment after it was joined, so the check waits.
testing::AssertionResult HasMoreThreads(int64_t more) {
  return WaitUntil([&] { return ThreadsOfThisProcess() == kThreadsAtStart + more; });
}

// How much of the budget a step takes.
int64_t StepCost(const Feed& feed) { return feed.shape().bytes() + kSliceOverheadBytes; }

TEST(LocalEngineTest, ThirtyFeedsHaveTheThreadsOfOneAndTheStepsOfEach) {
  const std::shared_ptr<LocalEngine> engine = MakeEngine({.threads = 2});
  std::vector<std::unique_ptr<LocalFeed>> feeds;
  std::vector<Digests> digests(30);
  for (int i = 0; i < 30; ++i) feeds.push_back(MakeFeed(engine, i));
  EXPECT_TRUE(HasMoreThreads(0));  // Nothing is read yet.
  for (int step = 0; step < kSteps; ++step) {
    for (size_t i = 0; i < 30; ++i) digests[i].push_back(NextDigest(*feeds[i]).value_or("none"));
    EXPECT_TRUE(HasMoreThreads(7 * 2 + 1));
  }
  for (int i = 0; i < 30; ++i) {
    EXPECT_EQ(digests[static_cast<size_t>(i)], DigestsAlone(i));
    EXPECT_EQ(feeds[static_cast<size_t>(i)]->stats().steps_received, kSteps);
  }
}

TEST(LocalEngineTest, ThreadsStopWhenTheLastFeedIsDestroyed) {
  std::shared_ptr<LocalEngine> engine = MakeEngine({.threads = 1});
  auto feed = MakeFeed(engine, 1);
  EXPECT_TRUE(NextDigest(*feed).has_value());
  engine.reset();
  EXPECT_TRUE(HasMoreThreads(7 + 1));
  feed.reset();
  EXPECT_TRUE(HasMoreThreads(0));
}

TEST(LocalEngineTest, FeedsThatNobodyReadsDoNotStopAnother) {
  const Digests wanted = DigestsAlone(0);
  const int64_t cost = StepCost(*MakeFeed(nullptr, 0));
  for (const int64_t budget : {cost, 2 * cost, 5 * cost}) {
    SCOPED_TRACE(budget);
    const std::shared_ptr<LocalEngine> engine =
        MakeEngine({.threads = 2, .memory_budget_bytes = budget});
    std::vector<std::unique_ptr<LocalFeed>> stalled;
    for (int i = 1; i <= 6; ++i) {
      stalled.push_back(MakeFeed(engine, i));
      EXPECT_TRUE(NextDigest(*stalled.back()).has_value());  // The engine makes more steps ahead.
    }
    EXPECT_EQ(Drain(*MakeFeed(engine, 0)), wanted);
    // The engine may have dropped steps of the other feeds to make room for feed 0. It makes these
    // steps again when the other feeds are read.
    for (int i = 1; i <= 6; ++i) {
      const Digests rest = Drain(*stalled[static_cast<size_t>(i - 1)]);
      EXPECT_EQ(rest.size(), kSteps - 1);
      EXPECT_EQ(rest.back(), DigestsAlone(i).back());
    }
  }
}

TEST(LocalEngineTest, AStalledFeedOfSmallStepsDoesNotStopOneWhoseStepsNeedTheWholeBudget) {
  const int64_t cost = StepCost(*MakeFeed(nullptr, 0));
  const std::shared_ptr<LocalEngine> engine =
      MakeEngine({.threads = 2, .memory_budget_bytes = cost});
  LocalFeedOptions small;
  small.engine = engine;
  absl::StatusOr<std::unique_ptr<LocalFeed>> stalled =
      LocalFeed::Create(SpecFromText("dataset: 'test' global_batch: 2 num_cores: 1 "
                                     "outputs { name: 'id' feature: 'record_id' dtype: INT64 }"),
                        SmallDataset(), small);
  ASSERT_THAT(stalled, IsOk());
  EXPECT_THAT((*stalled)->Next(), IsOk());
  EXPECT_EQ(Drain(*MakeFeed(engine, 0)), DigestsAlone(0));
}

TEST(LocalEngineTest, FeedsEndInAnyOrderAndDisturbNoOther) {
  const Digests wanted[] = {DigestsAlone(0), DigestsAlone(1), DigestsAlone(2)};
  for (const std::vector<size_t>& order :
       std::vector<std::vector<size_t>>{{0, 1, 2}, {2, 1, 0}, {1, 2, 0}}) {
    std::vector<std::unique_ptr<LocalFeed>> feeds;
    {
      const std::shared_ptr<LocalEngine> engine = MakeEngine({.threads = 2});
      for (int i = 0; i < 3; ++i) feeds.push_back(MakeFeed(engine, i));
    }
    std::vector<Digests> digests(3);
    for (size_t i = 0; i < 3; ++i) digests[i].push_back(NextDigest(*feeds[i]).value_or("none"));
    feeds[order[0]]->Cancel();
    EXPECT_THAT(feeds[order[0]]->Next(), StatusIs(absl::StatusCode::kCancelled, HasSubstr("feed")));
    feeds[order[0]].reset();
    for (const size_t i : {order[1], order[2]}) {
      for (std::string& digest : Drain(*feeds[i])) digests[i].push_back(std::move(digest));
      EXPECT_EQ(digests[i], wanted[i]);
      feeds[i].reset();
    }
  }
}

TEST(LocalEngineTest, AFeedThatIsGoneHasLetGoOfItsCache) {
  const std::shared_ptr<LocalEngine> engine = MakeEngine({.threads = 2});
  const auto other = MakeFeed(engine, 1);  // Keeps the threads alive.
  EXPECT_TRUE(NextDigest(*other).has_value());
  for (int i = 0; i < 50; ++i) {
    std::shared_ptr<ValueCache> cache = *ValueCache::Create({.memory_bytes = 1 << 20});
    const std::weak_ptr<ValueCache> held = cache;
    auto feed = MakeFeed(engine, 2, {.cache = std::move(cache)});
    std::optional<Step> kept;  // A step that is kept does not keep the cache.
    if (i % 2 == 0) kept = *feed->Next();
    feed->WaitForNext(absl::ZeroDuration());  // Makes threads work for the feed.
    feed.reset();
    EXPECT_TRUE(held.expired());
  }
}

TEST(LocalEngineTest, TheFirstFeedSetsTheMemoryBudgetUnlessItIsGiven) {
  const std::shared_ptr<LocalEngine> engine = MakeEngine({});
  EXPECT_EQ(engine->memory_budget_bytes(), 0);
  const auto first = MakeFeed(engine, 1, {.prefetch_bytes = int64_t{1} << 30});
  EXPECT_EQ(engine->memory_budget_bytes(), int64_t{4} << 30);
  const auto second = MakeFeed(engine, 1, {.prefetch_bytes = int64_t{1} << 40});
  EXPECT_EQ(engine->memory_budget_bytes(), int64_t{4} << 30);
  const std::shared_ptr<LocalEngine> modest = MakeEngine({});
  const auto third = MakeFeed(modest, 1, {.prefetch_bytes = 0});
  EXPECT_EQ(modest->memory_budget_bytes(), int64_t{1} << 30);
  const std::shared_ptr<LocalEngine> said = MakeEngine({.memory_budget_bytes = 1 << 20});
  const auto fourth = MakeFeed(said, 1);
  EXPECT_EQ(said->memory_budget_bytes(), 1 << 20);
}

TEST(LocalEngineTest, AStepLargerThanTheBudgetIsRefusedWhenItsFeedIsMade) {
  const LocalFeedOptions options = {.engine = MakeEngine({.memory_budget_bytes = 2000})};
  EXPECT_THAT(LocalFeed::Create(SpecOf(1), SmallDataset(), options),
              StatusIs(absl::StatusCode::kResourceExhausted,
                       AllOf(HasSubstr("a step of this feed takes"),
                             HasSubstr("memory_budget is 2000"), HasSubstr("before the first"))));
}

TEST(LocalEngineTest, OptionsOutOfRangeAreRefusedByName) {
  EXPECT_THAT(LocalEngine::Create({.threads = 0}),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("threads is 0")));
  EXPECT_THAT(LocalEngine::Create({.threads = 1025}),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("threads is 1025")));
  EXPECT_THAT(LocalEngine::Create({.memory_budget_bytes = -1}),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("memory_budget is -1")));
}

}  // namespace
}  // namespace systole
