// StepSchedule: what follows from the state and from time.
#include <algorithm>

#include "client/schedule/step_schedule.h"
#include "core/status/check.h"

namespace systole {
namespace {

// How often time is looked at although nothing is due.
constexpr absl::Duration kLongestSleep = absl::Seconds(1);

// A lane is late when its step takes so much longer than the average step.
constexpr absl::Duration kLateBy = absl::Seconds(1);
// Each lane that was moved since the last step arrived doubles the time before the next one is, so
// that a system that is slow as a whole is left to finish a step.
constexpr int kMostDoublings = 6;

// Streams of one server that fill the window at a time: one lane's, and the next one's first steps.
// All share a connection. Where that is cut again and again, many would each lose a part of a step
// every time, and none would ever complete one.
constexpr int kStreamsAtATime = 2;

// While others serve, a server that lagged or leaves is asked again after pauses that double.
constexpr absl::Duration kFirstLagPause = absl::Seconds(1);
constexpr absl::Duration kLongestLagPause = absl::Seconds(60);

// `pause`, doubled `times` times, at most `longest`.
absl::Duration Doubled(absl::Duration pause, int times, absl::Duration longest) {
  return std::min(pause * (int64_t{1} << std::clamp(times, 0, 20)), longest);
}

}  // namespace

void StepSchedule::Advance() {
  due_ = now_ + kLongestSleep;
  if (!stopped_) {
    GiveUpIfOverdue();
    LookForSilence();
    LookForLateness();
  }
  for (auto it = servers_.begin(); it != servers_.end();) {
    it = AdvanceServer(it->first, it->second) ? servers_.erase(it) : std::next(it);
  }
  if (!stopped_) {
    Plan();
    Hedge();
  }
  for (auto it = lanes_.begin(); it != lanes_.end();) {
    it = AdvanceLane(it->first, it->second) ? lanes_.erase(it) : std::next(it);
  }
}

void StepSchedule::Ask(int number, Server& server) {
  server.asked = true;
  Do(AskServer{.server = number});
}

absl::Duration StepSchedule::Jittered(absl::Duration pause) {
  return pause * (1 + 0.25 * static_cast<double>(rng_.UniformFloat()));
}

absl::Duration StepSchedule::LagPause(const Server& server) {
  return Jittered(Doubled(kFirstLagPause, server.lags - 1, kLongestLagPause));
}

void StepSchedule::FailServer(Server& server, const Failure& failure) {
  ++server.failures;
  server.steps = 0;
  if (!server.failing_since.has_value()) server.failing_since = now_;
  absl::Duration pause = absl::ZeroDuration();
  if (server.failures > 1) {
    pause = Jittered(Doubled(options_.backoff, server.failures - 2, options_.max_backoff));
  }
  pause = std::max(pause, Jittered(failure.pushback));
  absl::Duration pause_if_others = pause;
  if (failure.kind == FailureKind::kLeaving) {
    ++server.lags;
    pause_if_others = std::max(pause, LagPause(server));
  }
  server.state = Resting{.since = now_, .pause = pause, .pause_if_others = pause_if_others};
}

bool StepSchedule::AdvanceServer(int number, Server& server) {
  if (server.left) {
    const bool used = std::any_of(lanes_.begin(), lanes_.end(), [number](const auto& entry) {
      return entry.second.server == number && !std::holds_alternative<Seeking>(entry.second.state);
    });
    if (used || server.asked) return false;
    Do(ForgetServer{.server = number});
    return true;
  }
  const Resting* const resting = std::get_if<Resting>(&server.state);
  if (resting == nullptr || stopped_ || server.asked || next_ >= limit_) return false;
  const absl::Duration due =
      resting->since + (AnotherServes(number) ? resting->pause_if_others : resting->pause);
  if (now_ < due) {
    Due(due);
    return false;
  }
  server.state = Asking{.first = false};
  ++counts_.probes;
  Ask(number, server);
  return false;
}

void StepSchedule::Plan() {
  if (!started_) return;
  std::vector<int> expected;
  for (const auto& [number, server] : servers_) {
    if (server.is_expected()) expected.push_back(number);
  }
  // With nobody there, the plan waits for whoever comes.
  if (expected.empty() || expected == plan_) return;
  const int64_t cut = plan_.empty() ? next_ : next_ + window_;
  plan_ = std::move(expected);
  for (auto& [number, lane] : lanes_) lane.end = std::min(lane.end, cut);
  const int64_t stride = static_cast<int64_t>(plan_.size());
  for (int64_t j = 0; j < stride && cut + j < limit_; ++j) {
    AddLane(cut + j, stride, std::numeric_limits<int64_t>::max(), plan_[static_cast<size_t>(j)],
            /*hedge=*/false);
  }
}

void StepSchedule::AddLane(int64_t step, int64_t stride, int64_t end, int server, bool hedge) {
  Lane& lane = lanes_[next_lane_++];
  lane.step = step;
  lane.stride = stride;
  lane.end = end;
  lane.hedge = lane.extra = hedge;
  lane.since = now_;
  lane.server = server;
}

bool StepSchedule::AdvanceLane(int number, Lane& lane) {
  const bool unwanted = stopped_ || IsOver(lane) || (lane.extra && IsDone(lane.step));
  if (std::holds_alternative<Stopping>(lane.state)) return false;
  if (Streaming* const stream = std::get_if<Streaming>(&lane.state)) {
    if (unwanted) {
      if (stopped_ || lane.step < stream->end) Stop(number, lane);
    } else if (stream->paused && InWindow(lane.step)) {
      stream->paused = false;
      lane.since = now_;
      lane.heard_at = now_;
      Do(ResumeStream{.lane = number});
    }
    return false;
  }
  if (!unwanted) {
    while (!IsOver(lane) && (IsDone(lane.step) || (!lane.hedge && LeaveToHedge(lane.step)))) {
      lane.step += lane.stride;
    }
    if (!IsOver(lane)) {
      Seek(number, lane);
      return false;
    }
  }
  if (lane.hedge && !lane.won) ++counts_.hedges_lost;
  if (lane.hedge && lane.won) ++counts_.hedges_won;
  Do(CloseLane{.lane = number});
  return true;
}

void StepSchedule::Seek(int number, Lane& lane) {
  if (!InWindow(lane.step)) {
    lane.since = now_;
    return;
  }
  const Server* const own = Find(lane.server);
  if (own == nullptr || !own->is_expected()) {
    const std::optional<int> other = ChooseServer();
    if (!other.has_value()) return;
    lane.server = *other;
  }
  if (!servers_.at(lane.server).serves()) return;
  if (!lane.hedge && !HasTurn(lane)) {
    lane.since = now_;  // It waits for lanes, not for the server.
    return;
  }
  const int64_t end = std::min(lane.end, limit_);
  const int64_t count =
      std::min((end - lane.step + lane.stride - 1) / lane.stride, kStepsPerStream);
  lane.state = Streaming{.end = lane.step + count * lane.stride};
  lane.since = now_;
  lane.heard_at = now_;
  Do(OpenStream{.lane = number,
                .server = lane.server,
                .first_step = lane.step,
                .count = count,
                .stride = lane.stride});
}

bool StepSchedule::HasTurn(const Lane& lane) const {
  int64_t first = std::numeric_limits<int64_t>::max();
  int streams = 0;
  for (const auto& [number, other] : lanes_) {
    const Streaming* const stream = std::get_if<Streaming>(&other.state);
    if (stream == nullptr || stream->paused || other.hedge || other.server != lane.server) continue;
    ++streams;
    first = std::min(first, other.step);
  }
  return streams < kStreamsAtATime || lane.step < first;
}

void StepSchedule::Stop(int number, Lane& lane, bool silent) {
  const Streaming* const stream = std::get_if<Streaming>(&lane.state);
  if (stream == nullptr) return;
  const bool paused = stream->paused;
  lane.state = Stopping();
  Do(StopStream{.lane = number, .paused = paused, .silent = silent});
}

bool StepSchedule::IsAwaited(const Lane& lane) const {
  if (IsOver(lane) || !InWindow(lane.step) || std::holds_alternative<Stopping>(lane.state)) {
    return false;
  }
  const Streaming* const stream = std::get_if<Streaming>(&lane.state);
  return stream == nullptr || !stream->paused;
}

void StepSchedule::LookForSilence() {
  for (auto& [number, lane] : lanes_) {
    const Streaming* const stream = std::get_if<Streaming>(&lane.state);
    if (stream == nullptr || stream->paused) continue;
    const absl::Duration due = lane.heard_at + options_.silence_timeout;
    if (now_ < due) {
      Due(due);
      continue;
    }
    const auto server = servers_.find(lane.server);
    if (server != servers_.end()) FailServer(server->second, {.kind = FailureKind::kLost});
    Lost(lane);
    ++counts_.retries;
    Stop(number, lane, /*silent=*/true);
  }
}

void StepSchedule::Lost(Lane& lane) {
  if (lane.lost.has_value()) return;
  lane.lost = lane.server;
  lane.failing_since = now_;
}

absl::Duration StepSchedule::late_after() const {
  if (!pace_.has_value()) return absl::InfiniteDuration();
  return (kLateBy + 2 * *pace_) * (int64_t{1} << std::min(moves_, kMostDoublings));
}

void StepSchedule::LookForLateness() {
  const absl::Duration late_after = this->late_after();
  for (auto& [number, lane] : lanes_) {
    if (lane.extra || !IsAwaited(lane)) continue;
    const absl::Duration due = lane.since + late_after;
    if (now_ < due) {
      Due(due);
    } else if (AnotherServes(lane.server)) {
      Relieve(number, lane);
      return;  // One at a time: the next is measured anew.
    }
  }
}

void StepSchedule::Relieve(int number, Lane& lane) {
  ++moves_;
  const int64_t end = std::min({lane.end, limit_, next_ + window_});
  for (int64_t step = lane.step; step < end; step += lane.stride) {
    if (!IsDone(step)) ++counts_.relieved_steps;
  }
  if (const auto found = servers_.find(lane.server); found != servers_.end()) {
    Server& server = found->second;
    if (Asking* const asking = std::get_if<Asking>(&server.state)) {
      asking->first = false;  // Still asked, but nothing waits for its answer.
    } else if (server.serves()) {
      ++server.lags;
      server.steps = 0;
      server.state = Resting{
          .since = now_, .pause = absl::ZeroDuration(), .pause_if_others = LagPause(server)};
    }
  }
  Do(StepLate{.step = lane.step, .server = lane.server, .second = std::nullopt});
  Stop(number, lane);
}

void StepSchedule::Hedge() {
  if (!wanted_ || IsDone(next_) || next_ >= limit_ || hedged_ == next_) return;
  const double allowed = options_.hedge_fraction * static_cast<double>(arrived_) + kHedgeBurst;
  if (options_.hedge_fraction <= 0 || static_cast<double>(counts_.hedges + 1) > allowed) return;
  const auto owner = std::find_if(lanes_.begin(), lanes_.end(), [this](const auto& entry) {
    const Lane& lane = entry.second;
    return !lane.extra && lane.step <= next_ && next_ < lane.end &&
           (next_ - lane.step) % lane.stride == 0;
  });
  if (owner == lanes_.end()) return;
  // Before the lane is moved: the second copy costs one step, moving costs what is on the way.
  const absl::Duration due = owner->second.since + late_after() / 2;
  if (now_ < due) {
    Due(due);
    return;
  }
  const std::optional<int> other = ChooseServer(owner->second.server);
  if (!other.has_value()) return;
  ++counts_.hedges;
  hedged_ = next_;
  Do(StepLate{.step = next_, .server = owner->second.server, .second = other});
  AddLane(next_, /*stride=*/1, next_ + 1, *other, /*hedge=*/true);
}

bool StepSchedule::LeaveToHedge(int64_t step) {
  for (auto& [number, lane] : lanes_) {
    if (!lane.extra || lane.step != step || IsOver(lane)) continue;
    lane.extra = false;
    return true;
  }
  return false;
}

absl::Duration StepSchedule::limit_of_wait() const {
  // A server that answered and has a stream open is there, however long its first step takes. One
  // that sends nothing loses the stream by silence_timeout.
  const bool comes =
      arrived_ > 0 || std::any_of(lanes_.begin(), lanes_.end(), [](const auto& lane) {
        return std::holds_alternative<Streaming>(lane.second.state);
      });
  return comes ? options_.retry_for : options_.connect_timeout;
}

void StepSchedule::GiveUpIfOverdue() {
  if (!started_ || !wanted_ || IsDone(next_) || next_ >= limit_) return;
  absl::Duration since = wanted_since_;
  if (arrived_ > 0) since = std::max(since, arrived_at_);
  const absl::Duration limit = limit_of_wait();
  if (now_ < since + limit) {
    Due(since + limit);
    return;
  }
  EndFeed(next_, std::nullopt, limit);
}

}  // namespace systole
