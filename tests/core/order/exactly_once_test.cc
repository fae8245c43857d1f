// Draws orders at random: members, selections with lists, shuffles, weights that change, batches,
// and numbers of cores. In each order,
//   * each selected record must come once in each pass over its member,
//   * each member of a mixture must get the share that its weights give it,
//   * a feed that was stopped must go on where it was left.
// The expected values come from plain code, which walks through the whole order and counts.
#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <memory>
#include <numeric>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "core/order/feed_position.h"
#include "core/order/mixture.h"
#include "core/order/order.h"
#include "core/order/record_list.h"
#include "core/order/selection.h"
#include "core/random/counter_rng.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/status_matchers.h"

namespace systole {
namespace {

using ::testing::ElementsAreArray;

using Records = std::vector<int64_t>;
using Weights = std::vector<int64_t>;

// The weights that a mixture has from turn `from_turn` on.
struct Piece {
  int64_t from_turn = 0;
  Weights weights;
};

ChangePlace AtTurn(int64_t turn) {
  return {.by_example = true, .number = turn, .turn = static_cast<uint64_t>(turn)};
}

struct Drawn {
  OrderSpec spec;  // Without global_batch, tail and num_cores.
  // The records of each member, in order. Without a mixture, all records are one member.
  std::vector<Records> members;
  std::vector<Piece> pieces;  // The first one begins at turn 0.
};

// Draws a step of a selection and applies it to `records`. Returns nullopt if the step would leave
// no record.
std::optional<SelectionStep> DrawStep(Records& records, CounterRng& rng) {
  const auto size = static_cast<int64_t>(records.size());
  const int64_t kind = rng.UniformInt(0, 6);
  std::optional<SelectionStep> step;
  Records left;
  if (kind == 0) {
    const int64_t count = rng.UniformInt(0, size / 3 + 1);
    left.assign(records.begin() + count, records.end());
    step = SkipRecords{count};
  } else if (kind == 1) {
    const int64_t count = rng.UniformInt(1, 2 * size + 1);
    left.assign(records.begin(), records.begin() + std::min(count, size));
    step = TakeRecords{count};
  } else if (kind == 2) {
    const int64_t count = rng.UniformInt(1, 4);
    const int64_t index = rng.UniformInt(0, count);
    for (int64_t i = index; i < size; i += count) left.push_back(records[static_cast<size_t>(i)]);
    step = ShardRecords{count, index};
  } else {
    // Each record is listed with probability `share` / 1000.
    constexpr int64_t kShares[] = {20, 200, 500, 980, 1000};
    const int64_t share = kShares[rng.UniformInt(0, 5)];
    std::vector<uint64_t> words(static_cast<size_t>(size / 64 + 1));
    for (int64_t i = 0; i < size; ++i) {
      if (rng.UniformInt(0, 1000) >= share) continue;
      words[static_cast<size_t>(i / 64)] |= uint64_t{1} << (i % 64);
      left.push_back(records[static_cast<size_t>(i)]);
    }
    step = ListedRecords{std::make_shared<const RecordList>(std::move(words), size)};
  }
  if (left.empty()) return std::nullopt;
  records = std::move(left);
  return step;
}

std::vector<SelectionStep> DrawSteps(Records& records, int64_t most, CounterRng& rng) {
  std::vector<SelectionStep> steps;
  for (int64_t i = rng.UniformInt(0, most + 1); i > 0; --i) {
    std::optional<SelectionStep> step = DrawStep(records, rng);
    if (step.has_value()) steps.push_back(*std::move(step));
  }
  return steps;
}

// Draws a dataset, whose records are numbered from `begin` on, and a selection of it. One dataset
// in five has a single record. Sets `records` to the selected records.
SelectedRecords DrawMember(int64_t begin, Records& records, CounterRng& rng) {
  const int64_t size = rng.UniformInt(0, 5) == 0 ? 1 : rng.UniformInt(2, 90);
  records.resize(static_cast<size_t>(size));
  std::iota(records.begin(), records.end(), int64_t{0});
  const std::vector<SelectionStep> steps = DrawSteps(records, 5, rng);
  for (int64_t& record : records) record += begin;
  absl::StatusOr<Selection> selection = Selection::Create({size}, steps);
  EXPECT_THAT(selection, IsOk());
  return {.begin = begin,
          .num_records = size,
          .selection = std::make_shared<const Selection>(*std::move(selection))};
}

Weights DrawWeights(size_t members, int64_t least, CounterRng& rng) {
  Weights weights(members);
  do {
    for (int64_t& weight : weights) weight = std::max(least, rng.UniformInt(-2, 8));
  } while (std::accumulate(weights.begin(), weights.end(), int64_t{0}) == 0);
  return weights;
}

// Draws changes of weights, some at turn 0 and some at neighbouring turns.
std::vector<Piece> DrawChanges(size_t members, CounterRng& rng) {
  std::vector<Piece> changes;
  int64_t at = rng.UniformInt(0, 3) == 0 ? 0 : rng.UniformInt(1, 80);
  for (int64_t i = rng.UniformInt(0, 7); i > 0; --i) {
    changes.push_back({.from_turn = at, .weights = DrawWeights(members, 0, rng)});
    at += rng.UniformInt(0, 3) == 0 ? 1 : rng.UniformInt(1, 120);
  }
  return changes;
}

// Draws one dataset, a concatenation of datasets, or (in three of five cases) a mixture.
Drawn Draw(uint64_t seed) {
  CounterRng rng(seed, 0, 0, 0);
  Drawn drawn = {.spec = {.seed = seed,
                          .mode = static_cast<ShuffleMode>(rng.UniformInt(0, 3)),
                          .block_records = rng.UniformInt(1, 9),
                          .window_records = rng.UniformInt(1, 30),
                          .epochs = 0},
                 .members = {},
                 .pieces = {{.from_turn = 0, .weights = {1}}}};
  const int64_t kind = rng.UniformInt(0, 5);
  std::vector<SelectedRecords> selected;
  int64_t begin = 0;
  for (int64_t i = kind == 0 ? 1 : rng.UniformInt(1, 6); i > 0; --i) {
    selected.push_back(DrawMember(begin, drawn.members.emplace_back(), rng));
    begin += selected.back().num_records;
  }
  if (kind == 0) {
    drawn.spec.selection = selected[0].selection;
  } else if (kind == 1) {
    Records all;
    for (const Records& member : drawn.members) all.insert(all.end(), member.begin(), member.end());
    const std::vector<SelectionStep> steps = DrawSteps(all, 3, rng);
    absl::StatusOr<Selection> selection = Selection::Concatenate(std::move(selected), steps);
    EXPECT_THAT(selection, IsOk());
    drawn.spec.selection = std::make_shared<const Selection>(*std::move(selection));
    drawn.members = {std::move(all)};
  } else {
    std::vector<MixtureMember> members;
    const Weights weights = DrawWeights(selected.size(), 1, rng);
    for (size_t i = 0; i < selected.size(); ++i) {
      members.push_back({.weight = weights[i], .records = std::move(selected[i])});
    }
    absl::StatusOr<Mixture> mixture = Mixture::Create(std::move(members));
    EXPECT_THAT(mixture, IsOk());
    drawn.pieces[0].weights = weights;
    for (Piece& change : DrawChanges(weights.size(), rng)) {
      EXPECT_THAT(mixture->ChangeWeights(AtTurn(change.from_turn), change.weights), IsOk());
      if (change.from_turn == 0) drawn.pieces.clear();
      drawn.pieces.push_back(std::move(change));
    }
    drawn.spec.mixture = std::make_shared<const Mixture>(*std::move(mixture));
  }
  for (const Records& member : drawn.members) {
    drawn.spec.num_records += static_cast<int64_t>(member.size());
  }
  return drawn;
}

struct Cut {
  int64_t global_batch = 1;
  Tail tail = Tail::kPad;
  int num_cores = 1;
  SplitRule split = SplitRule::kBalanced;
};

Order OrderOf(const Drawn& drawn, const Cut& cut) {
  OrderSpec spec = drawn.spec;
  spec.global_batch = cut.global_batch;
  spec.tail = cut.tail;
  spec.num_cores = cut.num_cores;
  spec.split = cut.split;
  const absl::StatusOr<Order> order = Order::Create(spec);
  EXPECT_THAT(order, IsOk());
  return *order;
}

// Returns the first `count` places of the feed, in the feed's order.
std::vector<Place> FirstPlaces(const Drawn& drawn, int64_t count) {
  const Order order = OrderOf(drawn, {});
  std::vector<Place> places;
  for (int64_t step = 0; step < count; ++step) places.push_back(order.PlaceOf(step, 0));
  return places;
}

TEST(ExactlyOnceTest, EachPassHasEachSelectedRecordOnceAndMembersKeepShares) {
  for (uint64_t seed = 0; seed < 600; ++seed) {
    SCOPED_TRACE(absl::StrCat("seed ", seed));
    const Drawn drawn = Draw(seed);
    const size_t size = drawn.members.size();
    std::map<int64_t, size_t> member_of;
    for (size_t i = 0; i < size; ++i) {
      for (const int64_t record : drawn.members[i]) member_of[record] = i;
    }
    ASSERT_EQ(static_cast<int64_t>(member_of.size()), drawn.spec.num_records);
    std::vector<std::set<int64_t>> seen(size);  // The records of the member's current pass.
    std::vector<int64_t> passes(size, 0);
    std::vector<int64_t> had_in_piece(size, 0);
    size_t piece = 0;
    const std::vector<Place> places = FirstPlaces(drawn, 3 * drawn.spec.num_records + 200);
    for (int64_t turn = 0; turn < static_cast<int64_t>(places.size()); ++turn) {
      SCOPED_TRACE(absl::StrCat("turn ", turn));
      if (piece + 1 < drawn.pieces.size() && drawn.pieces[piece + 1].from_turn == turn) {
        ++piece;
        std::fill(had_in_piece.begin(), had_in_piece.end(), 0);
      }
      const Place& place = places[static_cast<size_t>(turn)];
      ASSERT_TRUE(place.record.has_value());
      const auto found = member_of.find(*place.record);
      ASSERT_NE(found, member_of.end()) << "record " << *place.record << " was not selected";
      const size_t member = found->second;
      ASSERT_EQ(place.pass, passes[member]);
      ASSERT_TRUE(seen[member].insert(*place.record).second) << "record " << *place.record;
      if (seen[member].size() == drawn.members[member].size()) {
        seen[member].clear();
        ++passes[member];
      }
      ++had_in_piece[member];
      const Weights& weights = drawn.pieces[piece].weights;
      const int64_t total = std::accumulate(weights.begin(), weights.end(), int64_t{0});
      const int64_t n = turn - drawn.pieces[piece].from_turn + 1;
      for (size_t i = 0; i < size; ++i) {
        ASSERT_LT(std::abs(had_in_piece[i] * total - n * weights[i]), total) << "member " << i;
      }
    }
  }
}

// Returns for each step the number of places of the feed before this step. The last number of the
// result is the first one that is at least `places`. Places that the tail leaves out at the end of
// an epoch count, too. A mixture's tail leaves out no place.
std::vector<int64_t> Begins(const Order& order, int64_t places) {
  std::vector<int64_t> begins = {0};
  int64_t epoch = 0;
  for (int64_t step = 0; begins.back() < places; ++step) {
    int64_t next = begins.back();
    for (int64_t slot = 0; slot < order.spec().global_batch; ++slot) {
      next += order.PlaceOf(step, slot).record.has_value() ? 1 : 0;
    }
    if ((step + 1) % order.steps_per_epoch() == 0) {
      ++epoch;
      if (order.spec().mixture == nullptr) next = epoch * order.spec().num_records;
    }
    begins.push_back(next);
  }
  return begins;
}

// A feed that is cut into steps. The steps cover at least the first `places` places.
struct CutFeed {
  CutFeed(const Drawn& drawn, const Cut& cut, int64_t places)
      : order(OrderOf(drawn, cut)), begins(Begins(order, places)) {}

