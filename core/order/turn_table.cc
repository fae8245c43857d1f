#include "core/order/turn_table.h"

#include <algorithm>
#include <numeric>
#include <optional>
#include <utility>

#include "core/status/check.h"

namespace systole {

TurnTable::TurnTable(std::vector<int64_t> weights) : weights_(std::move(weights)) {
  SYSTOLE_CHECK(weights_.size() <= kMaxMembers);
  for (const int64_t weight : weights_) SYSTOLE_CHECK(weight >= 0 && weight <= kMaxTotalWeight);
  const int64_t period = std::accumulate(weights_.begin(), weights_.end(), int64_t{0});
  SYSTOLE_CHECK(period >= 1 && period <= kMaxTotalWeight);
  const int64_t k = std::count_if(weights_.begin(), weights_.end(),
                                  [](const int64_t weight) { return weight > 0; });
  members_.assign(static_cast<size_t>(period), 0);
  counts_.assign(static_cast<size_t>(period), 0);
  std::vector<int64_t> had(weights_.size(), 0);
  for (int64_t turn = 0; turn < period; ++turn) {
    // k is the number of members with a weight above 0. A member is behind by its share of turn + 1
    // turns, minus the turns that it had. It may have the turn if it is behind by 1 / (2k - 2) or
    // more. It is late once it is behind by 1 - 1 / (2k - 2). The turn goes to the member that
    // would be the first to be late. `behind`, `missing` and `least` are multiplied by
    // period * (2k - 2), so that they are whole. Products stay below 2^41.
    std::optional<size_t> chosen;
    // How much further `chosen` may fall behind before it is late. This number, divided by the
    // weight of `chosen`, is the time until `chosen` is late.
    int64_t least = 0;
    for (size_t i = 0; i < weights_.size(); ++i) {
      if (weights_[i] == 0) continue;
      const int64_t behind = (2 * k - 2) * (weights_[i] * (turn + 1) - period * had[i]);
      if (k > 1 && behind < period) continue;
      const int64_t missing = period * (2 * k - 3) - behind;
      if (chosen.has_value() && missing * weights_[*chosen] >= least * weights_[i]) continue;
      chosen = i;
      least = missing;
    }
    SYSTOLE_CHECK(chosen.has_value());
    members_[static_cast<size_t>(turn)] = static_cast<uint8_t>(*chosen);
    counts_[static_cast<size_t>(turn)] = static_cast<uint32_t>(had[*chosen]++);
  }
  SYSTOLE_CHECK(had == weights_);
}

TurnTable::Turn TurnTable::At(absl::uint128 turn) const {
  const auto in_period = static_cast<size_t>(absl::Uint128Low64(turn % members_.size()));
  const int member = members_[in_period];
  const auto weight = static_cast<uint64_t>(weights_[static_cast<size_t>(member)]);
  return {.member = member, .count = turn / members_.size() * weight + counts_[in_period]};
}

std::vector<absl::uint128> TurnTable::CountsBefore(absl::uint128 turns) const {
  const absl::uint128 periods = turns / members_.size();
  std::vector<absl::uint128> counts;
  for (const int64_t weight : weights_) counts.push_back(periods * static_cast<uint64_t>(weight));
  const auto rest = static_cast<size_t>(absl::Uint128Low64(turns % members_.size()));
  for (size_t turn = 0; turn < rest; ++turn) ++counts[members_[turn]];
  return counts;
}

}  // namespace systole
