// Makes feeds that take long to make, away from the threads that answer requests: the records that
// meet a `where` are looked up in columns, which may take seconds. Requests wait here for their
// feeds. Requests for the same feed wait together.
//
//   Add(work, request) --in line--> work.make() on a thread --> request.done(feed)
//
// Peers take turns: each feed that a peer wants belongs to a round, one feed a round, and the
// lowest round comes first. A peer has at most one feed in making, and kMakers feeds are made at
// once. Feeds that read a dataset in common are made one after the other.
//
// A feed that is long in making is slow: perhaps its storage hangs. It keeps its thread, but not
// its peer's turn, and another thread takes its place among the kMakers. So a dataset that hangs
// keeps only the feeds that read it waiting. There are kMostSlow such places, shared as those of
// waiting requests are.
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
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
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

  // Work that makes a feed.
  struct Work {
    std::string key;                 // Requests for one key wait for one feed.
    std::vector<uint64_t> datasets;  // The numbers of those it reads (Dataset::number()).
    std::function<Made()> make;      // Heeds InterruptRequested().
  };

  // The most feeds in making at once, without slow ones, and the most slow ones. So many threads
  // start with the first feed.
  static constexpr int kMakers = 2;
  static constexpr int kMostSlow = 6;
  // A feed is slow once it has been in making for so many calls of Tick().
  static constexpr int kSlowTicks = 5;
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

  // Lets `request` wait for the feed of `work`, which is made on another thread, unless a request
  // has asked for it before. `request.done` is called once, without a lock, on any thread: with the
  // result of `work.make`, or
  //   Unavailable        too many requests wait; may be tried again soon.
  //   Cancelled          Withdraw().
  //   ResourceExhausted  the system gives no thread.
  // or the error of Stop().
  void Add(Work work, Request request) ABSL_LOCKS_EXCLUDED(mu_);

  // Calls `done` of the request, if it still waits.
  void Withdraw(const void* id) ABSL_LOCKS_EXCLUDED(mu_);

  // Gives up feeds that nobody wants, and sees which are slow. Call it about once a second.
  void Tick() ABSL_LOCKS_EXCLUDED(mu_);

  // Ends all requests, and those that are added from now on, with the error `why`. Gives up all
  // feeds. Waits at most for `patience` until none is in making any more, and returns whether this
  // is so.
  bool Stop(const absl::Status& why, absl::Duration patience = absl::ZeroDuration())
      ABSL_LOCKS_EXCLUDED(mu_);

 private:
  struct Waiting {
    Request request;
    int64_t round = 0;
  };
  struct Feed {
    Work work;
    std::vector<Waiting> waiting;
    // Of a feed in making: the peer whose turn it takes, unless it is slow.
    bool in_making = false;
    std::string peer = "";
    int ticks_in_making = 0;
    bool slow = false;
    int unwanted_ticks = 0;
    InterruptFlag unwanted = {};

    bool takes_turn() const { return in_making && !slow; }
  };

  absl::Status Enter(Work& work, Request& request) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Of the requests that wait for `feed`, the one of the lowest round whose peer has no feed in
  // making. Null: there is none.
  const Waiting* FirstOf(const Feed& feed) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // The feed whose turn it is, and the request whose turn it takes. Null: there is none.
  std::pair<std::shared_ptr<Feed>, const Waiting*> Next() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Begins to make the feed whose turn it is. Null: there is none.
  std::shared_ptr<Feed> Begin() ABSL_LOCKS_EXCLUDED(mu_);
  void MakeAll() ABSL_LOCKS_EXCLUDED(mu_);

  Mutex mu_;
  CondVar ended_;  // A feed is not in making any more.
  absl::Status stopped_ ABSL_GUARDED_BY(mu_);
  int64_t round_ ABSL_GUARDED_BY(mu_) = 0;  // The highest round of a feed that was begun.
  // Those in making and those in line. Shared with the threads that make them.
  std::list<std::shared_ptr<Feed>> feeds_ ABSL_GUARDED_BY(mu_);
  // Last, because its threads use the members above.
  std::unique_ptr<WorkerPool> pool_ ABSL_GUARDED_BY(mu_);
};

}  // namespace systole

#endif  // SYSTOLE_SERVER_RPC_FEED_MAKERS_H_
