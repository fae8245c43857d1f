// A mixture: several datasets that take turns by weight. For each position, a pure function says
// which dataset has the turn there, and how many examples of this dataset came before.
//
// The weights may change at given turns. The turns from one change to the next are a piece. In each
// piece, members take turns as turn_table.h says, as if the mixture began with this piece. So the
// bound in turn_table.h holds for the first n turns of each piece. Each member goes on with its
// next example: a change of weights neither leaves out nor repeats an example.
//
// Thread-compatible. To be shared by threads, it must be const.
#ifndef SYSTOLE_CORE_ORDER_MIXTURE_H_
#define SYSTOLE_CORE_ORDER_MIXTURE_H_

#include <cstdint>
#include <vector>

#include "absl/numeric/int128.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "core/order/selection.h"
#include "core/order/turn_table.h"

namespace systole {

// The most changes of a mixture's weights.
inline constexpr int kMaxWeightChanges = 64;
// The most turns that a mixture's tables have together. This bounds the tables' memory (640 KiB)
// and the time to make them. Pieces of equal weights share a table.
inline constexpr int64_t kMaxTurns = 2 * kMaxTotalWeight;

struct MixtureMember {
  int64_t weight = 0;
  SelectedRecords records;
};

// Where a mixture's weights change, and the field with which the spec says so. Turn n gives example
// n of the mixture, so `from_example` is a turn's number.
struct ChangePlace {
  bool by_example = false;  // True: the field is `from_example`. False: it is `from_step`.
  int64_t number = 0;       // The field's value.
  absl::uint128 turn = 0;   // The first turn with the new weights.
};
// "from_step" or "from_example".
absl::string_view FieldOf(const ChangePlace& place);

// A change of a mixture's weights, without the weights.
struct WeightChange {
  ChangePlace place;
  uint16_t hash = 0;  // Of the turn and the new weights. Two changes rarely have the same hash.
};

// The hashes of `changes`, as a token holds them.
std::vector<uint16_t> HashesOf(absl::Span<const WeightChange> changes);

class Mixture {
 public:
  using Turn = TurnTable::Turn;

  //   InvalidArgument  no members or more than kMaxMembers, a weight below 1, weights that add up
  //                    to more than kMaxTotalWeight, a member without records, or more than 2^62
  //                    records in all. The message names the member: "mixture[1].weight".
  static absl::StatusOr<Mixture> Create(std::vector<MixtureMember> members);

  // Sets the weights from turn `place.turn` on. Only the ratios of the weights count. A member of
  // weight 0 has no turn. A change at turn 0 replaces the weights that Create() was given.
  //   InvalidArgument  `place.number` is below 0; `place.turn` is not above that of the previous
  //                    call; there were kMaxWeightChanges calls before; there is not one weight for
  //                    each member; a weight is below 0; the weights add up to 0 or to more than
  //                    kMaxTotalWeight; or the tables would have more than kMaxTurns turns. The
  //                    message names the second change "weights[1]".
  absl::Status ChangeWeights(const ChangePlace& place, absl::Span<const int64_t> weights);

  absl::Span<const MixtureMember> members() const { return members_; }
  // Selected records of all members together.
  int64_t num_records() const { return num_records_; }

  // The weights at the beginning, divided by their greatest common divisor.
  const std::vector<int64_t>& first_weights() const { return tables_[pieces_[0].table].weights(); }
  // The changes of weights after turn 0, in ascending order.
  absl::Span<const WeightChange> changes() const { return changes_; }
  // The changes at turns before `turn`.
  absl::Span<const WeightChange> ChangesBefore(absl::uint128 turn) const;

  // Which member has turn number `position`. O(log(changes)).
  Turn TurnAt(absl::uint128 position) const;

  // Hash of everything that decides the turns and the records: the weights divided by their
  // greatest common divisor, the turns at which they change, and each member's number of records
  // and selection.
  uint64_t fingerprint() const { return pieces_.back().fingerprint; }
  // fingerprint() without the changes of weights at `turn` or later. The weights at the beginning
  // count even if `turn` is 0.
  uint64_t FingerprintBefore(absl::uint128 turn) const;
  // What FingerprintBefore() would give after exactly the first turns.size() changes, if change i
  // began at turns[i]. REQUIRES: there are at least turns.size() changes (CHECK).
  uint64_t FingerprintIfChangedAt(absl::Span<const absl::uint128> turns) const;

 private:
  // The turns from one change of weights to the next one.
  struct Piece {
    absl::uint128 from_turn = 0;
    size_t table = 0;                   // Index into `tables_`.
    std::vector<absl::uint128> counts;  // How many turns each member had before the piece.
    uint64_t fingerprint = 0;           // Covers this piece and all earlier ones.
  };

  Mixture() = default;
  // Makes the first piece, with these weights, and forgets all other pieces.
  void Begin(std::vector<int64_t> weights);
  // The index of the table of these weights. Makes the table if it does not exist. InvalidArgument
  // if all tables together would have more than kMaxTurns turns.
  absl::StatusOr<size_t> TableOf(std::vector<int64_t> weights);

  std::vector<MixtureMember> members_;
  std::vector<TurnTable> tables_;
  std::vector<Piece> pieces_;          // At least one; the first one begins at turn 0.
  std::vector<WeightChange> changes_;  // One for each piece but the first.
  int num_calls_ = 0;                  // Calls of ChangeWeights().
  ChangePlace last_place_;             // The place in the last call of ChangeWeights().
  int64_t num_records_ = 0;
};

}  // namespace systole

#endif  // SYSTOLE_CORE_ORDER_MIXTURE_H_
