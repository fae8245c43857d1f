// StepSchedule: what each event changes. What follows from the new state, and from time, is in
// step_schedule_advance.cc.
#include "client/schedule/step_schedule.h"

#include "core/status/check.h"

namespace systole {

StepSchedule::StepSchedule(const ScheduleOptions& options)
    : options_(options), choice_(options), servers_(options) {}

void StepSchedule::Handle(const ScheduleEvent& event, absl::Duration now,
                          ScheduleActions& actions) {
  const absl::Duration last = now_;
  now_ = clock_.See(now);
  actions_ = &actions;
  CountAwaited(last);
  std::visit([this](const auto& what) { On(what); }, event);
  // A chunk changes only the time at which its server was last heard.
  if (!std::holds_alternative<ChunkArrived>(event)) {
    Advance();
    clock_.WakeAt(due_);
  }
  actions_ = nullptr;
}

void StepSchedule::On(const ServerJoined& event) {
  choice_.Add(event.server, event.rank);
  if (started_) ++counts_.membership_changes;
}

void StepSchedule::On(const ServerLeft& event) {
  if (!choice_.Remove(event.server)) return;
  if (!servers_.Leave(event.server)) Do(ForgetServer{.server = event.server});
  for (auto& [number, lane] : lanes_) {
    if (lane.server == event.server) Stop(number, lane);
  }
  if (started_) ++counts_.membership_changes;
}

void StepSchedule::On(const FeedStarted& event) {
  SYSTOLE_CHECK(!started_ && event.window > 0);
  started_ = true;
  steps_ = ArrivedSteps(event.first_step, event.window);
  limit_ = std::min(limit_, event.end_step);
  choice_.Begin(now_);
}

void StepSchedule::On(const Answered& event) {
  choice_.Answered(event.server, event.load, now_, servers_);
}

void StepSchedule::On(const AskFailed& event) {
  if (!servers_.AskFailed(event.server, event.failure, now_, /*matters=*/!stopped_)) return;
  ++counts_.retries;
  const FailureKind kind = event.failure.kind;
  // A server that garbles its answers again and again ends the feed only if there is no other
  // server.
  if (kind == FailureKind::kFinal ||
      (servers_.IsUseless(event.server) && !servers_.AnotherServes(event.server) &&
       !choice_.CanTake(now_))) {
    EndFeed(steps_.FirstMissing(), kind, absl::ZeroDuration());
  }
}

void StepSchedule::On(const ChunkArrived& event) {
  const auto found = lanes_.find(event.lane);
  if (found != lanes_.end()) found->second.heard_at = now_;
}

void StepSchedule::On(const StepArrived& event) {
  Lane& lane = lanes_.at(event.lane);
  Streaming* const stream = std::get_if<Streaming>(&lane.state);
  const int64_t step = lane.step;
  lane.step += lane.stride;
  const absl::Duration took = now_ - lane.since;
  lane.since = now_;
  lane.suspect = 0;
  lane.damaged = 0;
  lane.lost.reset();
  servers_.StepArrived(lane.server);
  if (!steps_.Has(step)) {
    steps_.Add(step);  // The step is in the window: a stream pauses before it leaves the window.
    lane.won = lane.hedge;
    ++arrived_;
    arrived_at_ = now_;
    pace_.Arrived(took);
    Do(DeliverStep{.lane = event.lane, .step = step});
  }
  // A stream that has sent its last step is not paused, because its status is still to be read.
  if (stream != nullptr && lane.step < stream->end && !IsOver(lane) &&
      !steps_.InWindow(lane.step)) {
    stream->paused = true;
    Do(PauseStream{.lane = event.lane});
  }
}

void StepSchedule::On(const StreamEnded& event) {
  Lane& lane = lanes_.at(event.lane);
  const bool was_stopped = std::holds_alternative<Stopping>(lane.state);
  lane.state = Seeking();
  lane.since = now_;
  // An extra lane requests its second copy only once, and reports no failure. If the step cannot be
  // had, the lane that owns the step reports the error.
  if (lane.extra) lane.end = lane.step;
  if (was_stopped || stopped_ || !event.failure.has_value()) return;
  const FailureKind kind = event.failure->kind;
  // Another process may listen at the address now. So the server must answer a question before it
  // is asked for more steps, even if this stream had already sent all of its steps. Streams that
  // shared a connection end together, and count as one failure of their server.
  servers_.StreamFailed(lane.server, *event.failure, now_);
  if (IsOver(lane)) return;
  Lost(lane);
  if (kind == FailureKind::kSuspect) ++lane.suspect;
  if (kind == FailureKind::kDamaged) ++lane.damaged;
  if (kind == FailureKind::kFinal || lane.suspect >= kMaxSuspectFailures ||
      lane.damaged >= kMaxDamagedFailures) {
    if (!steps_.Has(lane.step)) EndFeed(lane.step, kind, absl::ZeroDuration());
    return;
  }
  ++counts_.retries;
}

void StepSchedule::On(const StepWanted&) {
  if (wanted_) return;
  wanted_ = true;
  wanted_since_ = now_;
}

void StepSchedule::On(const StepTaken&) {
  const absl::Duration waited = wanted_ ? now_ - wanted_since_ : absl::ZeroDuration();
  wanted_ = false;
  steps_.Take();
  choice_.StepTaken(now_, waited, IsSettled(), servers_);
  shares_.StepTaken(now_, IsSettled());
}

void StepSchedule::On(const FeedStopped&) {
  stopped_ = true;
  for (auto& [number, lane] : lanes_) Stop(number, lane);
}

void StepSchedule::On(const Tick&) {}

std::optional<int> StepSchedule::ChooseServer(std::optional<int> avoided) const {
  return servers_.Choose([this](int number) { return StreamsOf(number); }, avoided);
}

int64_t StepSchedule::StreamsOf(int server) const {
  return std::count_if(lanes_.begin(), lanes_.end(), [server](const auto& entry) {
    return entry.second.server == server && !std::holds_alternative<Seeking>(entry.second.state);
  });
}

void StepSchedule::EndFeed(int64_t step, std::optional<FailureKind> failure,
                           absl::Duration waited) {
  if (step >= limit_) return;
  limit_ = step;
  Do(GiveUp{.step = step, .failure = failure, .waited = waited});
}

std::optional<ScheduleWaiting> StepSchedule::Waiting(absl::Duration now) const {
  std::optional<ScheduleWaiting> longest;
  if (stopped_) return longest;
  const absl::Duration running = clock_.At(now);
  const auto consider = [&longest](const ScheduleWaiting& waiting) {
    if (!longest.has_value() || waiting.waited > longest->waited) longest = waiting;
  };
  if (!started_) {
    if (limit_ <= steps_.next()) return longest;
    if (const std::optional<ServerRoster::Failing> failing = servers_.LongestFailing()) {
      consider({.lost = failing->number,
                .asking = failing->number,
                .waited = running - failing->since,
                .limit = options_.connect_timeout});
    }
    return longest;
  }
  for (const auto& [number, lane] : lanes_) {
    if (lane.extra || IsOver(lane)) continue;
    const bool known = servers_.Knows(lane.server);
    const int lost = lane.lost.value_or(lane.server);
    if (lane.lost.has_value() && servers_.Knows(lost)) {
      consider({.lost = lost,
                .asking = known ? lane.server : lost,
                .waited = running - lane.failing_since,
                .limit = limit_of_wait()});
    } else if (known && lane.step == steps_.next() && IsAwaited(lane)) {
      const bool streams = std::holds_alternative<Streaming>(lane.state);
      consider({.asking = lane.server,
                .waited = running - (streams ? lane.heard_at : lane.since),
                .limit = streams ? options_.silence_timeout : options_.connect_timeout});
    }
  }
  return longest;
}

}  // namespace systole
