// Tells a progress bar or a monitoring thread what a feed waits for. The caller puts a FeedWatch
// into FeedClientOptions::watch. Its waiting() can be called even while FeedClient::Create() waits.
//
// Thread-safe.
#ifndef SYSTOLE_CLIENT_LANES_FEED_WATCH_H_
#define SYSTOLE_CLIENT_LANES_FEED_WATCH_H_

#include <optional>
#include <set>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/time/time.h"
#include "core/concurrency/mutex.h"

namespace systole {

// A wait for one server.
struct FeedWaiting {
  // The address of the server whose loss began the wait. Empty: no server was lost, but `asking`
  // has not sent anything yet.
  std::string lost;
  // The last error of `lost`. That server may have written it, so escape it before you print it.
  std::string error;
  // The address of the server that is asked now.
  std::string asking;
  // How long the wait has lasted.
  absl::Duration waited;
  // How long the wait may last. After this time, the feed ends with Unavailable if `lost` is set.
  // Otherwise `asking` counts as lost.
  absl::Duration limit;
  // Whether the feed has received a step before.
  bool started = false;
};

// A feed that can say what it waits for.
class WatchedFeed {
 public:
  // Nullopt: the feed does not wait. Thread-safe.
  virtual std::optional<FeedWaiting> waiting() const = 0;

 protected:
  ~WatchedFeed() = default;
};

class FeedWatch {
 public:
  // The longest wait of the feeds that were given this watch; nullopt if none of them waits. A wait
  // that has just begun is reported too. Short waits are normal: servers need time for a step.
  std::optional<FeedWaiting> waiting() const ABSL_LOCKS_EXCLUDED(mu_);

  // Feeds call Add() and Remove(). A feed is watched from Add() to Remove().
  void Add(const WatchedFeed* feed) ABSL_LOCKS_EXCLUDED(mu_);
  // If waiting() is running, Remove() waits until waiting() has returned.
  void Remove(const WatchedFeed* feed) ABSL_LOCKS_EXCLUDED(mu_);

 private:
  mutable Mutex mu_;
  std::set<const WatchedFeed*> feeds_ ABSL_GUARDED_BY(mu_);
};

}  // namespace systole

#endif  // SYSTOLE_CLIENT_LANES_FEED_WATCH_H_
