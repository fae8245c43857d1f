// StepSchedule: what each event changes. What follows from it, and from time, is in
// step_schedule_advance.cc.
#include "client/schedule/step_schedule.h"

#include "core/status/check.h"

namespace systole {
namespace {

// A wake-up that comes later than this after its time was not held up by load.
constexpr absl::Duration kLatestWakeUp = absl::Seconds(2);

// How much the last step counts in the average of what a step takes.
constexpr int kPaceSteps = 8;

// After so many steps, a server's lags are forgotten.
constexpr int kStepsToTrust = 16;

}  // namespace

StepSchedule::StepSchedule(const ScheduleOptions& options)
    : options_(options), rng_(options.seed, /*epoch=*/0, /*record=*/0, /*purpose=*/0) {}

void StepSchedule::Handle(const ScheduleEvent& event, absl::Duration now,
                          ScheduleActions& actions) {
  now_ = RunningTime(now);
  actions_ = &actions;
  std::visit([this](const auto& what) { On(what); }, event);
  // A chunk changes nothing but when its server was last heard.
  if (!std::holds_alternative<ChunkArrived>(event)) {
    Advance();
    wake_at_ = due_ + skipped_;
  }
  actions_ = nullptr;
}

absl::Duration StepSchedule::RunningTime(absl::Duration now) {
  if (wake_at_ < now - kLatestWakeUp) {
    skipped_ += now - seen_at_;
    wake_at_ = now;
  }
  seen_at_ = now;
  return now - skipped_;
}

void StepSchedule::On(const ServerJoined& event) {
  Server& server = servers_[event.server];
  server.state = Asking{.first = true};
  Ask(event.server, server);
  if (started_) ++counts_.membership_changes;
}

void StepSchedule::On(const ServerLeft& event) {
  const auto found = servers_.find(event.server);
  if (found == servers_.end()) return;
  found->second.left = true;
  for (auto& [number, lane] : lanes_) {
    if (lane.server == event.server) Stop(number, lane);
  }
  if (started_) ++counts_.membership_changes;
}

void StepSchedule::On(const FeedStarted& event) {
  SYSTOLE_CHECK(!started_ && event.window > 0);
  started_ = true;
  next_ = event.first_step;
  limit_ = std::min(limit_, event.end_step);
  window_ = event.window;
}

void StepSchedule::On(const Answered& event) {
  const auto found = servers_.find(event.server);
  if (found == servers_.end()) return;
  Server& server = found->second;
  server.asked = false;
  server.suspect = 0;
  server.damaged = 0;
  if (std::holds_alternative<Asking>(server.state)) {
    server.state = Serving();
    server.failing_since.reset();
  }
}

void StepSchedule::On(const AskFailed& event) {
  const auto found = servers_.find(event.server);
  if (found == servers_.end()) return;
  Server& server = found->second;
  server.asked = false;
  if (stopped_ || server.left) return;
  if (std::holds_alternative<Resting>(server.state)) return;  // It failed in between.
  ++counts_.retries;
  FailServer(server, event.failure);
  const FailureKind kind = event.failure.kind;
  if (kind == FailureKind::kSuspect) ++server.suspect;
  if (kind == FailureKind::kDamaged) ++server.damaged;
  const bool no_use =
      server.suspect >= kMaxSuspectFailures || server.damaged >= kMaxDamagedFailures;
  // While others serve, one that only ever garbles its answers does no harm.
  if (kind == FailureKind::kFinal || (no_use && !AnotherServes(event.server))) {
    EndFeed(FirstMissingStep(), kind, absl::ZeroDuration());
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
  if (const auto server = servers_.find(lane.server); server != servers_.end()) {
    server->second.failures = 0;
    if (++server->second.steps >= kStepsToTrust) server->second.lags = 0;
  }
  if (!IsDone(step)) {
    const size_t place = static_cast<size_t>(step - next_);
    SYSTOLE_CHECK(step - next_ < window_);  // It is not read for before.
    if (place >= done_.size()) done_.resize(place + 1);
    done_[place] = true;
    lane.won = lane.hedge;
    ++arrived_;
    arrived_at_ = now_;
    moves_ = 0;
    pace_ = pace_.has_value() ? *pace_ + (took - *pace_) / kPaceSteps : took;
    Do(DeliverStep{.lane = event.lane, .step = step});
  }
  // After the last chunk there is still the stream's status to be read.
  if (stream != nullptr && lane.step < stream->end && !IsOver(lane) && !InWindow(lane.step)) {
    stream->paused = true;
    Do(PauseStream{.lane = event.lane});
  }
}

void StepSchedule::On(const StreamEnded& event) {
  Lane& lane = lanes_.at(event.lane);
  const bool was_stopped = std::holds_alternative<Stopping>(lane.state);
  lane.state = Seeking();
  lane.since = now_;
  // A second copy is asked for once. The lane whose step it is says what is wrong, if anything is.
  if (lane.extra) lane.end = lane.step;
  if (was_stopped || stopped_ || !event.failure.has_value()) return;
  const FailureKind kind = event.failure->kind;
  // Another process may listen there now: whoever it is has to answer before it gets steps, also if
  // the stream had sent all. Streams that shared a connection end together, and that is one failure
  // of their server.
  if (const auto server = servers_.find(lane.server);
      server != servers_.end() && server->second.serves()) {
    FailServer(server->second, *event.failure);
  }
  if (IsOver(lane)) return;
  Lost(lane);
  if (kind == FailureKind::kSuspect) ++lane.suspect;
  if (kind == FailureKind::kDamaged) ++lane.damaged;
  if (kind == FailureKind::kFinal || lane.suspect >= kMaxSuspectFailures ||
      lane.damaged >= kMaxDamagedFailures) {
    if (!IsDone(lane.step)) EndFeed(lane.step, kind, absl::ZeroDuration());
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
  SYSTOLE_CHECK(IsDone(next_));
  wanted_ = false;
  ++next_;
  done_.pop_front();
}

void StepSchedule::On(const FeedLimited& event) { limit_ = std::min(limit_, event.step); }

void StepSchedule::On(const FeedStopped&) {
  stopped_ = true;
  for (auto& [number, lane] : lanes_) Stop(number, lane);
}

void StepSchedule::On(const Tick&) {}

const StepSchedule::Server* StepSchedule::Find(int server) const {
  const auto found = servers_.find(server);
  return found == servers_.end() ? nullptr : &found->second;
}

bool StepSchedule::AnotherServes(int server) const {
  return std::any_of(servers_.begin(), servers_.end(), [server](const auto& entry) {
    return entry.first != server && entry.second.serves();
  });
}

std::optional<int> StepSchedule::ChooseServer(std::optional<int> avoided) const {
  std::optional<int> chosen;
  int64_t fewest = std::numeric_limits<int64_t>::max();
  for (const auto& [number, server] : servers_) {
    if (!server.serves() || number == avoided) continue;
    const int64_t lanes =
        std::count_if(lanes_.begin(), lanes_.end(), [number = number](const auto& entry) {
          return entry.second.server == number &&
                 !std::holds_alternative<Seeking>(entry.second.state);
        });
    if (lanes >= fewest) continue;
    chosen = number;
    fewest = lanes;
  }
  return chosen;
}

int64_t StepSchedule::FirstMissingStep() const {
  int64_t step = next_;
  while (IsDone(step)) ++step;
  return step;
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
  const absl::Duration running = now - skipped_;
  const auto consider = [&longest](const ScheduleWaiting& waiting) {
    if (!longest.has_value() || waiting.waited > longest->waited) longest = waiting;
  };
  if (!started_) {
    if (limit_ <= next_) return longest;
    for (const auto& [number, server] : servers_) {
      if (server.serves()) return std::nullopt;
      if (!server.failing_since.has_value()) continue;
      consider({.lost = number,
                .asking = number,
                .waited = running - *server.failing_since,
                .limit = options_.connect_timeout});
    }
    return longest;
  }
  for (const auto& [number, lane] : lanes_) {
    if (lane.extra || IsOver(lane)) continue;
    const Server* const server = Find(lane.server);
    const int lost = lane.lost.value_or(lane.server);
    if (lane.lost.has_value() && Find(lost) != nullptr) {
      consider({.lost = lost,
                .asking = server != nullptr ? lane.server : lost,
                .waited = running - lane.failing_since,
                .limit = limit_of_wait()});
    } else if (server != nullptr && lane.step == next_ && IsAwaited(lane)) {
      const bool streams = std::holds_alternative<Streaming>(lane.state);
      consider({.asking = lane.server,
                .waited = running - (streams ? lane.heard_at : lane.since),
                .limit = streams ? options_.silence_timeout : options_.connect_timeout});
    }
  }
  return longest;
}

}  // namespace systole
