// Members that take turns by weight. For each turn, a pure function says which member has it, and
// how many turns this member had before.
//
// The turns are Tijdeman's answer to the chairman assignment problem (R. Tijdeman, "The chairman
// assignment problem", Discrete Mathematics 32, 1980): each turn goes to a member that has had too
// few turns for its share. If there are several such members, the turn goes to the member that
// would first exceed the bound below. After n turns each of k members has had its share of the n
// turns, with an error of at most 1 - 1 / (2k - 2) turns. No rule can promise a smaller error.
// The turns repeat after as many turns as the weights add up to, so a table of this one period is
// enough. Members of weight 0 have no turn, and do not count in k.
//
// Thread-compatible: const throughout.
#ifndef SYSTOLE_CORE_ORDER_TURN_TABLE_H_
#define SYSTOLE_CORE_ORDER_TURN_TABLE_H_

#include <cstdint>
#include <vector>

#include "absl/numeric/int128.h"
#include "absl/types/span.h"

namespace systole {

// The most datasets in a mixture or a concatenation. The shards of all these datasets are open at
// once.
inline constexpr int kMaxMembers = 64;
// The most that the weights of a mixture's members may add up to.
inline constexpr int64_t kMaxTotalWeight = 1 << 16;

class TurnTable {
 public:
  // `count` turns of `member` came before this turn.
  struct Turn {
    int member = 0;
    absl::uint128 count = 0;
  };

  // Takes 5 bytes for each turn of the period, and some milliseconds for the longest period.
  // Weights that are divided by their greatest common divisor give the same turns, with a shorter
  // period. REQUIRES: 1 to kMaxMembers weights of 0 or more, which add up to 1 to kMaxTotalWeight
  // (CHECK).
  explicit TurnTable(std::vector<int64_t> weights);

  const std::vector<int64_t>& weights() const { return weights_; }
  // After how many turns the turns repeat: the sum of weights().
  int64_t period() const { return static_cast<int64_t>(members_.size()); }

  // Which member has turn number `turn`. O(1).
  Turn At(absl::uint128 turn) const;

  // How many of the first `turns` turns each member has. O(period).
  std::vector<absl::uint128> CountsBefore(absl::uint128 turns) const;

 private:
  std::vector<int64_t> weights_;
  // The turns of one period.
  std::vector<uint8_t> members_;  // The member of each turn.
  std::vector<uint32_t> counts_;  // How many turns this member had earlier in the period.
};

}  // namespace systole

#endif  // SYSTOLE_CORE_ORDER_TURN_TABLE_H_