  int64_t steps() const { return static_cast<int64_t>(begins.size()) - 1; }

  Order order;
  std::vector<int64_t> begins;
};

Cut DrawCut(const Drawn& drawn, Tail tail, CounterRng& rng) {
  const int64_t records = drawn.spec.num_records;
  // The batch is often larger than a member, and now and then larger than all records.
  const int64_t most = std::min<int64_t>(tail == Tail::kDrop ? records : records + 3, 70);
  return {.global_batch = rng.UniformInt(1, most + 1),
          .tail = tail,
          .num_cores = static_cast<int>(rng.UniformInt(1, 6)),
          .split = rng.UniformInt(0, 2) == 0 ? SplitRule::kBalanced : SplitRule::kFill};
}

// The records of `step`, core by core.
Records RecordsOf(const Order& order, int64_t step) {
  Records records;
  std::vector<Place> places(static_cast<size_t>(order.split().per_core_batch()));
  for (int core = 0; core < order.spec().num_cores; ++core) {
    order.PlacesOnCore(step, core, 0, absl::MakeSpan(places));
    for (const Place& place : places) {
      if (place.record.has_value()) records.push_back(*place.record);
    }
  }
  return records;
}

TEST(ExactlyOnceTest, BatchSizeAndCoresDoNotChangeTheOrderOfRecords) {
  for (uint64_t seed = 0; seed < 150; ++seed) {
    const Drawn drawn = Draw(seed);
    CounterRng rng(seed, 1, 0, 0);
    const std::vector<Place> places = FirstPlaces(drawn, 3 * drawn.spec.num_records + 200);
    for (const Tail tail : {Tail::kDrop, Tail::kPad}) {
      const Cut cut = DrawCut(drawn, tail, rng);
      SCOPED_TRACE(absl::StrCat("seed ", seed, ", batch ", cut.global_batch));
      const CutFeed feed(drawn, cut, 2 * drawn.spec.num_records + 100);
      for (int64_t step = 0; step < feed.steps(); ++step) {
        const auto begin = static_cast<size_t>(feed.begins[static_cast<size_t>(step)]);
        const Records records = RecordsOf(feed.order, step);
        ASSERT_LE(begin + records.size(), places.size());
        for (size_t i = 0; i < records.size(); ++i) {
          ASSERT_EQ(records[i], *places[begin + i].record) << "step " << step << ", " << i;
        }
      }
    }
  }
}

TEST(ExactlyOnceTest, ResumingAfterAnyStepWithAnyBatchSizeFindsTheNextStep) {
  for (uint64_t seed = 0; seed < 150; ++seed) {
    const Drawn drawn = Draw(seed);
    CounterRng rng(seed, 2, 0, 0);
    const int64_t records = drawn.spec.num_records;
    for (const Tail tail : {Tail::kDrop, Tail::kPad}) {
      const int64_t places = 2 * records + 100;
      std::vector<CutFeed> feeds;
      // One of the feeds has batches of 1, so its steps begin at every place.
      feeds.emplace_back(drawn, Cut{.global_batch = 1, .tail = tail}, places);
      for (int i = 0; i < 3; ++i) feeds.emplace_back(drawn, DrawCut(drawn, tail, rng), places);
      for (const CutFeed& from : feeds) {
        for (const CutFeed& to : feeds) {
          SCOPED_TRACE(absl::StrCat("seed ", seed, ", batch ", from.order.spec().global_batch,
                                    " to ", to.order.spec().global_batch));
          for (int64_t step = 0; step <= from.steps(); ++step) {
            const int64_t left_at = from.begins[static_cast<size_t>(step)];
            if (left_at > places) break;  // `to.begins` may end before `left_at`.
            // The first step that begins at or after the place where the feed was left.
            const auto wanted = std::lower_bound(to.begins.begin(), to.begins.end(), left_at);
            ASSERT_NE(wanted, to.begins.end());
            // The number of places of an epoch that are in steps of `to`. The tail of `to` leaves
            // out the other places of the epoch.
            const int64_t used = to.order.steps_per_epoch() * to.order.spec().global_batch;
            int64_t skipped = 0;
            for (int64_t place = left_at; place < *wanted; ++place) {
              if (drawn.spec.mixture != nullptr || place % records < used) ++skipped;
            }
            const absl::StatusOr<ResumedStep> resumed =
                StepFrom(to.order, PositionBefore(from.order, step));
            ASSERT_THAT(resumed, IsOk());
            ASSERT_EQ(resumed->step, wanted - to.begins.begin()) << "left at step " << step;
            ASSERT_EQ(resumed->skipped, skipped) << "left at step " << step;
          }
        }
      }
    }
  }
}

// With DROP, a mixture's total number of examples depends on the batch. So the end of a feed with
// one batch may lie before or beyond its end with another batch.
TEST(ExactlyOnceTest, AFiniteFeedCanBeResumedWithAnyBatchSizeUpToItsEnd) {
  for (uint64_t seed = 0; seed < 150; ++seed) {
    Drawn drawn = Draw(seed);
    drawn.spec.epochs = 1 + static_cast<int64_t>(seed % 3);
    CounterRng rng(seed, 3, 0, 0);
    for (const Tail tail : {Tail::kDrop, Tail::kPad}) {
      for (int i = 0; i < 5; ++i) {
        const Order from = OrderOf(drawn, DrawCut(drawn, tail, rng));
        const Order to = OrderOf(drawn, DrawCut(drawn, tail, rng));
        SCOPED_TRACE(absl::StrCat("seed ", seed, ", batch ", from.spec().global_batch, " to ",
                                  to.spec().global_batch));
        for (int64_t step = 0; step <= *from.total_steps(); ++step) {
          const absl::StatusOr<ResumedStep> resumed = StepFrom(to, PositionBefore(from, step));
          ASSERT_THAT(resumed, IsOk());
          ASSERT_LE(resumed->step, *to.total_steps());
        }
        // This position is beyond the feed's end with every batch, so no step is left.
        const absl::StatusOr<ResumedStep> beyond =
            StepFrom(to, {.epoch = drawn.spec.epochs, .examples = drawn.spec.num_records - 1});
        ASSERT_THAT(beyond, IsOk());
        ASSERT_GE(beyond->step, *to.total_steps());
      }
    }
  }
}

// Makes mixtures of the same two members, with all combinations of a few weights and of a few turns
// at which the weights change. If two of these mixtures have the same fingerprint before a turn,
// all their earlier turns must be the same.
TEST(ExactlyOnceTest, MixturesWithEqualFingerprintsBeforeATurnHaveEqualTurns) {
  const std::vector<Weights> weights = {{1, 1}, {2, 2}, {1, 2}, {0, 1}};
  std::vector<Mixture> mixtures;
  std::vector<std::vector<Piece>> schedules;
  for (size_t first = 0; first < 3; ++first) {
    // In base 5, `code` has a digit for each of the turns 0, 2 and 3: the index of the weights that
    // begin at this turn, or 4 if no weights begin there.
    for (size_t code = 0; code < 5 * 5 * 5; ++code) {
      std::vector<MixtureMember> members = {
          {.weight = weights[first][0], .records = {.num_records = 3}},
          {.weight = weights[first][1], .records = {.begin = 3, .num_records = 2}}};
      absl::StatusOr<Mixture> mixture = Mixture::Create(std::move(members));
      ASSERT_THAT(mixture, IsOk());
      std::vector<Piece> pieces = {{.from_turn = 0, .weights = weights[first]}};
      size_t left = code;
      for (const int64_t turn : {0, 2, 3}) {
        const size_t which = left % 5;
        left /= 5;
        if (which == 4) continue;
        ASSERT_THAT(mixture->ChangeWeights(AtTurn(turn), weights[which]), IsOk());
        if (turn == 0) pieces.clear();
        pieces.push_back({.from_turn = turn, .weights = weights[which]});
      }
      mixtures.push_back(*std::move(mixture));
      schedules.push_back(std::move(pieces));
    }
  }
  // Returns as text what FingerprintBefore(turn) covers: the weights at the beginning, and each
  // change before the turn. {2, 2} counts as {1, 1}.
  const auto past = [](const std::vector<Piece>& pieces, int64_t turn) {
    std::string text;
    for (const Piece& piece : pieces) {
      if (piece.from_turn != 0 && piece.from_turn >= turn) break;
      const int64_t divisor = std::gcd(piece.weights[0], piece.weights[1]);
      absl::StrAppend(&text, piece.from_turn, ":", piece.weights[0] / divisor, ",",
                      piece.weights[1] / divisor, " ");
    }
    return text;
  };
  for (const int64_t turn : {0, 1, 2, 3, 4, 9}) {
    std::map<std::string, uint64_t> fingerprints;
    std::map<uint64_t, size_t> first_with;
    for (size_t i = 0; i < mixtures.size(); ++i) {
      const uint64_t fingerprint = mixtures[i].FingerprintBefore(static_cast<uint64_t>(turn));
      const auto [known, is_new] = fingerprints.emplace(past(schedules[i], turn), fingerprint);
      ASSERT_EQ(known->second, fingerprint) << known->first;
      const auto [other, is_first] = first_with.emplace(fingerprint, i);
      ASSERT_EQ(is_first, is_new) << known->first;
      ASSERT_THAT(HashesOf(mixtures[i].ChangesBefore(static_cast<uint64_t>(turn))),
                  ElementsAreArray(HashesOf(
                      mixtures[other->second].ChangesBefore(static_cast<uint64_t>(turn)))));
      for (int64_t before = 0; before < turn; ++before) {
        const auto at = static_cast<uint64_t>(before);
        ASSERT_EQ(mixtures[i].TurnAt(at).member, mixtures[other->second].TurnAt(at).member);
      }
    }
  }
}

}  // namespace
}  // namespace systole
