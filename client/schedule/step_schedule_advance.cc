// StepSchedule: what follows from the state and from time.
#include <algorithm>
#include <iterator>

#include "client/schedule/step_schedule.h"

namespace systole {
namespace {

// The longest time between two looks at the clock, even if nothing is due.
constexpr absl::Duration kLongestSleep = absl::Seconds(1);

// A lane opens a stream only while fewer than this many streams of its server run, not counting
// paused streams and hedges. Usually these are the stream of one lane, and the stream of the next
// lane, which fetches its first steps. A lane whose step comes before the steps of all these
// streams opens a stream, too. All streams of a server share a connection. If many streams ran and
// the connection were cut again and again, each stream would lose part of a step every time, and
// none would ever complete a step.
constexpr int kStreamsAtATime = 2;

}  // namespace

void StepSchedule::Advance() {
  due_ = now_ + kLongestSleep;
  if (!stopped_) {
    GiveUpIfOverdue();
    LookForSilence();
    LookForLateness();
  }
  if (!stopped_ && steps_.next() < limit_) {
    Due(choice_.Advance(now_, servers_, *actions_));
  }
  const ServerRoster::Advanced advanced = servers_.Advance(
      now_, /*asks=*/!stopped_ && steps_.next() < limit_,
      [this](int number) { return StreamsOf(number) > 0; }, *actions_);
  for (const int server : advanced.released) choice_.GiveBack(server, now_);
  counts_.probes += advanced.probes;
  Due(advanced.due);
  if (!stopped_) {
    Plan();
    Hedge();
  }
  for (auto it = lanes_.begin(); it != lanes_.end();) {
    it = AdvanceLane(it->first, it->second) ? lanes_.erase(it) : std::next(it);
  }
}

void StepSchedule::Plan() {
  if (!started_) return;
  const std::vector<int> expected = servers_.Expected();
  std::vector<LaneShare> plan = shares_.SharesOf(expected);
  // If no server is expected, the next plan waits until one comes.
  if (expected.empty() || plan == plan_) return;
  cut_ = plan_.empty() ? steps_.next() : steps_.next() + steps_.window();
  for (auto& [number, lane] : lanes_) lane.end = std::min(lane.end, cut_);
  const std::vector<int> helpers = shares_.Helpers(plan);
  plan_ = std::move(plan);
  shares_.Begin(plan_);
  const int64_t size = static_cast<int64_t>(plan_.size());
  size_t helped = 0;
  for (int64_t j = 0; j < size; ++j) {
    const LaneShare& share = plan_[static_cast<size_t>(j)];
    for (int64_t part = 0; part < share.every; ++part) {
      const int server = part == 0 ? share.server : helpers[helped++ % helpers.size()];
      const int64_t step = cut_ + j + part * size;
      if (step >= limit_) continue;
      AddLane(step, size * share.every, std::numeric_limits<int64_t>::max(), server,
              /*hedge=*/false);
    }
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
  const bool unwanted = stopped_ || IsOver(lane) || (lane.extra && steps_.Has(lane.step));
  if (std::holds_alternative<Stopping>(lane.state)) return false;
  if (Streaming* const stream = std::get_if<Streaming>(&lane.state)) {
    if (unwanted) {
      if (stopped_ || lane.step < stream->end) Stop(number, lane);
    } else if (stream->paused && steps_.InWindow(lane.step)) {
      stream->paused = false;
      lane.since = now_;
      lane.heard_at = now_;
      Do(ResumeStream{.lane = number});
    }
    return false;
  }
  if (!unwanted) {
    while (!IsOver(lane) && (steps_.Has(lane.step) || (!lane.hedge && LeaveToHedge(lane.step)))) {
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
  if (!steps_.InWindow(lane.step)) {
    lane.since = now_;
    return;
  }
  if (!servers_.IsExpected(lane.server)) {
    const std::optional<int> other = ChooseServer();
    if (!other.has_value()) return;
    lane.server = *other;
  }
  if (!servers_.Serves(lane.server)) return;
  if (!lane.hedge && !HasTurn(lane)) {
    lane.since = now_;  // The lane waits for other lanes, not for the server.
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
  if (IsOver(lane) || !steps_.InWindow(lane.step) || std::holds_alternative<Stopping>(lane.state)) {
    return false;
  }
  const Streaming* const stream = std::get_if<Streaming>(&lane.state);
  return stream == nullptr || !stream->paused;
}

void StepSchedule::CountAwaited(absl::Duration since) {
  if (now_ <= since || plan_.size() < 2) return;
  for (const LaneShare& share : plan_) {
    const bool awaited = std::any_of(lanes_.begin(), lanes_.end(), [&](const auto& entry) {
      return entry.second.server == share.server && IsAwaited(entry.second);
    });
    if (awaited) shares_.Awaited(share.server, now_ - since);
  }
}

int64_t StepSchedule::Copies() const {
  return std::count_if(lanes_.begin(), lanes_.end(), [this](const auto& entry) {
    const Lane& lane = entry.second;
    return !std::holds_alternative<Seeking>(lane.state) && (lane.extra || steps_.Has(lane.step));
  });
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
    servers_.FellSilent(lane.server, now_);
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

void StepSchedule::LookForLateness() {
  const absl::Duration late_after = pace_.late_after();
  for (auto& [number, lane] : lanes_) {
    if (lane.extra || !IsAwaited(lane)) continue;
    const absl::Duration due = lane.since + late_after;
    if (now_ < due) {
      Due(due);
    } else if (servers_.AnotherServes(lane.server)) {
      Relieve(number, lane);
      return;  // One lane at a time: a move changes late_after().
    }
  }
}

void StepSchedule::Relieve(int number, Lane& lane) {
  pace_.Moved();
  const int64_t end = std::min({lane.end, limit_, steps_.next() + steps_.window()});
  for (int64_t step = lane.step; step < end; step += lane.stride) {
    if (!steps_.Has(step)) ++counts_.relieved_steps;
  }
  servers_.Lagged(lane.server, now_);
  Do(StepLate{.step = lane.step, .server = lane.server, .second = std::nullopt});
  Stop(number, lane);
}

void StepSchedule::Hedge() {
  if (!wanted_ || steps_.Has(steps_.next()) || steps_.next() >= limit_ || hedged_ == steps_.next())
    return;
  const double allowed = options_.hedge_fraction * static_cast<double>(arrived_) + kHedgeBurst;
  if (options_.hedge_fraction <= 0 || static_cast<double>(counts_.hedges + 1) > allowed ||
      Copies() >= kHedgeBurst) {
    return;
  }
  const auto owner = std::find_if(lanes_.begin(), lanes_.end(), [this](const auto& entry) {
    const Lane& lane = entry.second;
    return !lane.extra && lane.step <= steps_.next() && steps_.next() < lane.end &&
           (steps_.next() - lane.step) % lane.stride == 0;
  });
  if (owner == lanes_.end()) return;
  // A second copy of the step (a hedge) is tried before the lane is moved. The copy costs one step.
  // A move costs all steps that are on the way.
  const absl::Duration due = owner->second.since + pace_.late_after() / 2;
  if (now_ < due) {
    Due(due);
    return;
  }
  const std::optional<int> other = ChooseServer(owner->second.server);
  if (!other.has_value()) return;
  ++counts_.hedges;
  hedged_ = steps_.next();
  Do(StepLate{.step = steps_.next(), .server = owner->second.server, .second = other});
  AddLane(steps_.next(), /*stride=*/1, steps_.next() + 1, *other, /*hedge=*/true);
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
  // A server that answered and has a stream open is alive, however long its first step takes. A
  // server that sends nothing loses the stream after silence_timeout.
  const bool comes =
      arrived_ > 0 || std::any_of(lanes_.begin(), lanes_.end(), [](const auto& lane) {
        return std::holds_alternative<Streaming>(lane.second.state);
      });
  return comes ? options_.retry_for : options_.connect_timeout;
}

void StepSchedule::GiveUpIfOverdue() {
  if (!started_ || !wanted_ || steps_.Has(steps_.next()) || steps_.next() >= limit_) return;
  absl::Duration since = wanted_since_;
  if (arrived_ > 0) since = std::max(since, arrived_at_);
  const absl::Duration limit = limit_of_wait();
  if (now_ < since + limit) {
    Due(since + limit);
    return;
  }
  EndFeed(steps_.next(), std::nullopt, limit);
}

}  // namespace systole
