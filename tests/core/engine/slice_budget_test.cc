#include "core/engine/slice_budget.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <numeric>
#include <utility>
#include <vector>

#include "core/random/counter_rng.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/status_matchers.h"

namespace systole {
namespace {

constexpr int64_t kBudgetBytes = 64 << 10;
constexpr int kMaxSealed = 4;
constexpr int kThreads = 2;

using Claim = SliceBudget::Claim;

// A stream, with lists of the buffers of its slices. StreamHoldings only counts these buffers.
struct Stream {
  Stream(int64_t slice_bytes, int num_cores, const StreamMemory& memory)
      : slice_bytes(slice_bytes), holdings(slice_bytes, num_cores, memory) {}

  const int64_t slice_bytes;
  StreamHoldings holdings;
  std::deque<AlignedBuffer> pending;
  std::vector<AlignedBuffer> delivered;  // Without the slices that were given away.
};

int64_t CostOf(const AlignedBuffer& buffer) { return buffer.size() + kSliceOverheadBytes; }

template <typename Buffers>
int64_t CostOfAll(const Buffers& buffers) {
  return std::accumulate(
      buffers.begin(), buffers.end(), int64_t{0},
      [](int64_t sum, const AlignedBuffer& buffer) { return sum + CostOf(buffer); });
}

// Streams begin slices when the rules allow it. All other events happen in random order.
class RandomStreams {
 public:
  explicit RandomStreams(uint64_t seed) : random_(seed, 0, 0, 0) {
    for (int i = 0; i < 6; ++i) {
      StreamMemory memory;
      memory.kind = Pick(2) == 0 ? BufferKind::kSealed : BufferKind::kPrivate;
      if (Pick(3) == 0) memory.ahead_bytes = Pick(kBudgetBytes);
      memory.gives_away = Pick(3) == 0;
      streams_.emplace_back(1 + Pick(6'000), static_cast<int>(1 + Pick(4)), memory);
    }
  }

  void Act() {
    Stream& stream = streams_[static_cast<size_t>(Pick(std::ssize(streams_)))];
    switch (Pick(6)) {
      case 0:
      case 1:
        return Begin(stream);
      case 2:
        return Deliver(stream);
      case 3:
        return Drop(stream);
      case 4:
        return TakeBack(stream);
      default:
        return TakeBackGivenAway();
    }
  }

  // Checks that the sums over the model's lists are equal to the counts.
  void Check() const {
    int64_t used = CostOfAll(returning_);
    for (const Stream& stream : streams_) {
      used += CostOfAll(stream.pending) + CostOfAll(stream.delivered);
      ASSERT_EQ(stream.holdings.pending(), std::ssize(stream.pending));
      ASSERT_EQ(stream.holdings.held(), std::ssize(stream.pending) + std::ssize(stream.delivered));
    }
    ASSERT_EQ(budget_.used_bytes(), used);
    ASSERT_LE(used, kBudgetBytes);
    const int64_t free = kBudgetBytes - used;
    ASSERT_TRUE(budget_.HasRoom(free));
    ASSERT_FALSE(budget_.HasRoom(free + 1));
    ASSERT_TRUE(budget_.HasRoom(free + 1, /*kept_bytes=*/1));
    ASSERT_TRUE(budget_.WillHaveRoom(free + CostOfAll(returning_), 0));
    ASSERT_FALSE(budget_.WillHaveRoom(free + CostOfAll(returning_) + 1, 0));
  }

  void End() {
    for (Stream& stream : streams_) {
      while (!stream.pending.empty()) TakeBack(stream);
      while (!stream.delivered.empty()) Drop(stream);
      EXPECT_EQ(stream.holdings.held_bytes(), 0);
    }
    while (!returning_.empty()) ReturnLate();
    while (!given_away_.empty()) TakeBackGivenAway();
    EXPECT_EQ(budget_.used_bytes(), 0);
    EXPECT_TRUE(budget_.HasRoom(kBudgetBytes));
  }

  int64_t begun() const { return begun_; }

 private:
  int64_t Pick(int64_t count) { return random_.UniformInt(0, count); }

  void Begin(Stream& stream) {
    StreamHoldings& holdings = stream.holdings;
    const Claim claim = {.holdings = holdings,
                         .share_bytes = budget_.ShareBytes(holdings, std::ssize(streams_))};
    if (!SliceBudget::MayBegin(claim, kThreads) || !budget_.HasRoom(holdings.cost_bytes())) return;
    absl::StatusOr<AlignedBuffer> buffer = budget_.Take(stream.slice_bytes, holdings.memory().kind);
    ASSERT_THAT(buffer, IsOk());
    ASSERT_EQ(buffer->size(), stream.slice_bytes);
    const bool was_modest = SliceBudget::IsModest(claim);
    holdings.Begin();
    stream.pending.push_back(*std::move(buffer));
    ++begun_;
    // A stream may always hold one slice. It holds more only within its share of the budget, which
    // is at most a quarter of the budget.
    if (holdings.held() == 1) return;
    ASSERT_LE(holdings.held_bytes(), kBudgetBytes / 4);
    ASSERT_LE(holdings.held_bytes(), kBudgetBytes / std::ssize(streams_));
    ASSERT_LE(holdings.held_bytes(), holdings.memory().ahead_bytes);
    ASSERT_EQ(was_modest, holdings.held_bytes() <= claim.share_bytes / 2);
  }

  void Deliver(Stream& stream) {
    if (stream.pending.empty()) return;
    AlignedBuffer buffer = std::move(stream.pending.front());
    stream.pending.pop_front();
    stream.holdings.Deliver();
    if (stream.holdings.memory().gives_away) {
      budget_.GiveAway(buffer);
      given_away_.push_back(std::move(buffer));
    } else {
      stream.delivered.push_back(std::move(buffer));
    }
  }

  void Drop(Stream& stream) {
    if (stream.delivered.empty()) return;
    const auto at = stream.delivered.begin() + Pick(std::ssize(stream.delivered));
    std::swap(*at, stream.delivered.back());
    stream.holdings.Drop();
    budget_.Return(std::move(stream.delivered.back()));
    stream.delivered.pop_back();
  }

  // Takes back the last pending slice. In half of the cases a task still writes to the slice.
  void TakeBack(Stream& stream) {
    if (stream.pending.empty()) return ReturnLate();
    AlignedBuffer buffer = std::move(stream.pending.back());
    stream.pending.pop_back();
    stream.holdings.TakeBack();
    if (Pick(2) == 0) return budget_.Return(std::move(buffer));
    budget_.ExpectBack(CostOf(buffer));
    returning_.push_back(std::move(buffer));
  }

  void ReturnLate() {
    if (returning_.empty()) return;
    budget_.ReturnLate(std::move(returning_.back()));
    returning_.pop_back();
  }

  void TakeBackGivenAway() {
    if (given_away_.empty()) return;
    budget_.TakeBack(std::move(given_away_.back()));
    given_away_.pop_back();
  }

  CounterRng random_;
  SliceBudget budget_{kBudgetBytes, kMaxSealed};
  std::deque<Stream> streams_;
  std::vector<AlignedBuffer> returning_;
  std::vector<AlignedBuffer> given_away_;
  int64_t begun_ = 0;
};

TEST(SliceBudgetTest, NoMoreThanTheBudgetIsUsedAndAllOfItComesBack) {
  int64_t begun = 0;
  for (uint64_t seed = 0; seed < 100; ++seed) {
    SCOPED_TRACE(seed);
    RandomStreams streams(seed);
    for (int i = 0; i < 1'000; ++i) {
      streams.Act();
      streams.Check();
      if (HasFatalFailure()) return;
    }
    streams.End();
    begun += streams.begun();
  }
  EXPECT_GT(begun, 10'000);
}

StreamHoldings Holding(int slices, const StreamMemory& memory = {}) {
  StreamHoldings holdings(/*slice_bytes=*/1'000, /*num_cores=*/4, memory);
  for (int i = 0; i < slices; ++i) holdings.Begin();
  return holdings;
}

TEST(SliceBudgetTest, ASlicesOverheadCounts) {
  SliceBudget budget(10'000, kMaxSealed);
  const absl::StatusOr<AlignedBuffer> buffer = budget.Take(1, BufferKind::kPrivate);
  ASSERT_THAT(buffer, IsOk());
  EXPECT_EQ(budget.used_bytes(), 1 + kSliceOverheadBytes);
  EXPECT_EQ(Holding(3).held_bytes(), 3 * (1'000 + kSliceOverheadBytes));
}

TEST(SliceBudgetTest, LookAheadIsTwoStepsOrFourSlicesPerThreadUpTo1024) {
  EXPECT_EQ(Holding(0).max_pending(/*threads=*/1), 2 * 4);
  EXPECT_EQ(Holding(0).max_pending(/*threads=*/16), 4 * 16);
  // However many cores a step has, a stream looks at most 1024 slices ahead.
  EXPECT_EQ(StreamHoldings(1, 1 << 20, {}).max_pending(/*threads=*/1), 1024);
}

TEST(SliceBudgetTest, AOneByteWindowStillHoldsTwoSlices) {
  StreamHoldings holdings = Holding(3, {.window_bytes = 1});
  holdings.Deliver();
  EXPECT_FALSE(holdings.window_is_full());
  holdings.Deliver();
  EXPECT_TRUE(holdings.window_is_full());
  holdings.Drop();
  EXPECT_FALSE(holdings.window_is_full());
}

// A stream that holds no slice is starved. Another stream, the holder, yields a slice to it if
//   * the holder's consumer does not wait, and
//   * the holder has more than one slice, and
//   * the holder's slices take more than a limit.
// The limit is the holder's share of the budget. If a slice of the starved stream is larger than
// the starved stream's own share, the limit is half of the holder's share.
TEST(SliceBudgetTest, AnIdleStreamYieldsSlicesAboveItsShareOrHalfOfIt) {
  const int64_t cost = Holding(1).cost_bytes();
  for (int held = 0; held < 6; ++held) {
    for (int share = 0; share < 6; ++share) {
      for (const bool waits : {false, true}) {
        for (const bool needs_more : {false, true}) {
          SCOPED_TRACE(testing::Message() << held << " of " << share << waits << needs_more);
          const StreamHoldings holdings = Holding(held);
          const StreamHoldings nothing = Holding(0);
          const Claim stream = {holdings, share * cost, waits};
          const Claim starved = {nothing, needs_more ? cost - 1 : cost, false};
          const int64_t keeps = needs_more ? share * cost / 2 : share * cost;
          EXPECT_EQ(SliceBudget::Yields(stream, starved),
                    !waits && held > 1 && held * cost > keeps);
        }
      }
    }
  }
}

TEST(SliceBudgetTest, InProcessStreamsThatNobodyAwaitsYieldToAwaitedStreams) {
  const StreamHoldings here = Holding(1, {.gives_away = true});
  const StreamHoldings elsewhere = Holding(1);
  const StreamHoldings starved_here = Holding(0, {.gives_away = true});
  const StreamHoldings starved_elsewhere = Holding(0);
  const auto yields = [](const StreamHoldings& holdings, bool waits,
                         const StreamHoldings& starved) {
    return SliceBudget::Yields({holdings, 1 << 20, waits}, {starved, 1 << 20, true});
  };
  EXPECT_TRUE(yields(here, false, starved_here));
  EXPECT_FALSE(yields(here, true, starved_here));
  EXPECT_FALSE(yields(here, false, starved_elsewhere));
  EXPECT_FALSE(yields(elsewhere, false, starved_here));
  // A stream whose slices are given away needs a slice only when its consumer waits.
  EXPECT_TRUE(SliceBudget::IsEmptyHanded(starved_here, /*waits=*/true));
  EXPECT_FALSE(SliceBudget::IsEmptyHanded(starved_here, /*waits=*/false));
  EXPECT_TRUE(SliceBudget::IsEmptyHanded(starved_elsewhere, /*waits=*/false));
  EXPECT_FALSE(SliceBudget::IsEmptyHanded(elsewhere, /*waits=*/true));
}

TEST(SliceBudgetTest, AStreamWithAFullWindowYieldsThoughItsConsumerWaits) {
  StreamHoldings holdings = Holding(4, {.window_bytes = 1});
  holdings.Deliver();
  const StreamHoldings nothing = Holding(0);
  const auto yields = [&] {
    return SliceBudget::Yields({holdings, /*share_bytes=*/1, /*waits=*/true},
                               {nothing, 1 << 20, false});
  };
  EXPECT_FALSE(yields());
  holdings.Deliver();
  EXPECT_TRUE(yields());
}

}  // namespace
}  // namespace systole
