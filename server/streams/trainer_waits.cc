#include "server/streams/trainer_waits.h"

#include <algorithm>
#include <iterator>

namespace systole {

void TrainerWaits::Add(const std::string& peer, uint64_t client, const TrainerReport& report) {
  if (client == 0 || !report.waits.has_value()) return;
  MutexLock lock(mu_);
  const absl::Duration now = clock_();
  if (const auto known = peers_.find(peer); known != peers_.end()) {
    if (const auto last = known->second.find(client); last != known->second.end()) {
      if (now - last->second.at >= kLeastReportInterval) last->second = {report, now};
      return;
    }
  }
  MakeRoom(peer);
  peers_[peer][client] = {report, now};
  ++size_;
}

void TrainerWaits::MakeRoom(const std::string& peer) {
  if (const auto own = peers_.find(peer);
      own != peers_.end() && own->second.size() >= kMaxTrainersOfPeer) {
    ForgetOldest(own);
  } else if (size_ >= kMaxTrainers) {
    // The peer with the most reports loses one. Of several such peers, it is the peer whose oldest
    // report came first.
    ForgetOldest(std::max_element(peers_.begin(), peers_.end(), [](const auto& a, const auto& b) {
      if (a.second.size() != b.second.size()) return a.second.size() < b.second.size();
      return OldestOf(a.second)->second.at > OldestOf(b.second)->second.at;
    }));
  }
}

TrainerWaits::Peer::const_iterator TrainerWaits::OldestOf(const Peer& entries) {
  return std::min_element(entries.begin(), entries.end(),
                          [](const auto& a, const auto& b) { return a.second.at < b.second.at; });
}

void TrainerWaits::ForgetOldest(std::map<std::string, Peer>::iterator peer) {
  Peer& entries = peer->second;
  entries.erase(OldestOf(entries));
  --size_;
  if (entries.empty()) peers_.erase(peer);
}

TrainerReport TrainerWaits::Of(const std::string& peer, uint64_t client) const {
  MutexLock lock(mu_);
  const auto known = peers_.find(peer);
  if (known == peers_.end()) return {};
  const auto last = known->second.find(client);
  if (last == known->second.end() || !Counts(last->second, clock_())) return {};
  return last->second.report;
}

TrainerTotals TrainerWaits::totals() const {
  TrainerTotals totals;
  double sum = 0;
  MutexLock lock(mu_);
  const absl::Duration now = clock_();
  for (const auto& [peer, entries] : peers_) {
    for (const auto& [client, entry] : entries) {
      if (!Counts(entry, now)) continue;
      ++totals.trainers;
      ++totals.by_limit[static_cast<size_t>(entry.report.limit)];
      sum += *entry.report.waits;
      totals.max_waits = std::max(totals.max_waits, *entry.report.waits);
    }
  }
  if (totals.trainers > 0) totals.mean_waits = sum / static_cast<double>(totals.trainers);
  return totals;
}

void TrainerWaits::Tick() {
  MutexLock lock(mu_);
  const absl::Duration now = clock_();
  size_ = 0;
  for (auto peer = peers_.begin(); peer != peers_.end();) {
    std::erase_if(peer->second, [&](const auto& entry) { return !Counts(entry.second, now); });
    size_ += peer->second.size();
    peer = peer->second.empty() ? peers_.erase(peer) : std::next(peer);
  }
}

size_t TrainerWaits::size() const {
  MutexLock lock(mu_);
  return size_;
}

}  // namespace systole
