#include "client/lanes/feed_watch.h"

#include <utility>

#include "client/lanes/feed_lanes.h"

namespace systole {

std::optional<FeedWaiting> FeedWatch::waiting() const {
  std::optional<FeedWaiting> longest;
  MutexLock lock(mu_);
  for (const FeedLanes* feed : feeds_) {
    std::optional<FeedWaiting> waiting = feed->waiting();
    if (!waiting.has_value()) continue;
    if (!longest.has_value() || waiting->waited > longest->waited) longest = std::move(waiting);
  }
  return longest;
}

void FeedWatch::Add(const FeedLanes* feed) {
  MutexLock lock(mu_);
  feeds_.insert(feed);
}

void FeedWatch::Remove(const FeedLanes* feed) {
  MutexLock lock(mu_);
  feeds_.erase(feed);
}

}  // namespace systole
