// The machinery of a FeedClient: lanes (client/feed/feed_lane.h) that fill a window of steps, and
// the keeper, the one thread that opens and ends their streams.
//
// gRPC's threads only copy chunks and note what happened. The keeper makes every decision about a
// failure (client/feed/lane_retry.h has the rules). The keeper and the trainer wait on one
// condition each; nothing else waits.
//
// Next() is for one thread; the other functions are Thread-safe.
#ifndef SYSTOLE_CLIENT_FEED_FEED_LANES_H_
#define SYSTOLE_CLIENT_FEED_FEED_LANES_H_

#include <algorithm>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "client/feed/chunk_stream.h"
#include "client/feed/feed_client_options.h"
#include "client/feed/feed_client_stats.h"
#include "client/feed/feed_lane.h"
#include "client/feed/feed_watch.h"
#include "client/feed/keeper_work.h"
#include "client/feed/known_server.h"
#include "client/feed/slot_reader.h"
#include "client/feed/step.h"
#include "client/feed/step_finisher.h"
#include "client/feed/step_shelf.h"
#include "client/feed/step_window.h"
#include "client/feed/wire_chooser.h"
#include "core/concurrency/monotonic_clock.h"
#include "core/concurrency/mutex.h"
#include "core/concurrency/worker_pool.h"
#include "core/order/order.h"
#include "proto/framing/chunk.h"
#include "systole/v1/feed.pb.h"
#include "systole/v1/service.pb.h"

namespace systole {

// The most steps that one stream is asked for; then the lane opens a new one. So a server that came
// back gets its lane back, and a server that wants to stop need not wait long.
inline constexpr int64_t kStepsPerStream = 1024;
// WireChooser starts to count anew in each stream, and skips its first step. With shorter streams
// AUTO could never decide again once it wants kMaxWantedSteps steps.
static_assert(kStepsPerStream > WireChooser::kMaxWantedSteps);

class FeedLanes : public ChunkListener {
 public:
  // Starts to ask the servers. REQUIRES: `options` were checked, and options.first_step is the
  // first step wanted.
  FeedLanes(const v1::FeedSpec& spec, const FeedClientOptions& options);
  // Cancels all calls and streams, and waits until gRPC has let go of them.
  ~FeedLanes() override;

  // Waits for a server's answer. See FeedClient::Create().
  absl::StatusOr<v1::ResolveFeedResponse> WaitForAnswer() ABSL_LOCKS_EXCLUDED(mu_);

  // Begins to fill a window of `window_steps`, up to `end_step`. `finisher` is null if nothing is
  // to travel compactly; `order` tells masked examples from padding. Called once, after an answer.
  void Start(std::shared_ptr<const StepShape> shape, std::shared_ptr<const StepFinisher> finisher,
             std::optional<Order> order, int64_t end_step, int64_t window_steps)
      ABSL_LOCKS_EXCLUDED(mu_);

  // See FeedClient.
  absl::StatusOr<std::optional<Step>> Next() ABSL_LOCKS_EXCLUDED(mu_);
  bool WaitForNext(absl::Duration timeout) ABSL_LOCKS_EXCLUDED(mu_);
  void Cancel(absl::Status status) ABSL_LOCKS_EXCLUDED(mu_);
  int64_t next_step() const ABSL_LOCKS_EXCLUDED(mu_);
  FeedClientStats stats() const ABSL_LOCKS_EXCLUDED(mu_);
  // The longest wait of the lanes that hold up the trainer now or will soon. See FeedWatch.
  std::optional<FeedWaiting> waiting() const ABSL_LOCKS_EXCLUDED(mu_);

 private:
  // ChunkListener.
  ReadVerdict OnChunk(int lane, const absl::StatusOr<ReceivedChunk>& chunk,
                      SlotReader* slots) override ABSL_LOCKS_EXCLUDED(mu_);
  void OnStreamEnd(int lane, absl::Status status) override ABSL_LOCKS_EXCLUDED(mu_);

