// The machinery of a FeedClient: carries out what its schedule (client/schedule) decides. Lanes
// (client/lanes/feed_lane.h) fill a window of steps; the keeper is the one thread that opens and
// ends their streams.
//
// gRPC's threads copy chunks and tell the schedule when a step is complete; the trainer tells it
// when one is taken. Everything else is told by the keeper, which also does all that the schedule
// wants of gRPC. The keeper and the trainer wait on one condition each; so does the watcher, which
// is there if the list of servers may change. Nothing else waits.
//
// Next() is for one thread; the other functions are Thread-safe.
#ifndef SYSTOLE_CLIENT_LANES_FEED_LANES_H_
#define SYSTOLE_CLIENT_LANES_FEED_LANES_H_

#include <algorithm>
#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "client/lanes/chunk_stream.h"
#include "client/lanes/feed_client_options.h"
#include "client/lanes/feed_lane.h"
#include "client/lanes/feed_log.h"
#include "client/lanes/feed_watch.h"
#include "client/lanes/keeper_work.h"
#include "client/lanes/step_finisher.h"
#include "client/lanes/step_window.h"
#include "client/schedule/step_schedule.h"
#include "client/servers/known_server.h"
#include "client/servers/receive_meter.h"
#include "client/servers/server_list.h"
#include "client/servers/server_security.h"
#include "client/servers/slot_reader.h"
#include "client/step/feed_client_stats.h"
#include "client/step/step.h"
#include "client/step/step_shelf.h"
#include "core/concurrency/monotonic_clock.h"
#include "core/concurrency/mutex.h"
#include "core/concurrency/worker_pool.h"
#include "core/order/order.h"
#include "proto/framing/chunk.h"
#include "systole/v1/feed.pb.h"
#include "systole/v1/service.pb.h"

namespace systole {

class FeedLanes : public ChunkListener, public WatchedFeed {
 public:
  // Starts to ask the servers. REQUIRES: `options` were checked, and options.first_step is the
  // first step wanted; `list` is of options.servers.
  FeedLanes(const v1::FeedSpec& spec, const FeedClientOptions& options, ServerList list,
            std::shared_ptr<const ChannelSecurity> security);
  // Cancels all calls and streams, and waits until gRPC has let go of them, and for the name
  // service if a name is being looked up.
  ~FeedLanes() override;

  // Waits for a server's answer. See FeedClient::Create().
  absl::StatusOr<v1::ResolveFeedResponse> WaitForAnswer() ABSL_LOCKS_EXCLUDED(mu_);
  // How many servers there are now.
  int64_t num_servers() const ABSL_LOCKS_EXCLUDED(mu_);

  // Begins to fill a window of `window_steps`, up to `end_step`. `finisher` is null if nothing
  // travels compactly; `order` tells masked examples from padding. Called once, after an answer.
  void Start(std::shared_ptr<const StepShape> shape, std::shared_ptr<const StepFinisher> finisher,
             const Order& order, int64_t end_step, int64_t window_steps) ABSL_LOCKS_EXCLUDED(mu_);

  // See FeedClient.
  absl::StatusOr<std::optional<Step>> Next() ABSL_LOCKS_EXCLUDED(mu_);
  bool WaitForNext(absl::Duration timeout) ABSL_LOCKS_EXCLUDED(mu_);
  void Cancel(absl::Status status) ABSL_LOCKS_EXCLUDED(mu_);
  int64_t next_step() const ABSL_LOCKS_EXCLUDED(mu_);
  FeedClientStats stats() const ABSL_LOCKS_EXCLUDED(mu_);
  // The longest wait of the lanes that hold up the trainer now or will soon. See FeedWatch.
  std::optional<FeedWaiting> waiting() const override ABSL_LOCKS_EXCLUDED(mu_);

 private:
  // ChunkListener.
  ReadVerdict OnChunk(int lane, const absl::StatusOr<ReceivedChunk>& chunk,
                      SlotReader* slots) override ABSL_LOCKS_EXCLUDED(mu_);
  void OnStreamEnd(int lane, StreamEnd end) override ABSL_LOCKS_EXCLUDED(mu_);

