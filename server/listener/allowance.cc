#include "server/listener/allowance.h"

#include <algorithm>
#include <iterator>

namespace systole {
namespace {

// The least time between two new connections while all connections together cost more than
// kMaxUnearnedCost.
constexpr absl::Duration kBetweenTooMany = absl::Milliseconds(100);
// MayGoOn() never closes a connection that costs no more than this: the cost of a request of 4 KiB
// on a connection that has had a call.
constexpr int64_t kFewCost = 2 * kStreamCost;

}  // namespace

void Allowance::Take(const Traffic& total, absl::Duration now) {
  bytes_ += total.bytes_received - seen_.bytes_received;
  streams_ += total.streams_opened - seen_.streams_opened;
  const int64_t calls = total.calls_served - seen_.calls_served;
  const int64_t sent = total.bytes_sent - seen_.bytes_sent;
  int64_t seconds = (now - at_) / absl::Seconds(1);
  at_ += absl::Seconds(seconds);
  // While bytes wait because the peer does not read, the connection earns nothing by time.
  if (total.unread) seconds = 0;
  // Nothing is earned in advance: what the connection has earned beyond what it has sent is lost.
  // Bytes and streams that wait (see Traffic) count as unearned, however much was earned meanwhile.
  bytes_ =
      std::max(total.bytes_waiting, bytes_ - calls * kEarnedByCall - sent / kSentPerEarnedByte -
                                        seconds * kEarnedBytesPerSecond);
  streams_ = std::max(total.streams_waiting, streams_ - calls - seconds * kEarnedStreamsPerSecond);
  seen_ = total;
}

void Allowances::Change(const std::string& peer, int64_t cost, int64_t debt) {
  if (cost == 0 && debt == 0) return;
  cost_ += cost;
  debt_ += debt;
  const auto known = peers_.emplace(peer, Peer()).first;
  known->second.cost += cost;
  known->second.debt += debt;
  if (known->second.cost == 0 && known->second.debt == 0) peers_.erase(known);
}

void Allowances::Add(int64_t id, std::string peer, int64_t connection_cost, absl::Duration now) {
  Change(peer, connection_cost);
  connections_.emplace(
      id, Connection{.peer = std::move(peer), .allowance = Allowance(connection_cost, now)});
}

void Allowances::Remove(int64_t id, absl::Duration now) {
  const auto connection = connections_.find(id);
  if (connection == connections_.end()) return;
  PassTime(now);
  const int64_t cost = connection->second.allowance.cost();
  if (cost > 0) {
    const std::string& peer = connection->second.peer;
    Change(peer, -cost, std::min(cost, kMaxDebt - peers_.find(peer)->second.debt));
  }
  connections_.erase(connection);
}

const Allowance& Allowances::Take(int64_t id, const Traffic& total, absl::Duration now) {
  auto& [peer, allowance] = connections_.find(id)->second;
  const int64_t before = allowance.cost();
  allowance.Take(total, now);
  Change(peer, allowance.cost() - before);
  return allowance;
}

void Allowances::PassTime(absl::Duration now) {
  const int64_t milliseconds = (now - paid_at_) / absl::Milliseconds(1);
  if (milliseconds <= 0) return;
  paid_at_ += absl::Milliseconds(milliseconds);
  const int64_t debtors = std::count_if(peers_.begin(), peers_.end(),
                                        [](const auto& peer) { return peer.second.debt > 0; });
  const int64_t each = milliseconds * kPaidPerMs / std::max<int64_t>(1, debtors) + 1;
  for (auto peer = peers_.begin(); peer != peers_.end();) {
    const int64_t paid = std::min(peer->second.debt, each);
    peer->second.debt -= paid;
    debt_ -= paid;
    const bool costs = peer->second.cost > 0 || peer->second.debt > 0;
    peer = costs ? std::next(peer) : peers_.erase(peer);
  }
}

void Allowances::Recount(absl::Duration now) {
  for (auto& [id, connection] : connections_) {
    const int64_t before = connection.allowance.cost();
    connection.allowance.Pass(now);
    Change(connection.peer, connection.allowance.cost() - before);
  }
}

bool Allowances::MayGoOn(int64_t id, absl::Duration now) {
  const Connection& connection = connections_.find(id)->second;
  if (cost() <= kMaxUnearnedCost || connection.allowance.cost() <= kFewCost) return true;
  PassTime(now);
  if (cost() <= kMaxUnearnedCost) return true;
  const Peer& peer = peers_.find(connection.peer)->second;
  return peer.cost + peer.debt <=
         std::max(kLeastPart, kMaxUnearnedCost / static_cast<int64_t>(peers_.size()));
}

bool Allowances::MayComeIn(const std::string& peer, absl::Duration now) {
  PassTime(now);
  const auto known = peers_.find(peer);
  if (known != peers_.end() && known->second.debt > kWaitingDebt) return false;
  if (cost() <= kMaxUnearnedCost) return true;
  if (now < came_at_ + kBetweenTooMany) return false;
  came_at_ = now;
  return true;
}

std::optional<int64_t> Allowances::FindExcess(absl::Duration now) {
  if (cost_ <= kMaxUnearnedCost) return std::nullopt;
  // Connections that have sent nothing since they were counted last have earned something by time.
  Recount(now);
  if (cost_ <= kMaxUnearnedCost) return std::nullopt;
  const auto cost_of = [this](const std::pair<const int64_t, Connection>& entry) {
    const auto peer = peers_.find(entry.second.peer);
    return std::pair(peer == peers_.end() ? 0 : peer->second.cost, entry.second.allowance.cost());
  };
  return std::max_element(connections_.begin(), connections_.end(),
                          [&](const auto& a, const auto& b) { return cost_of(a) < cost_of(b); })
      ->first;
}

}  // namespace systole
