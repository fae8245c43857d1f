#include "client/schedule/server_subset.h"

#include <algorithm>

#include "core/random/counter_rng.h"

namespace systole {
namespace {

// For this long, a server that was given back comes after all servers that were not given back so
// recently. As a spare server it is not taken at all.
constexpr absl::Duration kRest = absl::Minutes(1);

// An answer counts for this long. About every 10 s one spare server answers, so some twenty answers
// count at a time. Their average tells roughly how busy all servers are.
constexpr absl::Duration kMemory = absl::Minutes(3);

// A server that is less busy than this loses no client, however idle the other servers are.
constexpr double kHardlyBusy = 0.1;

// At most this part of a server's clients leave it at a time. The server's answer is some seconds
// old, so some clients may have left already.
constexpr double kMostExcess = 0.5;

}  // namespace

uint64_t RankOf(absl::string_view name, uint64_t client) {
  uint64_t hash = 0xcbf29ce484222325;  // FNV-1a.
  for (const char c : name) hash = (hash ^ static_cast<uint8_t>(c)) * 0x100000001b3;
  return CounterRng(client, /*epoch=*/0, static_cast<int64_t>(hash), /*purpose=*/1).NextU64();
}

void ServerSubset::Add(int server, uint64_t rank) {
  const std::pair<uint64_t, int> entry(rank, server);
  order_.insert(std::upper_bound(order_.begin(), order_.end(), entry), entry);
}

bool ServerSubset::Remove(int server) {
  known_.erase(server);
  return std::erase_if(order_, [server](const auto& entry) { return entry.second == server; }) > 0;
}

bool ServerSubset::IsTaken(int server) const {
  const auto found = known_.find(server);
  return found != known_.end() && found->second.taken;
}

bool ServerSubset::IsRested(int server, absl::Duration now) const {
  const auto found = known_.find(server);
  return found == known_.end() || !found->second.given_back.has_value() ||
         now - *found->second.given_back >= kRest;
}

std::optional<int> ServerSubset::Next(absl::Duration now, bool rested) const {
  std::optional<int> longest_back;
  for (const auto& [rank, server] : order_) {
    if (IsTaken(server)) continue;
    if (IsRested(server, now)) return server;
    if (!longest_back.has_value() ||
        known_.at(server).given_back < known_.at(*longest_back).given_back) {
      longest_back = server;
    }
  }
  return rested ? std::nullopt : longest_back;
}

std::optional<int> ServerSubset::Take(absl::Duration now, bool rested) {
  const std::optional<int> next = Next(now, rested);
  if (!next.has_value()) return next;
  Forget(now);
  Known& known = known_[*next];
  known.taken = true;
  known.given_back.reset();
  return next;
}

bool ServerSubset::CanTake(absl::Duration now, bool rested) const {
  return Next(now, rested).has_value();
}

void ServerSubset::GiveBack(int server, absl::Duration now) {
  const auto found = known_.find(server);
  if (found == known_.end() || !found->second.taken) return;
  found->second.taken = false;
  found->second.given_back = now;
}

void ServerSubset::Told(int server, const std::optional<ServerLoad>& load, absl::Duration now) {
  const auto found = known_.find(server);
  if (found == known_.end()) return;
  found->second.load = load;
  found->second.told = now;
}

std::optional<ServerLoad> ServerSubset::LoadOf(int server, absl::Duration now) const {
  const auto found = known_.find(server);
  if (found == known_.end() || now - found->second.told >= kMemory) return std::nullopt;
  return found->second.load;
}

std::optional<double> ServerSubset::AverageWithout(int server, absl::Duration now) const {
  double sum = 0;
  int others = 0;
  for (const auto& [number, known] : known_) {
    if (number == server || !known.load.has_value() || now - known.told >= kMemory) continue;
    sum += known.load->busy;
    ++others;
  }
  if (others == 0) return std::nullopt;
  return sum / others;
}

bool ServerSubset::HasRoom(int server, absl::Duration now) const {
  const std::optional<ServerLoad> own = LoadOf(server, now);
  if (!own.has_value()) return true;
  const std::optional<double> average = AverageWithout(server, now);
  return own->free_places > 0 && (!average.has_value() || own->busy <= *average);
}

double ServerSubset::ExcessOf(int server, absl::Duration now) const {
  const std::optional<ServerLoad> own = LoadOf(server, now);
  if (!own.has_value() || own->busy < kHardlyBusy) return 0;
  const std::optional<double> average = AverageWithout(server, now);
  if (!average.has_value() || own->busy <= kFairLoad * *average) return 0;
  return std::min((own->busy - *average) / own->busy, kMostExcess);
}

void ServerSubset::Forget(absl::Duration now) {
  for (auto it = known_.begin(); it != known_.end();) {
    const Known& known = it->second;
    const bool old = !known.taken && IsRested(it->first, now) && now - known.told >= kMemory;
    it = old ? known_.erase(it) : std::next(it);
  }
}

}  // namespace systole