  // Tells the schedule what has happened and notes what it wants in `work_` and `resumed_`.
  // `cause` is the error behind the event, if there is one. Returns what the stream of `reading`
  // does next: the lane whose callback this is, if it is one.
  ReadVerdict Tell(const ScheduleEvent& event, const absl::Status& cause = absl::OkStatus(),
                   int reading = -1) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // One for each action.
  void Note(const AskServer& action) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void Note(const ForgetServer& action) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void Note(const OpenStream& action) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void Note(const StopStream& action) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void Note(const PauseStream& action) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void Note(const ResumeStream& action) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void Note(const DeliverStep& action) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void Note(const CloseLane& action) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void Note(const GiveUp& action) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void Note(const StepLate& action) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  // The keeper's loop and its parts.
  void Keep() ABSL_LOCKS_EXCLUDED(mu_);
  void EndWhatHasEnded() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void EndQuestion(int number) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void EndStream(int number) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Counts and tells it. The lane still has its cursor.
  void StreamLost(const FeedLane& lane, const LaneEnding& ending)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Whether a stream from there is to be asked for compact tensors.
  bool TravelsCompactly(const ServerLink& link) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  bool AllIdle() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // How a line of the log names the server.
  std::string AddressOf(int server) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  // The watcher's loop, if the list of servers may change.
  void WatchServers() ABSL_LOCKS_EXCLUDED(mu_);
  void ReadServers() ABSL_LOCKS_EXCLUDED(mu_);
  // The servers are those at `addresses` from now on.
  void SetServers(const std::vector<std::string>& addresses) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  // FailedPrecondition if `answer` is about another feed than the first answer; Internal if the
  // spec cannot yield it.
  absl::Status CheckAnswer(const v1::ResolveFeedResponse& answer)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // The trainer has taken `step`.
  void CountWait(int64_t step) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Whether Next() has an answer.
  bool HasNext() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Steps from here on are not wanted.
  int64_t limit() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    return std::min(end_step_, error_step_);
  }
  bool Stopped() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) { return stopping_ || !cancelled_.ok(); }

  // Constant after construction.
  const v1::FeedSpec spec_;
  const FeedClientOptions options_;
  const ServerList list_;
  const std::shared_ptr<const ChannelSecurity> security_;
  const MonotonicClock clock_;
  ReceiveWatch receive_watch_;

  mutable Mutex mu_;
  CondVar keeper_wakes_;
  CondVar trainer_wakes_;
  CondVar watcher_wakes_;
  StepSchedule schedule_ ABSL_GUARDED_BY(mu_);
  std::map<int, KnownServer> servers_ ABSL_GUARDED_BY(mu_);
  int next_server_ ABSL_GUARDED_BY(mu_) = 0;
  absl::Status list_error_ ABSL_GUARDED_BY(mu_);  // Of the last attempt to read the list.
  std::map<int, FeedLane> lanes_ ABSL_GUARDED_BY(mu_);
  // What the schedule wants of gRPC: for the keeper, and reads for whoever told the schedule.
  KeeperWork work_ ABSL_GUARDED_BY(mu_);
  std::vector<ChunkStream*> resumed_ ABSL_GUARDED_BY(mu_);
  FeedLog log_ ABSL_GUARDED_BY(mu_);  // Its lines are written by the keeper.
  std::optional<v1::ResolveFeedResponse> answer_ ABSL_GUARDED_BY(mu_);
  // Set by Start().
  std::shared_ptr<const StepShape> shape_ ABSL_GUARDED_BY(mu_);
  std::shared_ptr<const StepFinisher> finisher_ ABSL_GUARDED_BY(mu_);
  std::shared_ptr<const Order> order_ ABSL_GUARDED_BY(mu_);
  std::shared_ptr<StepShelf> shelf_ ABSL_GUARDED_BY(mu_);
  std::optional<StepWindow> window_ ABSL_GUARDED_BY(mu_);
  int64_t end_step_ ABSL_GUARDED_BY(mu_) = std::numeric_limits<int64_t>::max();
  // Set if an error ends the feed early: steps below error_step_ are still handed out.
  int64_t error_step_ ABSL_GUARDED_BY(mu_) = std::numeric_limits<int64_t>::max();
  absl::Status error_ ABSL_GUARDED_BY(mu_);
  absl::Status cancelled_ ABSL_GUARDED_BY(mu_);
  absl::Duration waited_ ABSL_GUARDED_BY(mu_) = absl::ZeroDuration();  // For the next step.
  bool stopping_ ABSL_GUARDED_BY(mu_) = false;
  FeedClientStats stats_ ABSL_GUARDED_BY(mu_);

  // Of the Tell() under way.
  absl::Status cause_ ABSL_GUARDED_BY(mu_);
  int reading_ ABSL_GUARDED_BY(mu_) = -1;
  ReadVerdict verdict_ ABSL_GUARDED_BY(mu_) = ReadVerdict::kRead;
  ScheduleActions actions_ ABSL_GUARDED_BY(mu_);  // Kept, so that a step allocates nothing.

  // One thread each.
  std::unique_ptr<WorkerPool> keeper_;
  std::unique_ptr<WorkerPool> watcher_;
};

}  // namespace systole

#endif  // SYSTOLE_CLIENT_LANES_FEED_LANES_H_
