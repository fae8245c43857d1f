#include "core/order/mixture.h"

#include <algorithm>
#include <numeric>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "core/checksum/xxh3.h"
#include "core/random/keyed_permutation.h"
#include "core/status/check.h"
#include "core/status/status_macros.h"

namespace systole {
namespace {

// Divides the weights by their greatest common divisor. REQUIRES: at least one weight is not 0.
std::vector<int64_t> Reduced(absl::Span<const int64_t> weights) {
  int64_t divisor = 0;
  for (const int64_t weight : weights) divisor = std::gcd(divisor, weight);
  std::vector<int64_t> reduced;
  for (const int64_t weight : weights) reduced.push_back(weight / divisor);
  return reduced;
}

// The hash of a change to `weights`, which are reduced. (The name HashOf() would be a trap: a call
// could mean absl::HashOf(), whose hashes differ from run to run.)
uint64_t ChangeHash(absl::uint128 from_turn, absl::Span<const int64_t> weights) {
  Xxh3Hasher hasher;
  hasher.Update("systole weights 1");
  hasher.UpdateU64(absl::Uint128High64(from_turn));
  hasher.UpdateU64(absl::Uint128Low64(from_turn));
  for (const int64_t weight : weights) hasher.UpdateU64(static_cast<uint64_t>(weight));
  return hasher.Digest64();
}

// The fingerprint of all pieces up to and including the piece that a change begins. `before` is the
// fingerprint of the earlier pieces. `change_hash` is the ChangeHash() of the change.
uint64_t FingerprintAfter(uint64_t before, uint64_t change_hash) {
  Xxh3Hasher fingerprint;
  fingerprint.UpdateU64(before);
  fingerprint.UpdateU64(change_hash);
  return fingerprint.Digest64();
}

// Checks where a change begins. Messages call the change `change`, such as "weights[1]". `last` is
// where the previous change begins, or null for the first change.
absl::Status CheckPlace(absl::string_view change, const ChangePlace& place,
                        const ChangePlace* last) {
  const std::string is = absl::StrCat(change, ".", FieldOf(place), " is ", place.number);
  if (place.number < 0) return absl::InvalidArgumentError(absl::StrCat(is, ", want 0 or more"));
  if (last == nullptr || place.turn > last->turn) return absl::OkStatus();
  if (place.by_example == last->by_example) {
    return absl::InvalidArgumentError(
        absl::StrCat(is, ", want more than ", last->number, ", where the previous change begins"));
  }
  return absl::InvalidArgumentError(absl::StrFormat(
      "%s, so this change begins at example %d; want a place after example %d, where the previous "
      "change begins (%s: %d). With another global_batch, steps begin at other examples",
      is, place.turn, last->turn, FieldOf(*last), last->number));
}

// Checks the weights of a change. Messages call the weights `field`.
absl::Status CheckWeights(absl::string_view field, absl::Span<const int64_t> weights,
                          size_t members) {
  if (weights.size() != members) {
    return absl::InvalidArgumentError(absl::StrCat(
        field, " has ", weights.size(), " weights, want ", members, ", one for each member"));
  }
  int64_t total = 0;
  for (const int64_t weight : weights) {
    if (weight < 0 || weight > kMaxTotalWeight - total) {
      return absl::InvalidArgumentError(
          absl::StrCat(field, " has a weight of ", weight,
                       ", want 0 or more, and all weights together at most ", kMaxTotalWeight));
    }
    total += weight;
  }
  if (total > 0) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(field, " are all 0, want a member with a weight above 0"));
}

}  // namespace

absl::string_view FieldOf(const ChangePlace& place) {
  return place.by_example ? "from_example" : "from_step";
}

std::vector<uint16_t> HashesOf(absl::Span<const WeightChange> changes) {
  std::vector<uint16_t> hashes;
  for (const WeightChange& change : changes) hashes.push_back(change.hash);
  return hashes;
}

absl::StatusOr<Mixture> Mixture::Create(std::vector<MixtureMember> members) {
  if (members.empty() || members.size() > kMaxMembers) {
    return absl::InvalidArgumentError(
        absl::StrCat("mixture has ", members.size(), " members, want 1 to ", kMaxMembers));
  }
  Mixture mixture;
  int64_t total = 0;
  std::vector<int64_t> weights;
  for (size_t i = 0; i < members.size(); ++i) {
    const auto& [weight, records] = members[i];
    if (weight < 1 || weight > kMaxTotalWeight - total) {
      return absl::InvalidArgumentError(
          absl::StrCat("mixture[", i, "].weight is ", weight,
                       ", want 1 or more, and all weights together at most ", kMaxTotalWeight));
    }
    total += weight;
    weights.push_back(weight);
    if (records.size() < 1) {
      return absl::InvalidArgumentError(absl::StrCat("mixture[", i, "] has no records"));
    }
    if (records.size() > KeyedPermutation::kMaxSize - mixture.num_records_) {
      return absl::InvalidArgumentError("mixture: its members have more than 2^62 records");
    }
    mixture.num_records_ += records.size();
  }
  mixture.members_ = std::move(members);
  mixture.Begin(Reduced(weights));
  return mixture;
}