  // The keeper's loop and its parts. Each part may shorten `wait`, the time until something is due.
  void Keep() ABSL_LOCKS_EXCLUDED(mu_);
  void KeepLane(int index, absl::Duration now, KeeperWork& work, absl::Duration& wait)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void EndCall(FeedLane& lane, absl::Duration now, KeeperWork& work)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void EndStream(FeedLane& lane, absl::Duration now, KeeperWork& work)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void WatchStream(FeedLane& lane, absl::Duration now, KeeperWork& work, absl::Duration& wait)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void Begin(int index, absl::Duration now, KeeperWork& work) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Asks the lane's server what the spec yields. `compact`: asks about StepFinisher::spec()
  // instead, the spec whose tensors travel compactly.
  void Ask(int index, bool compact, KeeperWork& work) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void Fail(FeedLane& lane, absl::Duration now, const LaneEnding& ending)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Fail() with a status that a server or gRPC gave.
  void FailWith(FeedLane& lane, absl::Duration now, const absl::Status& status)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // The lane goes on with `server`. It chooses the form anew, because the way there is another one.
  void UseServer(FeedLane& lane, int server) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Counts a complete step. Returns what the stream does next.
  ReadVerdict StepComplete(FeedLane& lane, int64_t step) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  bool AllIdle() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  // FailedPrecondition if `answer` is about another feed than the first answer; Internal if the
  // spec cannot yield it. `compact`: `answer` is about what travels compactly.
  absl::Status CheckAnswer(const v1::ResolveFeedResponse& answer, bool compact)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Ends the feed before `step` with `status`, unless it ends earlier.
  void EndFeed(int64_t step, absl::Status status) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Whether Next() has an answer.
  bool HasNext() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  bool Stopped() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) { return stopping_ || !cancelled_.ok(); }
  // Steps from here on are not wanted.
  int64_t limit() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    return std::min(end_step_, error_step_);
  }

  // Constant after construction.
  const v1::FeedSpec spec_;  // Without `wire`, which is not for the servers.
  const v1::Wire wire_;
  const FeedClientOptions options_;
  const MonotonicClock clock_;

  mutable Mutex mu_;
  CondVar keeper_wakes_;
  CondVar trainer_wakes_;
  std::vector<KnownServer> servers_ ABSL_GUARDED_BY(mu_);
  std::vector<FeedLane> lanes_ ABSL_GUARDED_BY(mu_);
  std::optional<v1::ResolveFeedResponse> answer_ ABSL_GUARDED_BY(mu_);
  // Set by Start().
  std::shared_ptr<const StepShape> shape_ ABSL_GUARDED_BY(mu_);
  std::shared_ptr<const StepFinisher> finisher_ ABSL_GUARDED_BY(mu_);
  std::optional<Order> order_ ABSL_GUARDED_BY(mu_);
  std::shared_ptr<StepShelf> shelf_ ABSL_GUARDED_BY(mu_);
  std::optional<StepWindow> window_ ABSL_GUARDED_BY(mu_);
  int64_t end_step_ ABSL_GUARDED_BY(mu_) = std::numeric_limits<int64_t>::max();
  // Set if an error ends the feed early: steps below error_step_ are still handed out.
  int64_t error_step_ ABSL_GUARDED_BY(mu_) = std::numeric_limits<int64_t>::max();
  absl::Status error_ ABSL_GUARDED_BY(mu_);
  absl::Status cancelled_ ABSL_GUARDED_BY(mu_);
  bool stopping_ ABSL_GUARDED_BY(mu_) = false;
  FeedClientStats stats_ ABSL_GUARDED_BY(mu_);

  std::unique_ptr<WorkerPool> keeper_;  // One thread.
};

}  // namespace systole

#endif  // SYSTOLE_CLIENT_FEED_FEED_LANES_H_
