// A mixture: several datasets that take turns by weight. For each position, a pure function says
// which dataset has the turn there, and how many examples of this dataset came before.
//
// The weights may change at given turns. The turns between two changes are a piece. In each piece
// members take turns as turn_table.h says, as if the piece were a mixture of its own. So the bound
// in turn_table.h holds for the first n turns of every piece, for every n. The counts go on from
// piece to piece: a change of weights neither leaves out nor repeats an example of any member.
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
// The most turns in the tables of all pieces together, which bounds their memory (640 KiB) and the
// time to make them. Pieces of equal weights share a table.
inline constexpr int64_t kMaxTurns = 2 * kMaxTotalWeight;

struct MixtureMember {
  int64_t weight = 0;
  SelectedRecords records;
};

// Where a mixture's weights change, and how the spec says so. Turn n is example n of the mixture,
// so a spec may also name a turn by `from_example`.
struct ChangePlace {
  bool by_example = false;  // Whether `number` is the spec's `from_example`, not its `from_step`.
  int64_t number = 0;
  absl::uint128 turn = 0;  // The first turn with the new weights.
};
// "from_step" or "from_example".
absl::string_view FieldOf(const ChangePlace& place);

// A change of a mixture's weights, without the weights.
struct WeightChange {
  ChangePlace place;
  uint16_t hash = 0;  // The hash of the turn and the new weights. Tells most changes apart.
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
  // weight 0 has no turn. A change at turn 0 replaces the weights that the members came with.
  //   InvalidArgument  `place.number` is below 0, `place.turn` is not above the last call's, there
  //                    were kMaxWeightChanges calls before, there is not one weight for each
  //                    member, a weight is below 0, the weights add up to 0 or to more than
  //                    kMaxTotalWeight, or all pieces have more than kMaxTurns turns. The message
  //                    names the change by the number of calls before: "weights[1].from_step".
  absl::Status ChangeWeights(const ChangePlace& place, absl::Span<const int64_t> weights);

  absl::Span<const MixtureMember> members() const { return members_; }
  // Selected records of all members together.
  int64_t num_records() const { return num_records_; }

  // The weights at the beginning, divided by their greatest common divisor.
  const std::vector<int64_t>& first_weights() const { return tables_[pieces_[0].table].weights(); }
  // The changes of weights in ascending order, except a change at turn 0.
  absl::Span<const WeightChange> changes() const { return changes_; }
  // The changes at turns before `turn`.
  absl::Span<const WeightChange> ChangesBefore(absl::uint128 turn) const;

  // Which member has the turn at `position`. O(log(changes)).
  Turn TurnAt(absl::uint128 position) const;

  // Hash of everything that decides the turns and the records: the weights divided by their
  // greatest common divisor, the turns at which they change, the sizes and the selections.
  uint64_t fingerprint() const { return pieces_.back().fingerprint; }
  // Hash of everything that decides the turns before `turn`. The weights at the beginning always
  // count, even if `turn` is 0. Changes of the weights at `turn` or later do not count.
  uint64_t FingerprintBefore(absl::uint128 turn) const;
  // What FingerprintBefore() would be after the first turns.size() changes, if change i began at
  // turns[i]. REQUIRES: there are turns.size() changes (CHECK).
  uint64_t FingerprintIfChangedAt(absl::Span<const absl::uint128> turns) const;

 private:
  // The turns from one change of weights to the next one.
  struct Piece {
    absl::uint128 from_turn = 0;
    size_t table = 0;                   // Index into `tables_`.
    std::vector<absl::uint128> counts;  // The turns that each member had before the piece.
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
  ChangePlace last_place_;             // The place of the last call.
  int64_t num_records_ = 0;
};

}  // namespace systole

#endif  // SYSTOLE_CORE_ORDER_MIXTURE_H_
