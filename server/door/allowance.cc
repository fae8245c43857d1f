#include "server/door/allowance.h"

#include <algorithm>

#include "absl/strings/string_view.h"

namespace systole {

void Allowance::Take(const Traffic& total, absl::Duration now) {
  bytes_ += total.bytes_received - seen_.bytes_received;
  streams_ += total.streams_opened - seen_.streams_opened;
  const int64_t calls = total.calls_served - seen_.calls_served;
  const int64_t sent = total.bytes_sent - seen_.bytes_sent;
  int64_t seconds = (now - at_) / absl::Seconds(1);
  at_ += absl::Seconds(seconds);
  // What has come of a request is kept until it is whole, however slowly it comes.
  if (total.streams_waiting > 0) seconds = 0;
  // Nothing is earned in advance: what is left over is lost.
  bytes_ = std::max<int64_t>(0, bytes_ - calls * kEarnedByCall - sent / kSentPerEarnedByte -
                                    seconds * kEarnedBytesPerSecond);
  streams_ = std::max(total.streams_waiting, streams_ - calls - seconds * kEarnedStreamsPerSecond);
  seen_ = total;
}

void Allowances::Add(int64_t id, std::string peer, absl::Duration now) {
  connections_.emplace(id, Connection{.peer = std::move(peer), .allowance = Allowance(now)});
  cost_ += CostOf(id);
}

void Allowances::Remove(int64_t id) {
  const auto connection = connections_.find(id);
  if (connection == connections_.end()) return;
  cost_ -= connection->second.allowance.cost();
  connections_.erase(connection);
}

const Allowance& Allowances::Take(int64_t id, const Traffic& total, absl::Duration now) {
  Allowance& allowance = connections_.find(id)->second.allowance;
  cost_ -= allowance.cost();
  allowance.Take(total, now);
  cost_ += allowance.cost();
  return allowance;
}

std::optional<int64_t> Allowances::FindExcess(absl::Duration now) {
  if (cost_ <= kMaxUnearnedCost) return std::nullopt;
  // Those that have been silent since have earned something by time.
  cost_ = 0;
  std::map<absl::string_view, int64_t> peers;
  for (auto& [id, connection] : connections_) {
    connection.allowance.Pass(now);
    peers[connection.peer] += connection.allowance.cost();
    cost_ += connection.allowance.cost();
  }
  if (cost_ <= kMaxUnearnedCost) return std::nullopt;
  const auto cost_of = [&peers](const std::pair<const int64_t, Connection>& entry) {
    return std::pair(peers[entry.second.peer], entry.second.allowance.cost());
  };
  return std::max_element(connections_.begin(), connections_.end(),
                          [&](const auto& a, const auto& b) { return cost_of(a) < cost_of(b); })
      ->first;
}

}  // namespace systole
