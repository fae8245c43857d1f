// The moving part of a FeedClient: lanes that fill a window of steps, and the keeper, the one
// thread that opens and ends their streams.
//
//   lane: idle -> resolving (is the server's data the same?) -> streaming -> idle ..
//
// gRPC's threads only copy chunks and note what happened; every decision about a failure is the
// keeper's (client/feed/lane_retry.h says when). All waits are for the keeper's or the trainer's
// condition.
//
// Next() is for one thread; the other functions are Thread-safe.
#ifndef SYSTOLE_CLIENT_FEED_FEED_LANES_H_
#define SYSTOLE_CLIENT_FEED_FEED_LANES_H_

#include <algorithm>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "client/feed/chunk_stream.h"
#include "client/feed/feed_client.h"
#include "client/feed/lane_cursor.h"
#include "client/feed/lane_retry.h"
#include "client/feed/missing_examples.h"
#include "client/feed/server_link.h"
#include "client/feed/step.h"
#include "client/feed/step_finisher.h"
#include "client/feed/step_shelf.h"
#include "client/feed/step_window.h"
#include "client/feed/wire_chooser.h"
#include "core/concurrency/monotonic_clock.h"
#include "core/concurrency/mutex.h"
#include "core/concurrency/worker_pool.h"
#include "core/order/order.h"
#include "systole/v1/service.pb.h"

namespace systole {

// A stream is asked for so many steps at most and then opened anew: a server that came back gets
// its lane back, and one that wants to go need not wait for long.
inline constexpr int64_t kStepsPerStream = 1024;
// WireChooser counts anew in each stream, without its first step: else AUTO would decide no more
// once it wants the most steps.
static_assert(kStepsPerStream > WireChooser::kMaxWantedSteps);

class FeedLanes : public ChunkListener {
 public:
  // Starts asking the servers. REQUIRES: `options` were checked, their first_step is the first one
  // wanted.
  FeedLanes(const v1::FeedSpec& spec, const FeedClientOptions& options);
  // Cancels what is under way and waits until gRPC has let go of it.
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
  void Cancel(absl::Status status) ABSL_LOCKS_EXCLUDED(mu_);
  int64_t next_step() const ABSL_LOCKS_EXCLUDED(mu_);
  FeedClientStats stats() const ABSL_LOCKS_EXCLUDED(mu_);
  // The longest wait of a lane that holds up the trainer, or will. See FeedWatch.
  std::optional<FeedWaiting> waiting() const ABSL_LOCKS_EXCLUDED(mu_);

 private:
  // A server and what is known of it.
  struct Server {
    std::unique_ptr<ServerLink> link;
    // Its answer, if that fits the feed; forgotten when a stream breaks, since another process may
    // listen there afterwards.
    std::optional<v1::FeedIdentity> identity;
    // The same of what travels compactly, asked for when it is wanted first.
    std::optional<v1::FeedIdentity> compact_identity;
    std::optional<absl::Duration> failed_at;
    absl::Status last_error;
  };

  // How a stream or a question ended.
  struct Ending {
    FailureKind kind;
    absl::Status status;
  };

  // The taking of every K-th step.
  struct Lane {
    Lane(int64_t first_step, int home, const LaneRetryOptions& retry_options)
        : step(first_step), home(home), server(home), retry(retry_options) {}

    int64_t step;    // The first one that is not complete.
    const int home;  // The server it prefers.
    int server;      // The one it uses.
    int lost = 0;    // While `retry` is failing: the one whose loss began it.
    LaneRetry retry;
    WireChooser wire;
    absl::Duration not_before = absl::ZeroDuration();

    // Set while resolving. `resolved` tells that its callback has come.
    std::unique_ptr<ResolveCall> call;
    bool asks_for_compact = false;  // What the call is about.
    std::optional<absl::Status> resolved;

    // Set while streaming. `ended` tells that OnStreamEnd() has come.
    std::unique_ptr<ChunkStream> stream;
    std::optional<LaneCursor> cursor;
    bool compact = false;    // The form in which it was asked for.
    bool changing = false;   // Was stopped by us, to go on in the other form.
    bool paused = false;     // Has no chunk asked for, waits for room in the window.
    bool held = false;       // Was paused in the step under way.
    bool cancelled = false;  // By the keeper.
    absl::Duration heard_at = absl::ZeroDuration();
    std::optional<Ending> reason;  // Found by us; goes before what gRPC says.
    std::optional<absl::Status> ended;
  };

