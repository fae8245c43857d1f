#include "client/schedule/lane_shares.h"

#include <algorithm>

namespace systole {
namespace {

// The smallest share is a quarter of a lane. A server that is too slow for this share is late, and
// rests.
constexpr int kLeastShare = 4;

// A measurement has at least this many steps for each lane, and takes at least this long.
constexpr int64_t kStepsForLane = 4;
constexpr absl::Duration kShortestJudgement = absl::Seconds(2);

// Limits for the part of the time in which the feed awaits a step from a server. Shares change only
// if the slowest server reaches kAlways. If the fastest server has only a part of its lane and does
// not exceed kSeldom, its share grows. Otherwise, if the fastest server does not exceed kOften, the
// share of the slowest server shrinks.
constexpr double kAlways = 0.9;
constexpr double kOften = 0.6;
constexpr double kSeldom = 0.4;

}  // namespace

const LaneShares::Server* LaneShares::Find(int server) const {
  const auto found = std::find_if(servers_.begin(), servers_.end(), [server](const Server& one) {
    return one.share.server == server;
  });
  return found == servers_.end() ? nullptr : &*found;
}

std::vector<LaneShare> LaneShares::SharesOf(const std::vector<int>& servers) const {
  std::vector<LaneShare> shares;
  bool whole = false;
  for (const int server : servers) {
    const Server* const known = Find(server);
    shares.push_back({.server = server, .every = known == nullptr ? 1 : known->share.every});
    whole = whole || shares.back().every == 1;
  }
  // If the servers that had whole lanes are gone, all others get whole lanes.
  if (!whole) {
    for (LaneShare& share : shares) share.every = 1;
  }
  return shares;
}

std::vector<int> LaneShares::Helpers(const std::vector<LaneShare>& plan) const {
  std::vector<int> helpers;
  for (const LaneShare& share : plan) {
    if (share.every == 1) helpers.push_back(share.server);
  }
  const auto awaited = [this](int server) {
    const Server* const known = Find(server);
    return known == nullptr ? absl::ZeroDuration() : known->awaited;
  };
  std::stable_sort(helpers.begin(), helpers.end(),
                   [&](int a, int b) { return awaited(a) < awaited(b); });
  return helpers;
}

void LaneShares::Begin(const std::vector<LaneShare>& plan) {
  servers_.clear();
  for (const LaneShare& share : plan) servers_.push_back({.share = share});
  begin_.reset();
}

void LaneShares::Awaited(int server, absl::Duration time) {
  for (Server& one : servers_) {
    if (one.share.server == server) one.awaited += time;
  }
}

void LaneShares::StepTaken(absl::Duration now, bool settled) {
  if (!settled || servers_.size() < 2) return;
  if (begin_.has_value()) {
    const absl::Duration took = now - *begin_;
    if (++steps_ < kStepsForLane * kLeastShare * static_cast<int64_t>(servers_.size()) ||
        took < kShortestJudgement || Judge(took)) {
      return;
    }
  }
  begin_ = now;
  steps_ = 0;
  for (Server& server : servers_) server.awaited = absl::ZeroDuration();
}

bool LaneShares::Judge(absl::Duration took) {
  const auto less = [](const Server& a, const Server& b) { return a.awaited < b.awaited; };
  const auto slowest = std::max_element(servers_.begin(), servers_.end(), less);
  const auto fastest = std::min_element(servers_.begin(), servers_.end(), less);
  if (slowest->awaited < kAlways * took) return false;
  if (fastest->share.every > 1 && fastest->awaited <= kSeldom * took) {
    fastest->share.every /= 2;
    return true;
  }
  int64_t lanes = 0;
  int64_t whole = 0;
  for (const Server& server : servers_) {
    lanes += server.share.every;
    whole += server.share.every == 1 ? 1 : 0;
  }
  // The slowest server's share is halved only if the lanes stay at most twice as many as the
  // servers, and at least one server keeps a whole lane.
  if (fastest->awaited > kOften * took || slowest->share.every >= kLeastShare ||
      lanes + slowest->share.every > 2 * static_cast<int64_t>(servers_.size()) ||
      (slowest->share.every == 1 && whole == 1)) {
    return false;
  }
  slowest->share.every *= 2;
  return true;
}

}  // namespace systole
