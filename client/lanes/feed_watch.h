// Says what a feed waits for, for example to a progress bar or a monitoring thread. The caller puts
// it into FeedClientOptions::watch and can ask it even while FeedClient::Create() still waits.
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

class FeedLanes;

// A wait for one server.
struct FeedWaiting {
  // The address of the server whose loss began the wait. Empty: no server was lost, but `asking`
  // has not sent anything yet.
  std::string lost;
  // The last error of `lost`. That server may have written it: escape it before it is printed.
  std::string error;
  // The address of the server that is asked now.
  std::string asking;
  // How long the wait has lasted, and how long it may last. After `limit` the feed ends as
  // Unavailable or, if no server was lost, `asking` counts as lost.
  absl::Duration waited;
  absl::Duration limit;
  // Whether the feed has received a step before.
  bool started = false;
};

class FeedWatch {
 public:
  // The longest wait of the feeds that were given this watch; nullopt if none of them waits. A wait
  // that has just begun is reported too, because servers need some time for a step.
  std::optional<FeedWaiting> waiting() const ABSL_LOCKS_EXCLUDED(mu_);

 private:
  friend class FeedLanes;
  void Add(const FeedLanes* feed) ABSL_LOCKS_EXCLUDED(mu_);
  // Waits until a waiting() that is running has returned.
  void Remove(const FeedLanes* feed) ABSL_LOCKS_EXCLUDED(mu_);

  mutable Mutex mu_;
  std::set<const FeedLanes*> feeds_ ABSL_GUARDED_BY(mu_);
};

}  // namespace systole

#endif  // SYSTOLE_CLIENT_LANES_FEED_WATCH_H_
