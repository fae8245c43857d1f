// Makes feeds with a `where` (conditions on the columns of records) on threads of its own. It may
// take seconds to look up the records that meet the conditions, and the threads that answer
// requests must not wait that long. Requests wait here for their feeds. Requests for the same feed
// wait together.
//
//   Add(work, request) --in line--> work.make() on a thread --> request.done(feed)
//
// Peers take turns in rounds. A request belongs to a round. A peer's requests for different feeds
// belong to different rounds, in the order in which they came. The feed that has the request of the
// lowest round is made first. At most kMakers feeds are made at once, and at most one of each peer.
// Feeds that read the same dataset are made one after the other.
//
// A feed that has been in making for kSlowTicks is slow: perhaps its storage hangs. A slow feed
// keeps its thread, but it no longer counts towards the kMakers feeds and the one feed of its peer.
// So feeds of other datasets can be made while a dataset hangs. There are kMostSlow places for slow
// feeds. A peer's feed becomes slow only while the peer holds fewer of these places than are free.
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
#include "server/metrics/where_counts.h"

namespace systole {

struct ServedFeed;

class FeedMakers {
 public:
  using Made = absl::StatusOr<std::shared_ptr<const ServedFeed>>;

  struct Request {
    const void* id = nullptr;  // No two waiting requests have the same id.
    std::string peer;
    std::function<void(Made)> done;
  };

  // Work that makes a feed.
  struct Work {
    std::string key;                 // Requests with the same key wait for the same feed.
    std::vector<uint64_t> datasets;  // The datasets that the feed reads: Dataset::number().
    std::function<Made()> make;      // Heeds InterruptRequested().
  };

  // The most feeds in making at once: kMakers that are not slow, and kMostSlow that are slow.
  // kMakers + kMostSlow threads start with the first feed.
  static constexpr int kMakers = 2;
  static constexpr int kMostSlow = 6;
  // A feed is slow once it has been in making for this many calls of Tick(), if it gets a place.
  static constexpr int kSlowTicks = 5;
  // The most requests that wait at once. A peer may add a request only while fewer of its requests
  // wait than there are free places.
  static constexpr size_t kMostWaiting = 64;
  // A feed in making for which no request waits any more is given up after this many calls of
  // Tick(). In this time a client may come back whose deadline was shorter than the work.
  static constexpr int kUnwantedTicks = 10;

  FeedMakers() = default;
  // Ends all requests with Cancelled, and waits for the feeds in making.
  ~FeedMakers();
  FeedMakers(const FeedMakers&) = delete;
  FeedMakers& operator=(const FeedMakers&) = delete;

  // Lets `request` wait for the feed of `work`, which another thread makes. If a feed with the same
  // key is already in making or in line, `request` waits for that feed. `request.done` is called
  // once, on any thread, while no lock is held: with the result of `work.make`, or
  //   Unavailable        too many requests wait; may be tried again soon.
  //   Cancelled          Withdraw().
  //   ResourceExhausted  the system gives no thread.
  // or the error of Stop().
  void Add(Work work, Request request) ABSL_LOCKS_EXCLUDED(mu_);

  // If the request `id` still waits, calls its `done` with Cancelled.
  void Withdraw(const void* id) ABSL_LOCKS_EXCLUDED(mu_);

  // Gives up feeds for which no request waits any more, and marks feeds as slow. Call it about once
  // a second.
  void Tick() ABSL_LOCKS_EXCLUDED(mu_);

  WhereCounts counts() const ABSL_LOCKS_EXCLUDED(mu_);

  // Ends all requests with the error `why`, also requests that are added later. Gives up all feeds.
  // Waits for the feeds in making, for `patience` at most. Returns true if no feed is in making any
  // more.
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
    // `peer` is the peer whose turn the feed takes while in making. A slow feed takes no turn.
    bool in_making = false;
    std::string peer = "";
    int ticks_in_making = 0;
    bool slow = false;
    int unwanted_ticks = 0;
    InterruptFlag unwanted = {};

    bool takes_turn() const { return in_making && !slow; }
  };

  absl::Status Enter(Work& work, Request& request) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Among the requests that wait for `feed` and whose peer's turn is not taken (takes_turn()), the
  // one with the lowest round. Null: there is no such request.
  const Waiting* FirstOf(const Feed& feed) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // The feed to be made next, and FirstOf(feed). Null: no feed can be made now.
  std::pair<std::shared_ptr<Feed>, const Waiting*> Next() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Marks the feed of Next() as in making, and returns it. Null: no feed can be made now.
  std::shared_ptr<Feed> Begin() ABSL_LOCKS_EXCLUDED(mu_);
  void MakeAll() ABSL_LOCKS_EXCLUDED(mu_);

  mutable Mutex mu_;
  WhereCounts counts_ ABSL_GUARDED_BY(mu_);  // The field `waiting` is not used.
  CondVar ended_;                            // A feed is not in making any more.
  absl::Status stopped_ ABSL_GUARDED_BY(mu_);
  int64_t round_ ABSL_GUARDED_BY(mu_) = 0;  // The highest round of a feed that was begun.
  // The feeds in making and the feeds in line. Shared with the threads that make them.
  std::list<std::shared_ptr<Feed>> feeds_ ABSL_GUARDED_BY(mu_);
  // Last, because its threads use the members above.
  std::unique_ptr<WorkerPool> pool_ ABSL_GUARDED_BY(mu_);
};

}  // namespace systole

#endif  // SYSTOLE_SERVER_RPC_FEED_MAKERS_H_
