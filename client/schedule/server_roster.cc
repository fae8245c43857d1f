#include "client/schedule/server_roster.h"

#include <algorithm>
#include <limits>
#include <utility>

namespace systole {
namespace {

// After this many steps in a row, a server's lags are forgotten.
constexpr int kStepsToTrust = 16;

// While other servers serve, one that lagged or is leaving is asked again after pauses that double.
constexpr absl::Duration kFirstLagPause = absl::Seconds(1);
constexpr absl::Duration kLongestLagPause = absl::Seconds(60);

// `pause`, doubled `times` times, at most `longest`.
absl::Duration Doubled(absl::Duration pause, int times, absl::Duration longest) {
  return std::min(pause * (int64_t{1} << std::clamp(times, 0, 20)), longest);
}

}  // namespace

ServerRoster::ServerRoster(const ScheduleOptions& options)
    : backoff_(options.backoff),
      max_backoff_(options.max_backoff),
      rng_(options.seed, /*epoch=*/0, /*record=*/0, /*purpose=*/0) {}

ServerRoster::Server* ServerRoster::Find(int number) {
  const auto found = servers_.find(number);
  return found == servers_.end() ? nullptr : &found->second;
}

const ServerRoster::Server* ServerRoster::Find(int number) const {
  const auto found = servers_.find(number);
  return found == servers_.end() ? nullptr : &found->second;
}

void ServerRoster::Join(int number) {
  Server& server = servers_[number];
  server.state = Asking{.first = true};
  server.asked = true;
}

void ServerRoster::JoinSpare(int number) {
  Server& server = servers_[number];
  server.state = Spare();
  server.asked = true;
}

void ServerRoster::Use(int number) { servers_.at(number).state = Serving(); }

void ServerRoster::Part(int number) { servers_.at(number).parts = true; }

void ServerRoster::Ask(int number) { servers_.at(number).asked = true; }

bool ServerRoster::Leave(int number) {
  Server* const server = Find(number);
  if (server == nullptr) return false;
  server->left = true;
  return true;
}

void ServerRoster::Answered(int number) {
  Server* const server = Find(number);
  if (server == nullptr) return;
  server->asked = false;
  server->suspect = 0;
  server->damaged = 0;
  if (std::holds_alternative<Asking>(server->state)) {
    server->state = Serving();
    server->failing_since.reset();
  }
}

bool ServerRoster::AskFailed(int number, const Failure& failure, absl::Duration now, bool matters) {
  Server* const server = Find(number);
  if (server == nullptr) return false;
  server->asked = false;
  if (!matters || server->goes() || std::holds_alternative<Resting>(server->state)) return false;
  Fail(*server, failure, now);
  if (failure.kind == FailureKind::kSuspect) ++server->suspect;
  if (failure.kind == FailureKind::kDamaged) ++server->damaged;
  // Another process may listen at the address next. The lost process's failures must not count
  // against it.
  if (failure.kind == FailureKind::kLost) server->suspect = server->damaged = 0;
  return true;
}

bool ServerRoster::IsUseless(int number) const {
  const Server* const server = Find(number);
  return server != nullptr &&
         (server->suspect >= kMaxSuspectFailures || server->damaged >= kMaxDamagedFailures);
}

void ServerRoster::StreamFailed(int number, const Failure& failure, absl::Duration now) {
  Server* const server = Find(number);
  if (server != nullptr && server->serves()) Fail(*server, failure, now);
}

void ServerRoster::FellSilent(int number, absl::Duration now) {
  Server* const server = Find(number);
  if (server != nullptr) Fail(*server, {.kind = FailureKind::kLost}, now);
}

void ServerRoster::Lagged(int number, absl::Duration now) {
  Server* const server = Find(number);
  if (server == nullptr) return;
  if (Asking* const asking = std::get_if<Asking>(&server->state)) {
    asking->first = false;
  } else if (server->serves()) {
    ++server->lags;
    server->steps = 0;
    server->state =
        Resting{.since = now, .pause = absl::ZeroDuration(), .pause_if_others = LagPause(*server)};
  }
}

void ServerRoster::StepArrived(int number) {
  Server* const server = Find(number);
  if (server == nullptr) return;
  server->failures = 0;
  if (++server->steps >= kStepsToTrust) server->lags = 0;
}

bool ServerRoster::IsAsked(int number) const {
  const Server* const server = Find(number);
  return server != nullptr && server->asked;
}

bool ServerRoster::IsNew(int number) const {
  const Server* const server = Find(number);
  return server != nullptr && server->is_new();
}

bool ServerRoster::IsSpare(int number) const {
  const Server* const server = Find(number);
  return server != nullptr && !server->goes() && std::holds_alternative<Spare>(server->state);
}

bool ServerRoster::Serves(int number) const {
  const Server* const server = Find(number);
  return server != nullptr && server->serves();
}

bool ServerRoster::AnotherServes(int number) const {
  return std::any_of(servers_.begin(), servers_.end(), [number](const auto& entry) {
    return entry.first != number && entry.second.serves();
  });
}

bool ServerRoster::IsExpected(int number) const {
  const Server* const server = Find(number);
  return server != nullptr && server->is_expected();
}

std::vector<int> ServerRoster::Expected() const {
  std::vector<int> expected;
  for (const auto& [number, server] : servers_) {
    if (server.is_expected()) expected.push_back(number);
  }
  return expected;
}

std::vector<int> ServerRoster::AllServing() const {
  std::vector<int> serving;
  for (const auto& [number, server] : servers_) {
    if (server.serves()) serving.push_back(number);
  }
  return serving;
}

std::vector<int> ServerRoster::AllResting() const {
  std::vector<std::pair<absl::Duration, int>> resting;
  for (const auto& [number, server] : servers_) {
    if (server.goes() || server.is_expected() || std::holds_alternative<Spare>(server.state)) {
      continue;
    }
    resting.emplace_back(server.failing_since.value_or(absl::InfiniteDuration()), number);
  }
  std::sort(resting.begin(), resting.end());
  std::vector<int> numbers;
  for (const auto& [since, number] : resting) numbers.push_back(number);
  return numbers;
}

std::optional<int> ServerRoster::Choose(absl::FunctionRef<int64_t(int)> lanes_of,
                                        std::optional<int> avoided) const {
  std::optional<int> chosen;
  int64_t fewest = std::numeric_limits<int64_t>::max();
  for (const auto& [number, server] : servers_) {
    if (!server.serves() || number == avoided) continue;
    const int64_t lanes = lanes_of(number);
    if (lanes >= fewest) continue;
    chosen = number;
    fewest = lanes;
  }
  return chosen;
}

std::optional<ServerRoster::Failing> ServerRoster::LongestFailing() const {
  std::optional<Failing> longest;
  for (const auto& [number, server] : servers_) {
    if (server.serves()) return std::nullopt;
    if (!server.failing_since.has_value()) continue;
    if (!longest.has_value() || *server.failing_since < longest->since) {
      longest = {.number = number, .since = *server.failing_since};
    }
  }
  return longest;
}

ServerRoster::Advanced ServerRoster::Advance(absl::Duration now, bool asks,
                                             absl::FunctionRef<bool(int)> used,
                                             ScheduleActions& actions) {
  Advanced advanced;
  for (auto it = servers_.begin(); it != servers_.end();) {
    const int number = it->first;
    Server& server = it->second;
    if (server.goes() && !used(number) && !server.asked) {
      if (server.left) {
        actions.push_back(ForgetServer{.server = number});
      } else {
        actions.push_back(ReleaseServer{.server = number});
        advanced.released.push_back(number);
      }
      it = servers_.erase(it);
      continue;
    }
    ++it;
    const Resting* const resting = std::get_if<Resting>(&server.state);
    if (server.goes() || resting == nullptr || !asks || server.asked) continue;
    const absl::Duration due =
        resting->since + (AnotherServes(number) ? resting->pause_if_others : resting->pause);
    if (now < due) {
      advanced.due = std::min(advanced.due, due);
      continue;
    }
    server.state = Asking{.first = false};
    server.asked = true;
    ++advanced.probes;
    actions.push_back(AskServer{.server = number});
  }
  return advanced;
}

absl::Duration ServerRoster::Jittered(absl::Duration pause) {
  return pause * (1 + 0.25 * static_cast<double>(rng_.UniformFloat()));
}

absl::Duration ServerRoster::LagPause(const Server& server) {
  return Jittered(Doubled(kFirstLagPause, server.lags - 1, kLongestLagPause));
}

void ServerRoster::Fail(Server& server, const Failure& failure, absl::Duration now) {
  ++server.failures;
  server.steps = 0;
  if (!server.failing_since.has_value()) server.failing_since = now;
  absl::Duration pause = absl::ZeroDuration();
  if (server.failures > 1) {
    pause = Jittered(Doubled(backoff_, server.failures - 2, max_backoff_));
  }
  pause = std::max(pause, Jittered(failure.pushback));
  absl::Duration pause_if_others = pause;
  if (failure.kind == FailureKind::kLeaving) {
    ++server.lags;
    pause_if_others = std::max(pause, LagPause(server));
  }
  server.state = Resting{.since = now, .pause = pause, .pause_if_others = pause_if_others};
}

}  // namespace systole
