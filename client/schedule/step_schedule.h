// Decides which server is asked for which steps, and when: the scheduling of a feed as a pure state
// machine. It has no thread, no clock and no connection. Events go in with the time at which they
// happened, actions come out for the caller to carry out.
//
//   servers 0, 1, ..   asked what the feed yields; only one that answered gets steps
//   lanes              each has the steps begin, begin + stride, .. below its end, one server and
//                      at most one stream at a time
//   plan               n lanes for n serving servers: lane j has the steps cut + j, cut + j + n, ..
//
// When the serving servers change there is a new plan. It holds from the first step that has no
// place in the window, of which nobody has received a byte; the lanes of the plan before end there.
// A lane whose server fails or lags goes on with another one, at its first incomplete step. A step
// that the trainer waits for is hedged: a lane of one step asks another server for a second copy.
//
//   server:  Asking -> Serving -> Resting (failed or late; asked again later) -> Asking ..
//   lane:    Seeking (a server) -> Streaming -> Stopping (cancelled, its end not seen) -> Seeking ..
//
// Thread-compatible.
#ifndef SYSTOLE_CLIENT_SCHEDULE_STEP_SCHEDULE_H_
#define SYSTOLE_CLIENT_SCHEDULE_STEP_SCHEDULE_H_

#include <algorithm>
#include <cstdint>
#include <deque>
#include <limits>
#include <map>
#include <optional>
#include <utility>
#include <variant>
#include <vector>

#include "absl/time/time.h"
#include "client/schedule/failure.h"
#include "core/random/counter_rng.h"

namespace systole {

// The most steps that one stream is asked for; then the lane opens a new one. So a server that
// wants to stop need not wait long.
inline constexpr int64_t kStepsPerStream = 1024;
// Hedges allowed beyond the fraction: the first late steps come before there are many others.
inline constexpr int64_t kHedgeBurst = 2;

struct ScheduleOptions {
  // How long the trainer waits for its first step while no server is making it, and then for each
  // step, without any step arriving, before the feed gives up.
  absl::Duration connect_timeout = absl::Seconds(10);
  absl::Duration retry_for = absl::Minutes(10);
  // A server that sends nothing for this long while a step is wanted counts as failed.
  absl::Duration silence_timeout = absl::Seconds(60);
  // A server that failed is asked again at once, and then after pauses that double from `backoff`
  // to `max_backoff`, each up to a quarter longer by chance.
  absl::Duration backoff = absl::Milliseconds(50);
  absl::Duration max_backoff = absl::Seconds(2);
  // Second copies asked for, as a fraction of the steps that arrived, and kHedgeBurst more. 0:
  // none.
  double hedge_fraction = 0.02;
  // Of the pauses' chance. Clients with different seeds do not come back together.
  uint64_t seed = 0;
};

// What has happened. Servers have numbers that are never used twice.
struct ServerJoined {
  int server;
};
struct ServerLeft {
  int server;
};
// What to fetch is known. `window`: the steps that have a place at a time.
struct FeedStarted {
  int64_t first_step;
  int64_t end_step;
  int64_t window;
};
// The question to a server was answered as it should, or failed.
struct Answered {
  int server;
};
struct AskFailed {
  int server;
  Failure failure;
};
// Bytes came on a lane's stream.
struct ChunkArrived {
  int lane;
};
// The step that the lane's stream is at is complete.
struct StepArrived {
  int lane;
};
// A lane's stream has ended: with a failure, or as it was asked to.
struct StreamEnded {
  int lane;
  std::optional<Failure> failure;
};
// The trainer waits for the next step; it has taken it.
struct StepWanted {};
struct StepTaken {};
// Steps from `step` on cannot be had, whatever is tried.
struct FeedLimited {
  int64_t step;
};
// Nobody wants anything any more: everything is cancelled.
struct FeedStopped {};
// Time has passed: due no later than wake_at().
struct Tick {};
using ScheduleEvent =
    std::variant<ServerJoined, ServerLeft, FeedStarted, Answered, AskFailed, ChunkArrived,
                 StepArrived, StreamEnded, StepWanted, StepTaken, FeedLimited, FeedStopped, Tick>;

// What to do.
// Ask what the feed yields there. The answer is an event.
struct AskServer {
  int server;
};
// A server that left has neither a stream nor a question any more.
struct ForgetServer {
  int server;
};
// Open a stream for `count` steps, `stride` apart. Its end is an event.
struct OpenStream {
  int lane;
  int server;
  int64_t first_step;
  int64_t count;
  int64_t stride;
};
// Cancel the stream. `paused`: no read is under way. `silent`: because the server has sent nothing
// for silence_timeout. Its end is an event.
struct StopStream {
  int lane;
  bool paused;
  bool silent = false;
};
// Do not read on after this step; read on.
struct PauseStream {
  int lane;
};
struct ResumeStream {
  int lane;
};
// The first copy of `step` is the lane's. Later ones are not delivered.
struct DeliverStep {
  int lane;
  int64_t step;
};
// The lane is over. Its stream has ended.
struct CloseLane {
  int lane;
};
// The feed ends before `step`. `failure`: what the event's failure was that is final; nullopt: no
// step came for `waited`.
struct GiveUp {
  int64_t step;
  std::optional<FailureKind> failure;
  absl::Duration waited;
};
// Only to be told: `server` is late with `step`. `second`: the server that is asked for it as well;
// nullopt: what `server` was to send now comes from others.
struct StepLate {
  int64_t step;
  int server;
  std::optional<int> second;
};
using ScheduleAction = std::variant<AskServer, ForgetServer, OpenStream, StopStream, PauseStream,
                                    ResumeStream, DeliverStep, CloseLane, GiveUp, StepLate>;
using ScheduleActions = std::vector<ScheduleAction>;

// Counted since the beginning.
struct ScheduleCounts {
  // Failed streams that were not the last word, so that the steps were asked for again.
  int64_t retries = 0;
  // Second copies asked for; those that came first, and those that did not.
  int64_t hedges = 0;
  int64_t hedges_won = 0;
  int64_t hedges_lost = 0;
  // Steps within the window that went to another server because theirs lagged.
  int64_t relieved_steps = 0;
  // Servers that joined or left after the feed's beginning.
  int64_t membership_changes = 0;
  // Questions to servers that had failed or lagged.
  int64_t probes = 0;
};

// What holds up a feed.
struct ScheduleWaiting {
  // The server that was lost or, without one, nullopt.
  std::optional<int> lost;
  int asking = 0;
  absl::Duration waited;
  absl::Duration limit;
};

class StepSchedule {
 public:
  explicit StepSchedule(const ScheduleOptions& options);

