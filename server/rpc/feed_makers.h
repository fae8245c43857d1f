// Makes feeds that take long to make, away from the threads that answer requests: the records that
// meet a `where` are looked up in columns, which may take seconds. Requests wait here for their
// feeds. Requests for the same feed wait together.
//
//   Add(key, make, request) --in line--> make() on a thread of kMakers --> request.done(feed)
//
// Peers take turns: each feed that a peer wants belongs to a round, one feed a round, and the
// lowest round comes first. A peer has at most one feed in making. So with two makers, a peer whose
// storage hangs does not keep others waiting.
//
// Thread-safe.
#ifndef SYSTOLE_SERVER_RPC_FEED_MAKERS_H_
#define SYSTOLE_SERVER_RPC_FEED_MAKERS_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/concurrency/mutex.h"
#include "core/concurrency/worker_pool.h"
#include "core/interrupt/interrupt.h"

namespace systole {

struct ServedFeed;

class FeedMakers {
 public:
  using Made = absl::StatusOr<std::shared_ptr<const ServedFeed>>;

  struct Request {
    const void* id = nullptr;  // Differs from that of each other request that waits.
    std::string peer;
    std::function<void(Made)> done;
  };

  // Threads that make feeds. They start with the first feed.
  static constexpr int kMakers = 2;
  // The most requests that wait at once. A peer may add one only while fewer of its requests wait
  // than there are places left.
  static constexpr size_t kMostWaiting = 64;
  // A feed for which no request waits any more is given up after so many calls of Tick(). Until
  // then the client may come back, because its deadline may have been shorter than the work.
  static constexpr int kUnwantedTicks = 10;

  FeedMakers() = default;
  // Ends all work, and waits for that in progress.
  ~FeedMakers();
  FeedMakers(const FeedMakers&) = delete;
  FeedMakers& operator=(const FeedMakers&) = delete;

  // Lets `request` wait for the feed of `key`. `make` makes it, on a thread of its own, unless
  // another request has asked for it before. It heeds InterruptRequested(). `request.done` is
  // called once, without a lock, on any thread: with the result of `make`, or
  //   Unavailable        too many requests wait; may be tried again soon.
  //   Cancelled          Withdraw().
  //   ResourceExhausted  the system gives no thread.
  // or the error of Stop().
  void Add(const std::string& key, std::function<Made()> make, Request request)
      ABSL_LOCKS_EXCLUDED(mu_);

  // Calls `done` of the request, if it still waits.
  void Withdraw(const void* id) ABSL_LOCKS_EXCLUDED(mu_);

  // Gives up feeds that nobody wants. Call it about once a second.
  void Tick() ABSL_LOCKS_EXCLUDED(mu_);

  // Ends all requests, and those that are added from now on, with the error `why`. Gives up all
  // feeds. Returns whether none is in making any more.
  bool Stop(const absl::Status& why) ABSL_LOCKS_EXCLUDED(mu_);

 private:
  struct Waiting {
    Request request;
    int64_t round = 0;
  };
  struct Feed {
    std::string key;
    std::function<Made()> make;
    std::vector<Waiting> waiting;
    // Of a feed in making: the peer whose turn it takes.
    bool in_making = false;
    std::string peer = "";
    int unwanted_ticks = 0;
    InterruptFlag unwanted = {};
  };

  absl::Status Enter(const std::string& key, std::function<Made()>& make, Request& request)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Begins to make the feed whose turn it is. Null: there is none.
  std::shared_ptr<Feed> Begin() ABSL_LOCKS_EXCLUDED(mu_);
  void MakeAll() ABSL_LOCKS_EXCLUDED(mu_);

  Mutex mu_;
  absl::Status stopped_ ABSL_GUARDED_BY(mu_);
  int64_t round_ ABSL_GUARDED_BY(mu_) = 0;  // The highest round of a feed that was begun.
  // Those in making and those in line. Shared with the threads that make them.
  std::list<std::shared_ptr<Feed>> feeds_ ABSL_GUARDED_BY(mu_);
  // Last, because its threads use the members above.
  std::unique_ptr<WorkerPool> pool_ ABSL_GUARDED_BY(mu_);
};

}  // namespace systole

#endif  // SYSTOLE_SERVER_RPC_FEED_MAKERS_H_
