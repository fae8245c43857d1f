// The machinery of a FeedClient: carries out what its schedule (client/schedule) decides. It ties
// three parts together, each of which has one job and no thread:
//
//   FeedServers   which servers there are, what they answer        (feed_servers.h)
//   LaneTable     the lanes' streams, and the steps on them        (lane_table.h)
//   TrainerEnd    complete steps in order, the end, the error      (trainer_end.h)
//
// Each thread reports events to the schedule. The schedule returns actions, and the thread passes
// each action to the part that carries it out. gRPC's threads copy chunks and report complete
// steps. The trainer's thread reports that it takes a step. The watcher, which exists if the list
// of servers may change, reports servers that join and leave. The keeper reports everything else,
// and is the only thread that opens, cancels and destroys streams. Keeper, trainer and watcher each
// have a condition variable to wait on. No other thread waits.
//
// Only one thread may call Next(). All other functions are Thread-safe.
#ifndef SYSTOLE_CLIENT_LANES_FEED_LANES_H_
#define SYSTOLE_CLIENT_LANES_FEED_LANES_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "client/lanes/chunk_stream.h"
#include "client/lanes/feed_client_options.h"
#include "client/lanes/feed_log.h"
#include "client/lanes/feed_servers.h"
#include "client/lanes/feed_watch.h"
#include "client/lanes/keeper_work.h"
#include "client/lanes/lane_table.h"
#include "client/lanes/step_finisher.h"
#include "client/lanes/trainer_end.h"
#include "client/lanes/trainer_reports.h"
#include "client/schedule/step_schedule.h"
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
  // Starts to ask the servers. REQUIRES: `options` were checked; `list` was made from
  // options.servers.
  FeedLanes(const v1::FeedSpec& spec, const FeedClientOptions& options, ServerList list,
            std::shared_ptr<const ChannelSecurity> security);
  // Cancels all calls and streams, and waits until gRPC has ended them. Also waits for a name
  // service that is being asked.
  ~FeedLanes() override;

  // Waits for a server's answer. See FeedClient::Create().
  absl::StatusOr<v1::ResolveFeedResponse> WaitForAnswer() ABSL_LOCKS_EXCLUDED(mu_);

  // Begins to ask for steps `first_step` to `end_step` - 1. At most `window_steps` steps arrive or
  // wait here at a time. `finisher` is null if no tensor travels in its compact form. `order` shows
  // which missing examples are padding. Called once, after an answer.
  void Start(std::shared_ptr<const StepShape> shape, std::shared_ptr<const StepFinisher> finisher,
             const Order& order, int64_t first_step, int64_t end_step, int64_t window_steps)
      ABSL_LOCKS_EXCLUDED(mu_);

  // See FeedClient. REQUIRES: Start(), except for Cancel() and stats().
  absl::StatusOr<std::optional<Step>> Next() ABSL_LOCKS_EXCLUDED(mu_);
  bool WaitForNext(absl::Duration timeout) ABSL_LOCKS_EXCLUDED(mu_);
  void Cancel(absl::Status status) ABSL_LOCKS_EXCLUDED(mu_);
  int64_t next_step() const ABSL_LOCKS_EXCLUDED(mu_);
  FeedClientStats stats() const ABSL_LOCKS_EXCLUDED(mu_);
  // The longest wait for a server that holds up the trainer now, or soon will. See FeedWatch.
  std::optional<FeedWaiting> waiting() const override ABSL_LOCKS_EXCLUDED(mu_);

 private:
  // What the caller of Tell() does next.
  struct Told {
    // What to do next with the stream whose callback runs.
    ReadVerdict verdict = ReadVerdict::kRead;
    // Calls Read() of these streams, without the lock. Empty after all events except StepTaken.
    std::vector<ChunkStream*> resumed;
  };

  // ChunkListener.
  ReadVerdict OnChunk(int lane, const absl::StatusOr<ReceivedChunk>& chunk,
                      SlotReader* slots) override ABSL_LOCKS_EXCLUDED(mu_);
  void OnStreamEnd(int lane, StreamEnd end) override ABSL_LOCKS_EXCLUDED(mu_);

  // Tells the schedule what has happened. The parts carry out the schedule's actions now, or leave
  // them to the keeper. `cause` is the error behind the event, if there is one. `reading` is the
  // lane whose callback calls Tell(); -1: no callback calls it.
  Told Tell(const ScheduleEvent& event, const absl::Status& cause = absl::OkStatus(),
            int reading = -1) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void Carry(const ScheduleAction& action, const absl::Status& cause, int reading, Told& told)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void DestroyLater(std::unique_ptr<ServerLink> link) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void Ask(int server) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void Open(const OpenStream& action) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void Stop(const StopStream& action, int reading) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void Deliver(const DeliverStep& action) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void EndEarly(const GiveUp& action, const absl::Status& cause) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  // The keeper's loop and its parts.
  void Keep() ABSL_LOCKS_EXCLUDED(mu_);
  void EndWhatHasEnded() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void SendReports() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void EndStream(int lane) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  bool Stopped() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    return stopping_ || trainer_.cancelled();
  }

  // The watcher's loop, if the list of servers may change.
  void WatchServers() ABSL_LOCKS_EXCLUDED(mu_);
  void ReadServers() ABSL_LOCKS_EXCLUDED(mu_);

  // Constant after construction.
  const v1::FeedSpec spec_;
  const FeedClientOptions options_;
  const ServerList list_;
  const MonotonicClock clock_;
  // This client's number. It decides which servers are used first, and is in reports to servers.
  const uint64_t client_;

  mutable Mutex mu_;
  CondVar keeper_wakes_;
  CondVar trainer_wakes_;
  CondVar watcher_wakes_;
  StepSchedule schedule_ ABSL_GUARDED_BY(mu_);
  ScheduleActions actions_ ABSL_GUARDED_BY(mu_);  // Kept, so that a step allocates nothing.
  FeedClientStats stats_ ABSL_GUARDED_BY(mu_);
  FeedLog log_ ABSL_GUARDED_BY(mu_);  // The keeper writes its lines.
  FeedServers servers_ ABSL_GUARDED_BY(mu_);
  LaneTable lanes_ ABSL_GUARDED_BY(mu_);
  TrainerEnd trainer_ ABSL_GUARDED_BY(mu_);
  TrainerReports reports_ ABSL_GUARDED_BY(mu_);
  absl::Status list_error_ ABSL_GUARDED_BY(mu_);  // From the last attempt to read the list.
  KeeperWork work_ ABSL_GUARDED_BY(mu_);
  // Set by Start().
  std::shared_ptr<const Order> order_ ABSL_GUARDED_BY(mu_);
  std::shared_ptr<StepShelf> shelf_ ABSL_GUARDED_BY(mu_);
  bool stopping_ ABSL_GUARDED_BY(mu_) = false;
  std::atomic<int64_t> examples_taken_ = 0;  // Changed without the lock.

  // One thread each.
  std::unique_ptr<WorkerPool> keeper_;
  std::unique_ptr<WorkerPool> watcher_;
};

}  // namespace systole

#endif  // SYSTOLE_CLIENT_LANES_FEED_LANES_H_
