// What a feed waits for, told to whoever looks: a progress bar, a monitoring thread. Given in
// FeedClientOptions::watch, so that it can be looked at while FeedClient::Create() still waits.
//
// Thread-safe.
#ifndef SYSTOLE_CLIENT_FEED_FEED_WATCH_H_
#define SYSTOLE_CLIENT_FEED_FEED_WATCH_H_

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
  // The address of the server whose loss began the wait; empty: none was lost, `asking` has not
  // sent anything yet.
  std::string lost;
  // The last error of `lost`. That server may have written it: escape it before it is printed.
  std::string error;
  // The address of the server that is asked now.
  std::string asking;
  // Since when, and how long it may take: then the feed ends as Unavailable or, if none was lost,
  // `asking` counts as lost.
  absl::Duration waited;
  absl::Duration limit;
  // Whether a step has come before.
  bool started = false;
};

class FeedWatch {
 public:
  // The longest wait of the feeds that were given this watch; nullopt if all of them move. One that
  // began just now is told too: servers need some time for a step.
  std::optional<FeedWaiting> waiting() const ABSL_LOCKS_EXCLUDED(mu_);

 private:
  friend class FeedLanes;
  void Add(const FeedLanes* feed) ABSL_LOCKS_EXCLUDED(mu_);
  // Waits for a waiting() under way.
  void Remove(const FeedLanes* feed) ABSL_LOCKS_EXCLUDED(mu_);

  mutable Mutex mu_;
  std::set<const FeedLanes*> feeds_ ABSL_GUARDED_BY(mu_);
};

}  // namespace systole

#endif  // SYSTOLE_CLIENT_FEED_FEED_WATCH_H_
