#include "core/order/mixture.h"

#include <numeric>
#include <optional>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "core/checksum/xxh3.h"
#include "core/random/keyed_permutation.h"
#include "core/status/check.h"

namespace systole {

absl::StatusOr<Mixture> Mixture::Create(std::vector<MixtureMember> members) {
  if (members.empty() || members.size() > kMaxMembers) {
    return absl::InvalidArgumentError(
        absl::StrCat("mixture has ", members.size(), " members, want 1 to ", kMaxMembers));
  }
  Mixture mixture;
  int64_t total = 0;
  int64_t divisor = 0;
  for (size_t i = 0; i < members.size(); ++i) {
    const auto& [weight, records] = members[i];
    if (weight < 1 || weight > kMaxTotalWeight - total) {
      return absl::InvalidArgumentError(
          absl::StrCat("mixture[", i, "].weight is ", weight,
                       ", want 1 or more, and all weights together at most ", kMaxTotalWeight));
    }
    total += weight;
    divisor = std::gcd(divisor, weight);
    if (records.size() < 1) {
      return absl::InvalidArgumentError(absl::StrCat("mixture[", i, "] has no records"));
    }
    if (records.size() > KeyedPermutation::kMaxSize - mixture.num_records_) {
      return absl::InvalidArgumentError("mixture: its members have more than 2^62 records");
    }
    mixture.num_records_ += records.size();
  }
  Xxh3Hasher hasher;
  hasher.Update("systole mixture 1");
  for (const MixtureMember& member : members) {
    mixture.weights_.push_back(member.weight / divisor);
    hasher.UpdateU64(static_cast<uint64_t>(mixture.weights_.back()));
    member.records.Hash(hasher);
  }
  mixture.fingerprint_ = hasher.Digest64();
  mixture.members_ = std::move(members);
  mixture.MakeTable();
  return mixture;
}

void Mixture::MakeTable() {
  const auto k = static_cast<int64_t>(weights_.size());
  const int64_t period = std::accumulate(weights_.begin(), weights_.end(), int64_t{0});
  turns_.assign(static_cast<size_t>(period), 0);
  counts_.assign(static_cast<size_t>(period), 0);
  std::vector<int64_t> had(weights_.size(), 0);
  for (int64_t turn = 0; turn < period; ++turn) {
    // A member is behind by its share of turn + 1 turns, minus the turns that it had. A member that
    // is behind by 1 / (2k - 2) or more may have the turn. A member that gets no turn is late once
    // it is behind by 1 - 1 / (2k - 2). The turn goes to the member that would be late first. All
    // numbers are multiplied by period * (2k - 2), so that they are whole. Products stay below
    // 2^41.
    std::optional<size_t> chosen;
    // How much further `chosen` may fall behind before it is late. This number, divided by the
    // weight of `chosen`, is the time until `chosen` is late.
    int64_t least = 0;
    for (size_t i = 0; i < weights_.size(); ++i) {
      const int64_t behind = (2 * k - 2) * (weights_[i] * (turn + 1) - period * had[i]);
      if (k > 1 && behind < period) continue;
      const int64_t missing = period * (2 * k - 3) - behind;
      if (chosen.has_value() && missing * weights_[*chosen] >= least * weights_[i]) continue;
      chosen = i;
      least = missing;
    }
    SYSTOLE_CHECK(chosen.has_value());
    turns_[static_cast<size_t>(turn)] = static_cast<uint8_t>(*chosen);
    counts_[static_cast<size_t>(turn)] = static_cast<uint32_t>(had[*chosen]++);
  }
  SYSTOLE_CHECK(had == weights_);
}

Mixture::Turn Mixture::TurnAt(absl::uint128 position) const {
  const auto turn = static_cast<size_t>(static_cast<uint64_t>(position % turns_.size()));
  const int member = turns_[turn];
  const auto weight = static_cast<uint64_t>(weights_[static_cast<size_t>(member)]);
  return {.member = member, .count = position / turns_.size() * weight + counts_[turn]};
}

}  // namespace systole
