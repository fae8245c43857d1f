#include "client/lanes/feed_watch.h"

#include <utility>

namespace systole {

std::optional<FeedWaiting> FeedWatch::waiting() const {
  std::optional<FeedWaiting> longest;
  MutexLock lock(mu_);
  for (const WatchedFeed* feed : feeds_) {
    std::optional<FeedWaiting> waiting = feed->waiting();
    if (!waiting.has_value()) continue;
    if (!longest.has_value() || waiting->waited > longest->waited) longest = std::move(waiting);
  }
  return longest;
}

void FeedWatch::Add(const WatchedFeed* feed) {
  MutexLock lock(mu_);
  feeds_.insert(feed);
}

void FeedWatch::Remove(const WatchedFeed* feed) {
  MutexLock lock(mu_);
  feeds_.erase(feed);
}

}  // namespace systole
