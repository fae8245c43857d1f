#include "tests/client/schedule/fleet_simulation.h"

#include <algorithm>
#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"
#include "client/schedule/server_subset.h"

namespace systole {
namespace {

constexpr int64_t kPlaces = 40;  // Streams of one server.

}  // namespace

FleetSimulation::FleetSimulation(const FleetOptions& options)
    : options_(options), rng_(options.seed, /*epoch=*/2, /*record=*/0, /*purpose=*/7) {
  for (int i = 0; i < options.servers; ++i) {
    servers_.emplace_back().name = absl::StrCat("server-", i, ":8470");
  }
  for (int i = 0; i < options.jobs * options.hosts; ++i) {
    Client& client = clients_.emplace_back();
    client.id = rng_.NextU64();
    const bool is_large = i / options.hosts % 20 == 7;
    client.cost = options.step * (is_large ? 2 : 1);
    client.schedule.emplace(
        ScheduleOptions{.first_servers = 2, .max_servers = 16, .seed = rng_.NextU64()});
    std::vector<std::pair<uint64_t, int>> list;
    for (int server = 0; server < options.servers; ++server) {
      list.emplace_back(RankOf(servers_[static_cast<size_t>(server)].name, client.id), server);
    }
    std::sort(list.begin(), list.end());
    for (const auto& [rank, server] : list) Handle(i, ServerJoined{.server = server, .rank = rank});
  }
}

void FleetSimulation::At(absl::Duration delay, Occurrence occurrence) {
  occurrence.at = now_ + delay;
  occurrence.order = order_++;
  queue_.push(occurrence);
}

void FleetSimulation::Wrong(const std::string& what) {
  if (wrong_.empty()) wrong_ = absl::StrCat(what, " at ", absl::FormatDuration(now_));
}

void FleetSimulation::Run(absl::Duration time) {
  const absl::Duration end = now_ + time;
  while (!queue_.empty() && queue_.top().at <= end && wrong_.empty()) {
    const Occurrence what = queue_.top();
    queue_.pop();
    now_ = what.at;
    Happen(what);
  }
  now_ = end;
}

void FleetSimulation::Update(Server& server) {
  if (!server.works || server.free_at > now_) return;
  server.works = false;
  server.share.Set(0, server.free_at);
}

void FleetSimulation::Happen(const Occurrence& what) {
  Client& client = clients_[static_cast<size_t>(what.client)];
  switch (what.kind) {
    case Kind::kTick:
      if (what.at != client.tick_at) return;  // An earlier tick has replaced this one.
      client.tick_at = absl::InfiniteDuration();
      Handle(what.client, Tick());
      return;
    case Kind::kAnswer: {
      Server& server = servers_[static_cast<size_t>(what.subject)];
      if (!server.up || server.drains) {
        Handle(what.client, AskFailed{.server = what.subject, .failure = {}});
        return;
      }
      Update(server);
      std::optional<ServerLoad> load;
      if (options_.tells_load) {
        load = ServerLoad{.busy = server.share.At(now_),
                          .free_places = std::max<int64_t>(kPlaces - server.streams, 0)};
      }
      Handle(what.client, Answered{.server = what.subject, .load = load});
      if (!std::exchange(client.started, true)) {
        Handle(
            what.client,
            FeedStarted{.first_step = 0, .end_step = int64_t{1} << 40, .window = options_.window});
        Train(what.client);
      }
      return;
    }
    case Kind::kMade: {
      const auto found = client.streams.find(what.subject);
      if (found == client.streams.end() || found->second.generation != what.generation ||
          found->second.ending) {
        return;
      }
      if (found->second.paused) {
        found->second.ready = true;
      } else {
        Arrive(what.client, what.subject);
      }
      return;
    }
    case Kind::kEnd: {
      const auto found = client.streams.find(what.subject);
      if (found == client.streams.end() || found->second.generation != what.generation) return;
      --servers_[static_cast<size_t>(found->second.server)].streams;
      client.streams.erase(found);
      std::optional<Failure> failure;
      if (what.failed) failure = Failure{.kind = what.failure};
      Handle(what.client, StreamEnded{.lane = what.subject, .failure = failure});
      return;
    }
    case Kind::kTrainer:
      client.training = false;
      Train(what.client);
      return;
    case Kind::kBack: {
      Server& server = servers_[static_cast<size_t>(what.subject)];
      server.up = true;
      server.drains = false;
      return;
    }
  }
}

void FleetSimulation::Handle(int number, const ScheduleEvent& event) {
  Client& client = clients_[static_cast<size_t>(number)];
  ScheduleActions actions = std::exchange(actions_, {});
  actions.clear();
  client.schedule->Handle(event, now_, actions);
  for (const ScheduleAction& action : actions) {
    std::visit([&](const auto& what) { Carry(number, what); }, action);
  }
  actions_ = std::move(actions);
  const absl::Duration wake = std::max(client.schedule->wake_at(), now_ + absl::Microseconds(1));
  if (wake < client.tick_at) {
    client.tick_at = wake;
    At(wake - now_, {.kind = Kind::kTick, .client = number});
  }
}

void FleetSimulation::Carry(int number, const AskServer& action) {
  Client& client = clients_[static_cast<size_t>(number)];
  client.connected.insert(action.server);
  most_servers_ = std::max(most_servers_, client.connected.size());
  At(kRoundTrip, {.kind = Kind::kAnswer, .client = number, .subject = action.server});
}

void FleetSimulation::Carry(int number, const ForgetServer& action) {
  clients_[static_cast<size_t>(number)].connected.erase(action.server);
}

void FleetSimulation::Carry(int number, const ReleaseServer& action) {
  clients_[static_cast<size_t>(number)].connected.erase(action.server);
}

void FleetSimulation::Carry(int number, const OpenStream& action) {
  Client& client = clients_[static_cast<size_t>(number)];
  if (action.first_step < client.next || client.delivered.count(action.first_step) > 0) {
    Wrong(absl::StrCat("step ", action.first_step, " is asked for though it has come"));
  }
  Server& server = servers_[static_cast<size_t>(action.server)];
  client.streams[action.lane] = {.server = action.server,
                                 .step = action.first_step,
                                 .stride = action.stride,
                                 .end = action.first_step + action.count * action.stride,
                                 .generation = generation_++};
  if (++server.streams > kPlaces) {
    End(number, action.lane, FailureKind::kLost);
  } else {
    MakeNext(number, action.lane);
  }
}

void FleetSimulation::End(int number, int lane, FailureKind kind) {
  Stream& stream = clients_[static_cast<size_t>(number)].streams.at(lane);
  stream.ending = true;
  At(kRoundTrip / 2, {.kind = Kind::kEnd,
                      .client = number,
                      .subject = lane,
                      .generation = stream.generation,
                      .failure = kind,
                      .failed = true});
}

void FleetSimulation::MakeNext(int number, int lane) {
  Client& client = clients_[static_cast<size_t>(number)];
  Stream& stream = client.streams.at(lane);
  if (stream.ending) return;
  Server& server = servers_[static_cast<size_t>(stream.server)];
  if (!server.up || server.drains) {
    End(number, lane, server.up ? FailureKind::kLeaving : FailureKind::kLost);
    return;
  }
  if (stream.step >= stream.end) {
    stream.ending = true;
    At(kRoundTrip / 2,
       {.kind = Kind::kEnd, .client = number, .subject = lane, .generation = stream.generation});
    return;
  }
  Update(server);
  if (!std::exchange(server.works, true)) server.share.Set(1, now_);
  const absl::Duration cost = client.cost * server.slow;
  server.free_at = std::max(server.free_at, now_) + cost;
  server.busy += cost;
  longest_step_ = std::max(longest_step_, server.free_at - now_);
  At(server.free_at - now_,
     {.kind = Kind::kMade, .client = number, .subject = lane, .generation = stream.generation});
}

void FleetSimulation::Arrive(int number, int lane) {
  Client& client = clients_[static_cast<size_t>(number)];
  Stream& stream = client.streams.at(lane);
  stream.ready = false;
  stream.step += stream.stride;
  Handle(number, ChunkArrived{.lane = lane});
  Handle(number, StepArrived{.lane = lane});
  if (client.streams.count(lane) > 0) MakeNext(number, lane);
  Train(number);
}

void FleetSimulation::Carry(int number, const StopStream& action) {
  Client& client = clients_[static_cast<size_t>(number)];
  Stream& stream = client.streams.at(action.lane);
  if (stream.ending) return;
  stream.ending = true;
  At(kRoundTrip / 2, {.kind = Kind::kEnd,
                      .client = number,
                      .subject = action.lane,
                      .generation = stream.generation});
}

void FleetSimulation::Carry(int number, const PauseStream& action) {
  clients_[static_cast<size_t>(number)].streams.at(action.lane).paused = true;
}

void FleetSimulation::Carry(int number, const ResumeStream& action) {
  Stream& stream = clients_[static_cast<size_t>(number)].streams.at(action.lane);
  stream.paused = false;
  if (!std::exchange(stream.ready, false)) return;
  // The step is on the way: it does not arrive within the event that resumes the stream.
  At(absl::Milliseconds(1), {.kind = Kind::kMade,
                             .client = number,
                             .subject = action.lane,
                             .generation = stream.generation});
}

void FleetSimulation::Carry(int number, const DeliverStep& action) {
  Client& client = clients_[static_cast<size_t>(number)];
  if (action.step < client.next || action.step >= client.next + options_.window ||
      !client.delivered.insert(action.step).second) {
    Wrong(absl::StrCat("step ", action.step, " is delivered twice or too early"));
  }
}

void FleetSimulation::Carry(int number, const GiveUp& action) {
  Wrong(absl::StrCat("client ", number, " gave up at step ", action.step));
}

void FleetSimulation::Train(int number) {
  Client& client = clients_[static_cast<size_t>(number)];
  if (client.training) return;
  if (client.delivered.count(client.next) == 0) {
    if (client.wants_since.has_value()) return;
    client.wants_since = now_;
    Handle(number, StepWanted());
    return;
  }
  if (client.wants_since.has_value()) {
    longest_wait_ = std::max(longest_wait_, now_ - *client.wants_since);
    client.wants_since.reset();
  }
  client.delivered.erase(client.next++);
  ++steps_;
  client.training = true;
  At(options_.train, {.kind = Kind::kTrainer, .client = number});
  Handle(number, StepTaken());
}

void FleetSimulation::EndStreamsOf(int server, FailureKind kind) {
  for (int number = 0; number < static_cast<int>(clients_.size()); ++number) {
    for (const auto& [lane, stream] : clients_[static_cast<size_t>(number)].streams) {
      if (stream.server == server && !stream.ending) End(number, lane, kind);
    }
  }
}

void FleetSimulation::Kill(int number, absl::Duration down) {
  Server& server = servers_[static_cast<size_t>(number)];
  Update(server);
  server.up = false;
  server.disturbed = 2;
  server.busy -= std::max(server.free_at - now_, absl::ZeroDuration());
  server.free_at = now_;
  Update(server);
  EndStreamsOf(number, FailureKind::kLost);
  At(down, {.kind = Kind::kBack, .subject = number});
}

void FleetSimulation::Restart(int number, absl::Duration down) {
  Server& server = servers_[static_cast<size_t>(number)];
  server.drains = true;
  server.disturbed = 2;
  At(down, {.kind = Kind::kBack, .subject = number});
}

void FleetSimulation::SetSlow(int number, double factor) {
  Server& server = servers_[static_cast<size_t>(number)];
  server.slow = factor;
  server.disturbed = 2;
}

int FleetSimulation::AddServer() {
  const int number = num_servers();
  servers_.emplace_back().name = absl::StrCat("server-", number, ":8470");
  servers_.back().disturbed = 2;
  for (int i = 0; i < static_cast<int>(clients_.size()); ++i) {
    Handle(i,
           ServerJoined{.server = number,
                        .rank = RankOf(servers_.back().name, clients_[static_cast<size_t>(i)].id)});
  }
  return number;
}

void FleetSimulation::RemoveServer(int number) {
  servers_[static_cast<size_t>(number)].disturbed = 2;
  for (int i = 0; i < static_cast<int>(clients_.size()); ++i) {
    Handle(i, ServerLeft{.server = number});
  }
}

double FleetSimulation::BusiestToAverage() {
  absl::Duration busiest = absl::ZeroDuration();
  absl::Duration sum = absl::ZeroDuration();
  const auto overhang = [this](const Server& server) {
    return std::max(server.free_at - now_, absl::ZeroDuration());
  };
  for (Server& server : servers_) {
    const absl::Duration busy = server.busy - overhang(server);
    server.busy = overhang(server);
    sum += busy;
    if (server.disturbed == 0) busiest = std::max(busiest, busy);
    server.disturbed = std::max(server.disturbed - 1, 0);
  }
  const absl::Duration average = sum / num_servers();
  average_busy_ = absl::FDivDuration(average, now_ - period_begin_);
  period_begin_ = now_;
  return absl::FDivDuration(busiest, average);
}

absl::Duration FleetSimulation::TakeLongestWait() {
  return std::exchange(longest_wait_, absl::ZeroDuration());
}

absl::Duration FleetSimulation::TakeLongestStep() {
  return std::exchange(longest_step_, absl::ZeroDuration());
}

}  // namespace systole
