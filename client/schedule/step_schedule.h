// Decides which server is asked for which steps, and when. A StepSchedule schedules one feed. It is
// a pure state machine: it has no thread, no clock and no connection. Events go in with the time at
// which they happened. Actions come out, and the caller carries them out.
//
//   servers 0, 1, ..   The feed uses a few of them. It asks such a server what the feed yields, and
//                      gives it steps once the server has answered
//   lanes              A lane has the steps begin, begin + stride, .., below its end. At any time a
//                      lane has one server, and at most one stream
//   plan               n lanes for n serving servers: lane j has the steps cut + j, cut + j + n, ..
//                      The lane of a slow server is divided: other servers get a part of its steps
//   window             the next steps, as many as the client has room for
//
// When the serving servers change, there is a new plan. It begins at the first step beyond the
// window, because no lane has received a byte of this step or a later one. The old plan's lanes end
// before this step. If a lane's server fails or lags, the lane goes on with another server, at the
// lane's first incomplete step. If the trainer waits for a step whose lane is halfway to being
// late, the step is hedged: a lane of this one step requests a second copy.
//
// ServerChoice chooses the servers to use, and ServerRoster has the state of the servers in use.
//
// Thread-compatible.
#ifndef SYSTOLE_CLIENT_SCHEDULE_STEP_SCHEDULE_H_
#define SYSTOLE_CLIENT_SCHEDULE_STEP_SCHEDULE_H_

#include <algorithm>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <utility>
#include <variant>
#include <vector>

#include "absl/time/time.h"
#include "client/schedule/arrived_steps.h"
#include "client/schedule/failure.h"
#include "client/schedule/lane_shares.h"
#include "client/schedule/running_clock.h"
#include "client/schedule/schedule_events.h"
#include "client/schedule/schedule_lane.h"
#include "client/schedule/server_choice.h"
#include "client/schedule/server_roster.h"
#include "client/schedule/step_pace.h"

namespace systole {

class StepSchedule {
 public:
  explicit StepSchedule(const ScheduleOptions& options);

  // The transition: takes in what happened at `now` and appends what to do to `actions`. `now` is
  // the time since some fixed moment and never goes back.
  void Handle(const ScheduleEvent& event, absl::Duration now, ScheduleActions& actions);

  // When Handle(Tick) is due. If the Tick comes much later, the process did not run in between (it
  // was stopped, or the machine slept). All deadlines are then put off by the length of that pause.
  absl::Duration wake_at() const { return clock_.wake_at(); }

  const ScheduleCounts& counts() const { return counts_; }
  int64_t next_step() const { return steps_.next(); }
  // How many servers serve the feed now.
  int64_t servers_in_use() const { return static_cast<int64_t>(servers_.AllServing().size()); }
  // The longest wait that holds up the trainer now, or will hold it up soon.
  std::optional<ScheduleWaiting> Waiting(absl::Duration now) const;

 private:
  using Lane = ScheduleLane;
  using Seeking = Lane::Seeking;
  using Streaming = Lane::Streaming;
  using Stopping = Lane::Stopping;

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
  void On(const FeedStopped& event);
  void On(const Tick& event);

  void Do(ScheduleAction action) { actions_->push_back(std::move(action)); }
  bool IsOver(const Lane& lane) const { return lane.step >= std::min(lane.end, limit_); }
  // Whether the lane's server should be sending a step now: the lane is not over, its next step is
  // in the window, and its stream, if it has one, is neither paused nor cancelled.
  bool IsAwaited(const Lane& lane) const;
  // The serving server, other than `avoided`, with the lowest StreamsOf().
  std::optional<int> ChooseServer(std::optional<int> avoided = std::nullopt) const;
  // The number of the server's streams: those that are open, and those that were cancelled but
  // whose end was not seen yet.
  int64_t StreamsOf(int server) const;
  void AddLane(int64_t step, int64_t stride, int64_t end, int server, bool hedge);
  // Makes a plan for the servers that are expected now, with their shares (lane_shares.h). Does
  // nothing if the present plan is the same.
  void Plan();
  // Does all that is due now, and sets due_.
  void Advance();
  // Adds the time from `since`, the time of the last event, until now to the awaited time of each
  // server of the plan that has a lane with IsAwaited().
  void CountAwaited(absl::Duration since);
  // Whether the steps that the trainer takes are those of the present plan.
  bool IsSettled() const { return steps_.next() >= cut_; }
  // How many second copies of steps are on the way.
  int64_t Copies() const;
  // Advances one lane. Returns whether the lane is closed now.
  bool AdvanceLane(int number, Lane& lane);
  // Whether the lane may open its stream now. A server fills the window with at most
  // kStreamsAtATime streams, and one more for a lane whose step comes before the steps of these
  // streams.
  bool HasTurn(const Lane& lane) const;
  // Opens the lane's stream if possible. If the lane's server is not expected, another server that
  // serves takes its place first.
  void Seek(int number, Lane& lane);
  void Stop(int number, Lane& lane, bool silent = false);
  void LookForSilence();
  void LookForLateness();
  void Relieve(int number, Lane& lane);
  void Hedge();
  void GiveUpIfOverdue();
  void Lost(Lane& lane);
  // If a hedge has the step, returns true, and the step belongs to the hedge alone from now on.
  bool LeaveToHedge(int64_t step);
  // Advance() must run again at the running time `at` or earlier.
  void Due(absl::Duration at) { due_ = std::min(due_, at); }
  void EndFeed(int64_t step, std::optional<FailureKind> failure, absl::Duration waited);
  absl::Duration limit_of_wait() const;

  const ScheduleOptions options_;
  RunningClock clock_;
  ServerChoice choice_;
  ServerRoster servers_;
  LaneShares shares_;
  ArrivedSteps steps_;
  StepPace pace_;
  ScheduleActions* actions_ = nullptr;         // The output of the Handle() under way.
  absl::Duration now_ = absl::ZeroDuration();  // Running time.
  absl::Duration due_ = absl::ZeroDuration();
  bool stopped_ = false;
  std::map<int, Lane> lanes_;
  int next_lane_ = 0;
  std::vector<LaneShare> plan_;
  int64_t cut_ = 0;  // The plan's first step.
  bool started_ = false;
  int64_t limit_ = std::numeric_limits<int64_t>::max();
  bool wanted_ = false;
  absl::Duration wanted_since_ = absl::ZeroDuration();
  absl::Duration arrived_at_ = absl::ZeroDuration();  // When the last step came.
  int64_t arrived_ = 0;
  int64_t hedged_ = -1;  // The last step that was hedged.
  ScheduleCounts counts_;
};

}  // namespace systole

#endif  // SYSTOLE_CLIENT_SCHEDULE_STEP_SCHEDULE_H_