  // The transition: takes in what happened at `now` and appends what to do to `actions`. `now` is
  // the time since some fixed moment and never goes back.
  void Handle(const ScheduleEvent& event, absl::Duration now, ScheduleActions& actions);

  // When Handle(Tick) is due. If it comes much later, the process was not running in between (it
  // was stopped, or the machine slept): all deadlines move on by that time.
  absl::Duration wake_at() const { return wake_at_; }

  const ScheduleCounts& counts() const { return counts_; }
  int64_t next_step() const { return next_; }
  // The longest wait that holds up the trainer now or will soon.
  std::optional<ScheduleWaiting> Waiting(absl::Duration now) const;

 private:
  struct Asking {
    bool first;  // Never failed: steps are kept for it.
  };
  struct Serving {};
  struct Resting {
    absl::Duration since;
    absl::Duration pause;
    absl::Duration pause_if_others;  // The same, while another server serves.
  };
  using ServerState = std::variant<Asking, Serving, Resting>;
  struct Server {
    ServerState state;
    bool left = false;
    bool asked = false;  // A question is under way.
    int failures = 0;    // Since its last complete step.
    int lags = 0;        // Since it last sent kStepsToTrust steps in a row.
    int steps = 0;
    int suspect = 0;  // Failed questions in a row, by kind.
    int damaged = 0;
    std::optional<absl::Duration> failing_since;  // Until it answers.

    bool serves() const { return !left && std::holds_alternative<Serving>(state); }
    // Whether a plan counts on it.
    bool is_expected() const {
      const Asking* const asking = std::get_if<Asking>(&state);
      return serves() || (!left && asking != nullptr && asking->first);
    }
  };

  struct Seeking {};
  struct Streaming {
    int64_t end;  // The first of the lane's steps that was not asked for.
    bool paused = false;
  };
  struct Stopping {};
  using LaneState = std::variant<Seeking, Streaming, Stopping>;
  struct Lane {
    int64_t step;  // The first one that is not complete.
    int64_t stride;
    int64_t end;
    int server;            // The one it uses, or used last.
    bool hedge = false;    // Made for one step that was late elsewhere.
    bool extra = false;    // A hedge whose step another lane has, too.
    bool won = false;      // A hedge whose copy came first.
    absl::Duration since;  // When it began to wait for its step, or for a server to get it from.
    absl::Duration heard_at;
    int suspect = 0;  // Failures since the last complete step, by kind.
    int damaged = 0;
    std::optional<int> lost;  // The server that failed first since then, and when.
    absl::Duration failing_since;
    LaneState state = Seeking();
  };

