#include "tests/client/schedule/simulation.h"

#include <algorithm>
#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"

namespace systole {
namespace {

// If server 0 never has trouble, no step may take longer than this. Server 0 takes at most 0.2 s
// for a step. But other servers may hang, one after the other, and the client needs time to notice
// each of them. A client that uses few servers at a time gets four times as long.
constexpr absl::Duration kLongestWait = absl::Seconds(30);
// A feed that takes longer than this counts as one that never ends.
constexpr absl::Duration kTooLong = absl::Hours(2);

}  // namespace

Simulation::Simulation(uint64_t seed, PlantedBug bug, int first_servers)
    : rng_(seed, /*epoch=*/1, /*record=*/0, /*purpose=*/7), bug_(std::move(bug)) {
  options_ = {.connect_timeout = absl::Seconds(20),
              .retry_for = absl::Seconds(40),
              .silence_timeout = absl::Seconds(10),
              .hedge_fraction = Chance(0.2) ? 0 : 0.02,
              .first_servers = first_servers,
              .seed = seed};
  has_healthy_ = !Chance(0.1);
  servers_.resize(static_cast<size_t>(rng_.UniformInt(1, 7)));
  for (World& server : servers_) {
    server.step_time = Between(absl::Milliseconds(1), absl::Milliseconds(100));
    if (Chance(0.1)) server.step_time *= 20;
    if (Chance(0.2)) server.failing = 0.02;
    server.joined = Chance(0.8);
  }
  servers_[0].joined = true;
  if (has_healthy_) {
    servers_[0].step_time = std::min(servers_[0].step_time, absl::Milliseconds(200));
    servers_[0].failing = 0;
  }
  first_ = rng_.UniformInt(0, 100);
  end_ = first_ + rng_.UniformInt(1, 300);
  window_ = rng_.UniformInt(2, 40);
  next_ = first_;
  schedule_.emplace(options_);
}

absl::Duration Simulation::Between(absl::Duration low, absl::Duration high) {
  return low + (high - low) * static_cast<double>(rng_.UniformFloat());
}

void Simulation::At(absl::Duration delay, Occurrence occurrence) {
  occurrence.at = now_ + delay;
  occurrence.order = order_++;
  queue_.push(std::move(occurrence));
}

void Simulation::Wrong(const std::string& what) {
  if (!result_.wrong.empty()) return;
  result_.wrong = absl::StrCat(what, " (at ", absl::FormatDuration(now_), ", step ", next_, " of ",
                               first_, " to ", end_, ", ", servers_.size(), " servers)");
}

SimulationResult Simulation::Run() {
  for (int i = 0; i < static_cast<int>(servers_.size()); ++i) {
    if (servers_[static_cast<size_t>(i)].joined) Join(i);
  }
  At(absl::ZeroDuration(), {.kind = Kind::kTick});
  At(Between(absl::ZeroDuration(), absl::Seconds(2)), {.kind = Kind::kTrouble});
  while (!over_ && result_.wrong.empty() && !queue_.empty()) {
    Occurrence what = queue_.top();
    queue_.pop();
    // While the client's process is stopped, servers go on. When the process continues, it handles
    // what happened in the meantime.
    now_ = std::max({now_, what.at, stopped_until_});
    if (now_ > kTooLong) Wrong("the feed does not end");
    Happen(what);
  }
  result_.counts = schedule_->counts();
  result_.took = now_;
  if (!result_.wrong.empty()) return result_;
  Handle(FeedStopped());
  while (!streams_.empty() && !queue_.empty()) {  // The ends of the cancelled streams.
    const Occurrence what = queue_.top();
    queue_.pop();
    now_ = std::max(now_, what.at);
    if (what.kind == Kind::kEnd) Happen(what);
  }
  if (!streams_.empty() || !lanes_.empty()) Wrong("after the end there are still lanes");
  return result_;
}

void Simulation::Happen(const Occurrence& what) {
  switch (what.kind) {
    case Kind::kTick:
      Handle(Tick());
      At(std::max(schedule_->wake_at() - now_, absl::Microseconds(1)), {.kind = Kind::kTick});
      if (schedule_->wake_at() > now_ + absl::Seconds(2)) Wrong("the schedule wakes up too late");
      return;
    case Kind::kAnswer: {
      World& server = servers_[static_cast<size_t>(what.subject)];
      if (now_ < server.hangs_until && !what.failure.has_value()) {
        const absl::Duration left = server.hangs_until - now_;
        Occurrence late = what;
        if (left > options_.connect_timeout) late.failure = Failure{};
        At(std::min(left, options_.connect_timeout), late);
        return;
      }
      server.asked = false;
      std::optional<Failure> failure = what.failure;
      if (!server.up) failure = Failure{};
      if (failure.has_value()) {
        Forget(what.subject);
        Handle(AskFailed{.server = what.subject, .failure = *failure});
        return;
      }
      server.known = true;
      Handle(Answered{.server = what.subject});
      if (!started_) {
        started_ = true;
        Handle(FeedStarted{.first_step = first_, .end_step = end_, .window = window_});
        Train();
      }
      return;
    }
    case Kind::kChunk:
    case Kind::kStep: {
      const auto found = streams_.find(what.subject);
      if (found == streams_.end() || found->second.generation != what.generation) return;
      Stream& stream = found->second;
      if (stream.stopping) return;
      const World& server = servers_[static_cast<size_t>(stream.server)];
      if (now_ < server.hangs_until) {
        At(server.hangs_until - now_, what);
        return;
      }
      Handle(ChunkArrived{.lane = what.subject});
      if (server.drips || what.kind == Kind::kChunk) {
        At(absl::Seconds(2), what);
        return;
      }
      if (Chance(server.failing)) {
        stream.stopping = true;
        At(absl::Milliseconds(1),
           {.kind = Kind::kEnd,
            .subject = what.subject,
            .generation = stream.generation,
            .failure = Failure{.pushback = Chance(0.2) ? absl::Seconds(1) : absl::ZeroDuration()}});
        return;
      }
      stream.step += stream.stride;
      stream.reading = false;
      Handle(StepArrived{.lane = what.subject});
      if (streams_.count(what.subject) > 0 && !streams_.at(what.subject).paused) {
        NextStep(what.subject);
      }
      return;
    }
    case Kind::kEnd: {
      const auto found = streams_.find(what.subject);
      if (found == streams_.end() || found->second.generation != what.generation) return;
      // If the client cancelled the stream, the stream's end says nothing about the server.
      if (what.failure.has_value() && !found->second.cancelled) Forget(found->second.server);
      streams_.erase(found);
      Handle(StreamEnded{.lane = what.subject, .failure = what.failure});
      return;
    }
    case Kind::kTrainer:
      training_ = false;
      Train();
      return;
    case Kind::kTrouble:
      Trouble();
      At(Between(absl::ZeroDuration(), absl::Seconds(4)), {.kind = Kind::kTrouble});
      return;
  }
}

void Simulation::Handle(const ScheduleEvent& event) {
  ScheduleActions actions;
  schedule_->Handle(event, now_, actions);
  if (bug_ != nullptr) bug_(event, actions);
  for (const ScheduleAction& action : actions) {
    std::visit([this](const auto& what) { Carry(what); }, action);
  }
  CheckState();
  if (!delivered_.empty() && !training_ && started_) Train();
}

void Simulation::CheckState() {
  for (const auto& [lane, stream] : streams_) {
    if (stream.paused && !stream.stopping && stream.step < next_ + window_ && !over_) {
      Wrong(absl::StrCat("lane ", lane, " is paused at step ", stream.step,
                         " though the window has room"));
    }
  }
  // At most one stream for each step in the window, two for each server, and the hedges.
  const int64_t most = window_ + 2 * static_cast<int64_t>(servers_.size()) + kHedgeBurst;
  if (static_cast<int64_t>(streams_.size()) > most) Wrong("too many streams");
}

void Simulation::Carry(const AskServer& action) {
  World& server = servers_[static_cast<size_t>(action.server)];
  if (server.asked) Wrong("a server is asked twice at a time");
  server.asked = true;
  if (server.left) Wrong("a server that left is asked");
  At(Between(absl::Milliseconds(1), absl::Milliseconds(20)),
     {.kind = Kind::kAnswer, .subject = action.server});
}

void Simulation::Carry(const ForgetServer& action) {
  World& server = servers_[static_cast<size_t>(action.server)];
  if (!server.left || server.asked) Wrong("a server in use is forgotten");
  for (const auto& [lane, stream] : streams_) {
    if (stream.server == action.server) Wrong("a server with a stream is forgotten");
  }
}

void Simulation::Carry(const ReleaseServer& action) {
  if (servers_[static_cast<size_t>(action.server)].asked)
    Wrong("a server that is asked is released");
  for (const auto& [lane, stream] : streams_) {
    if (stream.server == action.server) Wrong("a server with a stream is released");
  }
  Forget(action.server);
}

void Simulation::Carry(const OpenStream& action) {
  const World& server = servers_[static_cast<size_t>(action.server)];
  if (server.left) Wrong("a stream is opened on a server that left");
  if (!server.known) {
    Wrong("a stream is opened on a server that has not answered since it failed");
  }
  if (streams_.count(action.lane) > 0) Wrong("a lane has two streams");
  const int64_t last = action.first_step + (action.count - 1) * action.stride;
  if (action.count < 1 || action.count > kStepsPerStream || action.first_step < first_ ||
      last >= end_) {
    Wrong(absl::StrCat("steps ", action.first_step, " to ", last, " are asked for"));
  }
  if (action.first_step < next_ || delivered_.count(action.first_step) > 0) {
    Wrong(absl::StrCat("step ", action.first_step, " is asked for though it has come"));
  }
  for (const auto& [lane, stream] : streams_) {
    if (stream.step == action.first_step && stream.step < stream.end && !stream.stopping) ++copies_;
  }
  if (static_cast<double>(copies_) >
      options_.hedge_fraction * static_cast<double>(delivered_count_) +
          (options_.hedge_fraction > 0 ? kHedgeBurst : 0)) {
    Wrong(absl::StrCat(copies_, " steps were requested twice, delivered: ", delivered_count_));
  }
  lanes_.insert(action.lane);
  streams_[action.lane] = {.server = action.server,
                           .step = action.first_step,
                           .stride = action.stride,
                           .end = action.first_step + action.count * action.stride,
                           .generation = generation_++};
  NextStep(action.lane);
}

void Simulation::NextStep(int lane) {
  Stream& stream = streams_.at(lane);
  if (stream.stopping || stream.reading) return;
  stream.reading = true;
  const World& server = servers_[static_cast<size_t>(stream.server)];
  Occurrence next = {.kind = Kind::kStep, .subject = lane, .generation = stream.generation};
  absl::Duration delay = server.step_time * (0.5 + rng_.UniformFloat());
  if (!server.up || server.drains) {
    next.kind = Kind::kEnd;
    next.failure = Failure{.kind = server.up ? FailureKind::kLeaving : FailureKind::kLost};
    delay = absl::Milliseconds(1);
    stream.stopping = true;
  } else if (stream.step >= stream.end) {
    next.kind = Kind::kEnd;
    if (Chance(server.failing)) next.failure = Failure();  // After the last step.
    delay = absl::Milliseconds(1);
  }
  At(delay, next);
}

void Simulation::Carry(const StopStream& action) {
  const auto found = streams_.find(action.lane);
  if (found == streams_.end()) {
    Wrong("a stream that does not exist is stopped");
    return;
  }
  Stream& stream = found->second;
  if (action.paused != stream.paused) Wrong("a stopped stream is not paused as the action says");
  if (action.silent) Forget(stream.server);
  stream.cancelled = true;
  const bool ends_already = stream.stopping;
  stream.stopping = true;
  if (ends_already) return;
  At(absl::Milliseconds(1), {.kind = Kind::kEnd,
                             .subject = action.lane,
                             .generation = stream.generation,
                             .failure = Failure{.kind = FailureKind::kSuspect}});
}

void Simulation::Carry(const PauseStream& action) { streams_.at(action.lane).paused = true; }

void Simulation::Carry(const ResumeStream& action) {
  Stream& stream = streams_.at(action.lane);
  if (!stream.paused) Wrong("a stream that is not paused is resumed");
  stream.paused = false;
  NextStep(action.lane);
}

void Simulation::Carry(const DeliverStep& action) {
  if (action.step < next_ || !delivered_.insert(action.step).second) {
    Wrong(absl::StrCat("step ", action.step, " is delivered twice"));
  }
  if (action.step >= next_ + window_ || action.step >= end_) {
    Wrong(absl::StrCat("step ", action.step, " is delivered outside of the window"));
  }
  ++delivered_count_;
  arrived_at_ = now_;
}

void Simulation::Carry(const CloseLane& action) {
  if (streams_.count(action.lane) > 0) Wrong("a lane with a stream is closed");
  lanes_.erase(action.lane);
}

void Simulation::Carry(const GiveUp& action) {
  result_.gave_up = true;
  over_ = true;
  if (has_healthy_) Wrong("the feed gave up though a healthy server is there");
  const absl::Duration limit = delivered_count_ > 0 ? options_.retry_for : options_.connect_timeout;
  if (training_ || now_ - std::max(wants_since_, arrived_at_) < limit) {
    Wrong(absl::StrCat("the feed gave up at step ", action.step, " too early"));
  }
}

void Simulation::Train() {
  while (!training_ && !over_) {
    if (next_ >= end_) {
      over_ = true;
      return;
    }
    if (delivered_.count(next_) == 0) {
      if (wants_since_ == absl::ZeroDuration()) {
        wants_since_ = now_;
        stopped_for_ = absl::ZeroDuration();
        Handle(StepWanted());
      }
      return;
    }
    if (wants_since_ > absl::ZeroDuration()) {
      const absl::Duration waited = now_ - wants_since_ - stopped_for_;
      result_.longest_wait = std::max(result_.longest_wait, waited);
      if (has_healthy_ && waited > kLongestWait * (options_.first_servers < kMostServers ? 4 : 1)) {
        Wrong(absl::StrCat("step ", next_, " took ", absl::FormatDuration(waited)));
      }
    }
    wants_since_ = absl::ZeroDuration();
    delivered_.erase(next_++);
    training_ = true;
    absl::Duration compute = Between(absl::ZeroDuration(), absl::Milliseconds(40));
    if (Chance(0.005)) compute = Between(absl::Seconds(1), absl::Minutes(2));
    At(compute, {.kind = Kind::kTrainer});
    Handle(StepTaken());
  }
}

void Simulation::Join(int number) {
  servers_[static_cast<size_t>(number)].joined = true;
  Handle(ServerJoined{.server = number});
}

void Simulation::BreakStreamsOf(int server, const Failure& failure) {
  for (auto& [lane, stream] : streams_) {
    if (stream.server != server || stream.stopping) continue;
    stream.stopping = true;
    At(Between(absl::ZeroDuration(), absl::Milliseconds(50)),
       {.kind = Kind::kEnd, .subject = lane, .generation = stream.generation, .failure = failure});
  }
}

void Simulation::Trouble() {
  if (Chance(0.03)) {  // The client's process gets SIGSTOP, and later SIGCONT.
    const absl::Duration pause = Between(absl::Seconds(5), absl::Minutes(2));
    stopped_until_ = now_ + pause;
    stopped_for_ += pause;
  }
  const int number = static_cast<int>(rng_.UniformInt(0, static_cast<int64_t>(servers_.size())));
  if (number == 0 && has_healthy_) return;
  World& server = servers_[static_cast<size_t>(number)];
  if (!server.joined) {
    Join(number);
    return;
  }
  if (server.left) return;
  switch (rng_.UniformInt(0, 8)) {
    case 0:
      server.hangs_until = now_ + Between(absl::ZeroDuration(), absl::Minutes(1));
      return;
    case 1:
      server.hangs_until = absl::InfiniteDuration();
      return;
    case 2:
      server.up = !server.up;
      if (!server.up) BreakStreamsOf(number, {.kind = FailureKind::kLost});
      return;
    case 3:
      server.drips = !server.drips;
      return;
    case 4:
      server.drains = !server.drains;
      if (server.drains) BreakStreamsOf(number, {.kind = FailureKind::kLeaving});
      return;
    case 5:
      server.step_time *= 3;
      return;
    case 6:
      if (number == 0) return;  // A list of servers is never empty.
      server.left = true;
      Handle(ServerLeft{.server = number});
      return;
    default:  // The server is well again.
      server.hangs_until = absl::ZeroDuration();
      server.up = true;
      server.drips = server.drains = false;
      return;
  }
}

}  // namespace systole