void Mixture::Begin(std::vector<int64_t> weights) {
  Xxh3Hasher hasher;
  hasher.Update("systole mixture 1");
  for (size_t i = 0; i < members_.size(); ++i) {
    hasher.UpdateU64(static_cast<uint64_t>(weights[i]));
    members_[i].records.Hash(hasher);
  }
  pieces_ = {
      {.counts = std::vector<absl::uint128>(members_.size(), 0), .fingerprint = hasher.Digest64()}};
  changes_.clear();
  tables_.clear();
  tables_.emplace_back(std::move(weights));
}

absl::StatusOr<size_t> Mixture::TableOf(std::vector<int64_t> weights) {
  int64_t turns = std::accumulate(weights.begin(), weights.end(), int64_t{0});
  for (size_t i = 0; i < tables_.size(); ++i) {
    if (tables_[i].weights() == weights) return i;
    turns += tables_[i].period();
  }
  if (turns > kMaxTurns) {
    return absl::InvalidArgumentError(absl::StrCat(
        "the weights of the mixture and of all changes up to this one add up to ", turns,
        ", want at most ", kMaxTurns,
        " (divided by common divisors; equal weights count once); use smaller weights"));
  }
  tables_.emplace_back(std::move(weights));
  return tables_.size() - 1;
}

absl::Status Mixture::ChangeWeights(const ChangePlace& place, absl::Span<const int64_t> weights) {
  const std::string field = absl::StrCat("weights[", num_calls_, "]");
  if (num_calls_ == kMaxWeightChanges) {
    return absl::InvalidArgumentError(
        absl::StrCat(field, ": want at most ", kMaxWeightChanges, " changes of weights"));
  }
  SYSTOLE_RETURN_IF_ERROR(CheckPlace(field, place, num_calls_ == 0 ? nullptr : &last_place_));
  SYSTOLE_RETURN_IF_ERROR(CheckWeights(absl::StrCat(field, ".weights"), weights, members_.size()));
  std::vector<int64_t> reduced = Reduced(weights);
  ++num_calls_;
  last_place_ = place;
  if (place.turn == 0) {
    Begin(std::move(reduced));
    return absl::OkStatus();
  }
  const Piece& last = pieces_.back();
  SYSTOLE_CHECK(place.turn > last.from_turn);
  const uint64_t hash = ChangeHash(place.turn, reduced);
  Piece piece = {.from_turn = place.turn,
                 .counts = tables_[last.table].CountsBefore(place.turn - last.from_turn),
                 .fingerprint = FingerprintAfter(last.fingerprint, hash)};
  for (size_t i = 0; i < members_.size(); ++i) piece.counts[i] += last.counts[i];
  const absl::StatusOr<size_t> table = TableOf(std::move(reduced));
  if (!table.ok()) {
    return absl::InvalidArgumentError(absl::StrCat(field, ": ", table.status().message()));
  }
  piece.table = *table;
  pieces_.push_back(std::move(piece));
  changes_.push_back({.place = place, .hash = static_cast<uint16_t>(hash)});
  return absl::OkStatus();
}

absl::Span<const WeightChange> Mixture::ChangesBefore(absl::uint128 turn) const {
  const auto end = std::lower_bound(
      changes_.begin(), changes_.end(), turn,
      [](const WeightChange& change, absl::uint128 turn) { return change.place.turn < turn; });
  return absl::MakeConstSpan(changes_).first(static_cast<size_t>(end - changes_.begin()));
}

Mixture::Turn Mixture::TurnAt(absl::uint128 position) const {
  const Piece& piece = pieces_[ChangesBefore(position + 1).size()];
  Turn turn = tables_[piece.table].At(position - piece.from_turn);
  turn.count += piece.counts[static_cast<size_t>(turn.member)];
  return turn;
}

uint64_t Mixture::FingerprintBefore(absl::uint128 turn) const {
  return pieces_[ChangesBefore(turn).size()].fingerprint;
}

uint64_t Mixture::FingerprintIfChangedAt(absl::Span<const absl::uint128> turns) const {
  SYSTOLE_CHECK(turns.size() < pieces_.size());
  uint64_t fingerprint = pieces_[0].fingerprint;
  for (size_t i = 0; i < turns.size(); ++i) {
    const std::vector<int64_t>& weights = tables_[pieces_[i + 1].table].weights();
    fingerprint = FingerprintAfter(fingerprint, ChangeHash(turns[i], weights));
  }
  return fingerprint;
}

}  // namespace systole