  // One for each event.
  void On(const ServerJoined& event);
  void On(const ServerLeft& event);
  void On(const FeedStarted& event);
  void On(const Answered& event);
  void On(const AskFailed& event);
  void On(const ChunkArrived& event);
  void On(const StepArrived& event);
  void On(const StreamEnded& event);
  void On(const StepWanted& event);
  void On(const StepTaken& event);
  void On(const FeedLimited& event);
  void On(const FeedStopped& event);
  void On(const Tick& event);

  // The time without that in which the process was not running.
  absl::Duration RunningTime(absl::Duration now);
  void Do(ScheduleAction action) { actions_->push_back(std::move(action)); }
  bool InWindow(int64_t step) const { return step < next_ + window_; }
  bool IsDone(int64_t step) const {
    return step < next_ || (step - next_ < static_cast<int64_t>(done_.size()) &&
                            done_[static_cast<size_t>(step - next_)]);
  }
  bool IsOver(const Lane& lane) const { return lane.step >= std::min(lane.end, limit_); }
  // Whether the lane's next step is awaited from its server now.
  bool IsAwaited(const Lane& lane) const;
  bool AnotherServes(int server) const;
  const Server* Find(int server) const;
  // The serving server with the fewest lanes, but not `avoided`.
  std::optional<int> ChooseServer(std::optional<int> avoided = std::nullopt) const;
  void Ask(int number, Server& server);
  // `pause` and up to a quarter more.
  absl::Duration Jittered(absl::Duration pause);
  absl::Duration LagPause(const Server& server);
  void FailServer(Server& server, const Failure& failure);
  void AddLane(int64_t step, int64_t stride, int64_t end, int server, bool hedge);
  // Makes a plan for the servers that are expected now, unless it is the plan already.
  void Plan();
  // Ends what is over, opens what can be opened, asks whom it is time to ask.
  void Advance();
  // Whether the server is forgotten.
  bool AdvanceServer(int number, Server& server);
  // Whether the lane is closed.
  bool AdvanceLane(int number, Lane& lane);
  // Whether the lane may open its stream now, besides those that its server has under way. The lane
  // with the first missing step always may.
  bool HasTurn(const Lane& lane) const;
  // Gives the lane a server and opens its stream, if there is one.
  void Seek(int number, Lane& lane);
  void Stop(int number, Lane& lane, bool silent = false);
  void LookForSilence();
  void LookForLateness();
  void Relieve(int number, Lane& lane);
  void Hedge();
  void GiveUpIfOverdue();
  int64_t FirstMissingStep() const;
  void Lost(Lane& lane);
  // Whether a hedge has the step; then it is that lane's alone from now on.
  bool LeaveToHedge(int64_t step);
  // Something is due at `at`, in running time.
  void Due(absl::Duration at) { due_ = std::min(due_, at); }
  void EndFeed(int64_t step, std::optional<FailureKind> failure, absl::Duration waited);
  absl::Duration limit_of_wait() const;
  // How long a lane may take for a step before it is late.
  absl::Duration late_after() const;

  const ScheduleOptions options_;
  CounterRng rng_;
  ScheduleActions* actions_ = nullptr;         // Of the Handle() under way.
  absl::Duration now_ = absl::ZeroDuration();  // Running time.
  absl::Duration skipped_ = absl::ZeroDuration();
  absl::Duration seen_at_ = absl::ZeroDuration();  // The last event, in the caller's time.
  absl::Duration due_ = absl::ZeroDuration();
  absl::Duration wake_at_ = absl::InfiniteDuration();  // The caller's time.
  bool stopped_ = false;
  std::map<int, Server> servers_;
  std::map<int, Lane> lanes_;
  int next_lane_ = 0;
  std::vector<int> plan_;
  bool started_ = false;
  int64_t next_ = 0;  // The step that the trainer takes next.
  int64_t window_ = 0;
  int64_t limit_ = std::numeric_limits<int64_t>::max();
  std::deque<bool> done_;  // Of the steps from next_ on.
  bool wanted_ = false;
  absl::Duration wanted_since_ = absl::ZeroDuration();
  absl::Duration arrived_at_ = absl::ZeroDuration();  // The last step.
  int64_t arrived_ = 0;
  std::optional<absl::Duration> pace_;  // How long a lane takes for a step, on average.
  int64_t hedged_ = -1;                 // The last step that was hedged.
  int moves_ = 0;                       // Since the last step that arrived.
  ScheduleCounts counts_;
};

}  // namespace systole

#endif  // SYSTOLE_CLIENT_SCHEDULE_STEP_SCHEDULE_H_
