#include "core/order/mixture.h"

#include <algorithm>
#include <numeric>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/checksum/xxh3.h"
#include "core/random/keyed_permutation.h"
#include "core/status/check.h"
#include "core/status/status_macros.h"

namespace systole {
namespace {

// Divides the weights by their greatest common divisor. REQUIRES: one of them is not 0.
std::vector<int64_t> Reduced(absl::Span<const int64_t> weights) {
  int64_t divisor = 0;
  for (const int64_t weight : weights) divisor = std::gcd(divisor, weight);
  std::vector<int64_t> reduced;
  for (const int64_t weight : weights) reduced.push_back(weight / divisor);
  return reduced;
}

// The hash of a change to `weights`, which are reduced. (A call of HashOf() could mean
// absl::HashOf(), whose hashes differ from run to run.)
uint64_t ChangeHash(absl::uint128 from_turn, absl::Span<const int64_t> weights) {
  Xxh3Hasher hasher;
  hasher.Update("systole weights 1");
  hasher.UpdateU64(absl::Uint128High64(from_turn));
  hasher.UpdateU64(absl::Uint128Low64(from_turn));
  for (const int64_t weight : weights) hasher.UpdateU64(static_cast<uint64_t>(weight));
  return hasher.Digest64();
}

// Checks the weights of a change; `field` names them.
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
        " (without common divisors, and equal weights counted once); use smaller weights"));
  }
  tables_.emplace_back(std::move(weights));
  return tables_.size() - 1;
}

absl::Status Mixture::ChangeWeights(int64_t from_step, absl::uint128 from_turn,
                                    absl::Span<const int64_t> weights) {
  const std::string field = absl::StrCat("weights[", num_calls_, "]");
  if (num_calls_ == kMaxWeightChanges) {
    return absl::InvalidArgumentError(
        absl::StrCat(field, " is one too many, want at most ", kMaxWeightChanges));
  }
  if (from_step <= last_step_) {
    return absl::InvalidArgumentError(absl::StrCat(
        field, ".from_step is ", from_step, ", want ",
        last_step_ < 0 ? "0 or more"
                       : absl::StrCat("more than ", last_step_, ", that of the change before it")));
  }
  SYSTOLE_RETURN_IF_ERROR(CheckWeights(absl::StrCat(field, ".weights"), weights, members_.size()));
  std::vector<int64_t> reduced = Reduced(weights);
  ++num_calls_;
  last_step_ = from_step;
  if (from_turn == 0) {
    Begin(std::move(reduced));
    return absl::OkStatus();
  }
  const Piece& last = pieces_.back();
  SYSTOLE_CHECK(from_turn > last.from_turn);
  const uint64_t hash = ChangeHash(from_turn, reduced);
  Xxh3Hasher fingerprint;
  fingerprint.UpdateU64(last.fingerprint);
  fingerprint.UpdateU64(hash);
  Piece piece = {.from_turn = from_turn,
                 .counts = tables_[last.table].CountsBefore(from_turn - last.from_turn),
                 .fingerprint = fingerprint.Digest64()};
  for (size_t i = 0; i < members_.size(); ++i) piece.counts[i] += last.counts[i];
  const absl::StatusOr<size_t> table = TableOf(std::move(reduced));
  if (!table.ok()) {
    return absl::InvalidArgumentError(absl::StrCat(field, ": ", table.status().message()));
  }
  piece.table = *table;
  pieces_.push_back(std::move(piece));
  changes_.push_back(
      {.from_step = from_step, .from_turn = from_turn, .hash = static_cast<uint16_t>(hash)});
  return absl::OkStatus();
}

absl::Span<const WeightChange> Mixture::ChangesBefore(absl::uint128 turn) const {
  const auto end = std::lower_bound(
      changes_.begin(), changes_.end(), turn,
      [](const WeightChange& change, absl::uint128 turn) { return change.from_turn < turn; });
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

}  // namespace systole