  // What the keeper does once it has let go of the lock: everything that calls gRPC.
  struct Work {
    std::vector<std::unique_ptr<ChunkStream>> ended_streams;
    std::vector<std::unique_ptr<ResolveCall>> ended_calls;
    std::vector<ChunkStream*> cancel_reading;
    std::vector<ChunkStream*> cancel_paused;
    std::vector<ResolveCall*> cancel_calls;
    std::vector<ResolveCall*> start_calls;
    std::vector<std::pair<ChunkStream*, ServerLink*>> start_streams;

    bool empty() const {
      return ended_streams.empty() && ended_calls.empty() && cancel_reading.empty() &&
             cancel_paused.empty() && cancel_calls.empty() && start_calls.empty() &&
             start_streams.empty();
    }
  };

  // ChunkListener.
  ReadVerdict OnChunk(int lane, const absl::StatusOr<ReceivedChunk>& chunk,
                      SlotReader* slots) override ABSL_LOCKS_EXCLUDED(mu_);
  void OnStreamEnd(int lane, absl::Status status) override ABSL_LOCKS_EXCLUDED(mu_);

  // The keeper's loop and its parts. Each part may shorten `wait`, the time until something is due.
  void Keep() ABSL_LOCKS_EXCLUDED(mu_);
  static void Do(Work work);
  void KeepLane(int index, absl::Duration now, Work& work, absl::Duration& wait)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void EndCall(Lane& lane, absl::Duration now, Work& work) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void EndStream(Lane& lane, absl::Duration now, Work& work) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void WatchStream(Lane& lane, absl::Duration now, Work& work, absl::Duration& wait)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void Begin(int index, absl::Duration now, Work& work) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Asks the lane's server what the spec yields, or what is asked of it instead if that is to
  // travel compactly.
  void Ask(int index, bool compact, Work& work) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void Fail(Lane& lane, absl::Duration now, const Ending& ending)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // The same with what a server or gRPC says.
  void FailWith(Lane& lane, absl::Duration now, const absl::Status& status)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // The lane goes on with `server`, whose way is another one: begins with the form of the spec.
  void UseServer(Lane& lane, int server) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Counts a complete step. What the stream does next.
  ReadVerdict StepComplete(Lane& lane, int64_t step) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Keeps the reason why a chunk came by the stream, if it is the first from a server on this
  // machine. `slots` as for OnChunk().
  void NoteNotShared(const Lane& lane, const ChunkHeader& header, const SlotReader* slots)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Notes what the trainer is handed.
  void CountMissing(const MissingExamples& missing) ABSL_LOCKS_EXCLUDED(mu_);
  std::optional<FeedWaiting> WaitOf(const Lane& lane, absl::Duration now) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  bool AllIdle() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  // FailedPrecondition if `answer` is not of the feed that the first answer began; Internal if it
  // cannot be. `compact`: it is about what travels compactly.
  absl::Status CheckAnswer(const v1::ResolveFeedResponse& answer, bool compact)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Of an attempt that went nowhere: every server with its last error.
  absl::Status Unreachable(absl::string_view what) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // The feed ends before `step` with `status`, if it does not end earlier.
  void EndFeed(int64_t step, absl::Status status) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
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
  std::vector<Server> servers_ ABSL_GUARDED_BY(mu_);
  std::vector<Lane> lanes_ ABSL_GUARDED_BY(mu_);
  std::optional<v1::ResolveFeedResponse> answer_ ABSL_GUARDED_BY(mu_);
  // Set by Start().
  std::shared_ptr<const StepShape> shape_ ABSL_GUARDED_BY(mu_);
  std::shared_ptr<const StepFinisher> finisher_ ABSL_GUARDED_BY(mu_);
  std::optional<Order> order_ ABSL_GUARDED_BY(mu_);
  std::shared_ptr<StepShelf> shelf_ ABSL_GUARDED_BY(mu_);
  std::optional<StepWindow> window_ ABSL_GUARDED_BY(mu_);
  int64_t end_step_ ABSL_GUARDED_BY(mu_) = std::numeric_limits<int64_t>::max();
  // How the feed ends early: steps below are still handed out.
  int64_t error_step_ ABSL_GUARDED_BY(mu_) = std::numeric_limits<int64_t>::max();
  absl::Status error_ ABSL_GUARDED_BY(mu_);
  absl::Status cancelled_ ABSL_GUARDED_BY(mu_);
  bool stopping_ ABSL_GUARDED_BY(mu_) = false;
  FeedClientStats stats_ ABSL_GUARDED_BY(mu_);

  std::unique_ptr<WorkerPool> keeper_;  // One thread.
};

}  // namespace systole

#endif  // SYSTOLE_CLIENT_FEED_FEED_LANES_H_
