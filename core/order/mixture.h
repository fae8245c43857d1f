// A mixture: several datasets that take turns by weight. For each position, a pure function says
// which dataset has the turn there, and how many examples of this dataset came before.
//
// The turns are Tijdeman's answer to the chairman assignment problem (R. Tijdeman, "The chairman
// assignment problem", Discrete Mathematics 32, 1980): each turn goes to a member that has had too
// few turns for its share. If there are several such members, the turn goes to the member that
// would first exceed the bound below. After n turns each of k members has had its share of the n
// turns, with an error of at most 1 - 1 / (2k - 2) turns. No rule can promise a smaller error.
// After as many turns as the weights add up to, the turns repeat, so a table of this one period is
// enough.
//
// Thread-compatible: const throughout.
#ifndef SYSTOLE_CORE_ORDER_MIXTURE_H_
#define SYSTOLE_CORE_ORDER_MIXTURE_H_

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "absl/numeric/int128.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "core/order/selection.h"

namespace systole {

// The most datasets in a mixture or a concatenation. The shards of all of them are open at once.
inline constexpr int kMaxMembers = 64;
// The most that a mixture's weights may add up to. The table has 5 bytes for each unit of weight,
// and takes some milliseconds to make.
inline constexpr int64_t kMaxTotalWeight = 1 << 16;

struct MixtureMember {
  int64_t weight = 0;
  SelectedRecords records;
};

class Mixture {
 public:
  // `count` examples of `member` came before this one.
  struct Turn {
    int member = 0;
    absl::uint128 count = 0;
  };

  //   InvalidArgument  no members or more than kMaxMembers, a weight below 1, weights that add up
  //                    to more than kMaxTotalWeight, a member without records, or more than 2^62
  //                    records in all. The message names the member: "mixture[1].weight".
  static absl::StatusOr<Mixture> Create(std::vector<MixtureMember> members);

  absl::Span<const MixtureMember> members() const { return members_; }
  // Selected records of all members together.
  int64_t num_records() const { return num_records_; }

  // Which member has the turn at `position`. O(1).
  Turn TurnAt(absl::uint128 position) const;

  // Hash of everything that decides the turns and the records: the weights divided by their
  // greatest common divisor, the sizes and the selections.
  uint64_t fingerprint() const { return fingerprint_; }

 private:
  Mixture() = default;
  void MakeTable();

  std::vector<MixtureMember> members_;
  std::vector<int64_t> weights_;  // Divided by their greatest common divisor.
  // The turns of one period.
  std::vector<uint8_t> turns_;    // The member of each turn.
  std::vector<uint32_t> counts_;  // How many turns that member had before in the period.
  int64_t num_records_ = 0;
  uint64_t fingerprint_ = 0;
};

}  // namespace systole

#endif  // SYSTOLE_CORE_ORDER_MIXTURE_H_
