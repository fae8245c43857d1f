// StepSchedule: which servers of the list are used.
#include <algorithm>

#include "client/schedule/step_schedule.h"

namespace systole {
namespace {

// If servers that are taken fail one after the other, so many of them beyond those that are wanted
// are taken at once. Then there are pauses like those before a server that failed is asked again.
constexpr int kTakenAtOnce = 2;

// A server that is taken in place of another may have too much to do as well. This many are given
// back, and then the next one is kept.
constexpr int kMostTooBusy = 3;

// About how often servers are asked how busy they are.
constexpr absl::Duration kLookPeriod = absl::Seconds(10);

// A client that was not better off with another server makes that server busy itself. So after each
// such change it stays for longer. This also keeps clients from changing together.
constexpr absl::Duration kFirstSwapPause = absl::Seconds(20);
constexpr absl::Duration kLongestSwapPause = absl::Minutes(5);

// Servers that are less busy than this are not compared with others.
constexpr double kBusy = 0.1;

}  // namespace

bool StepSchedule::TakeServer() {
  const int failed = taken_ - demand_.wanted() - kTakenAtOnce;
  if (failed >= 0) {
    const absl::Duration pause =
        std::min(options_.backoff * (int64_t{1} << std::min(failed, 20)), options_.max_backoff);
    if (now_ < taken_at_ + pause) {
      Due(taken_at_ + pause);
      return false;
    }
  }
  const std::optional<int> server = subset_.Take(now_);
  if (!server.has_value()) return false;
  ++taken_;
  taken_at_ = now_;
  servers_.Join(*server);
  Do(AskServer{.server = *server});
  return true;
}

void StepSchedule::ChooseServers() {
  const size_t wanted = static_cast<size_t>(demand_.wanted());
  size_t expected = servers_.Expected().size();
  while (expected < wanted && TakeServer()) ++expected;
  const std::vector<int> serving = servers_.AllServing();
  const std::vector<int> resting = servers_.AllResting();
  // Those that rest have been replaced once enough others serve. Until then there are as many of
  // them as of those that are wanted: they may come back before another server answers.
  const size_t kept = serving.size() >= wanted ? 0 : wanted;
  for (size_t i = 0; i + kept < resting.size(); ++i) servers_.Part(resting[i]);
  // More than are wanted: the busiest goes.
  for (size_t surplus = serving.size(); surplus > wanted; --surplus) {
    const auto busy = [this](int server) {
      const std::optional<ServerLoad> load = subset_.LoadOf(server, now_);
      return load.has_value() ? load->busy : 0.0;
    };
    int busiest = -1;
    for (const int server : serving) {
      if (!servers_.Serves(server)) continue;
      if (busiest < 0 || busy(server) >= busy(busiest)) busiest = server;
    }
    servers_.Part(busiest);
  }
}

void StepSchedule::JudgeNew(int server) {
  if (!subset_.HasRoom(server, now_) && too_busy_ < kMostTooBusy &&
      subset_.CanTake(now_, /*rested=*/true)) {
    ++too_busy_;
    servers_.Part(server);
    return;
  }
  taken_ = 0;
  too_busy_ = 0;
}

void StepSchedule::PlanLook() {
  look_at_ = now_ + kLookPeriod * (0.5 + static_cast<double>(rng_.UniformFloat()));
}

void StepSchedule::LookAround() {
  if (!started_) return;
  if (looks_) {
    EndLook();
    return;
  }
  if (now_ < look_at_) return;
  PlanLook();
  const std::vector<int> serving = servers_.AllServing();
  if (serving.size() != static_cast<size_t>(demand_.wanted()) ||
      !subset_.CanTake(now_, /*rested=*/true)) {
    return;
  }
  for (const int server : serving) {
    // A server that has not told of its load will not tell of it now.
    const std::optional<ServerLoad> load = subset_.LoadOf(server, now_);
    if (servers_.IsAsked(server) || !load.has_value()) continue;
    servers_.Ask(server);
    Do(AskServer{.server = server});
    looks_ = true;
    if (spare_.has_value() || load->busy < kBusy) continue;
    spare_ = subset_.Take(now_, /*rested=*/true);
    servers_.JoinSpare(*spare_);
    Do(AskServer{.server = *spare_});
  }
}

void StepSchedule::EndLook() {
  if (spare_.has_value() && servers_.IsAsked(*spare_)) return;
  const std::vector<int> serving = servers_.AllServing();
  for (const int server : serving) {
    if (servers_.IsAsked(server)) return;
  }
  looks_ = false;
  if (!spare_.has_value()) return;
  const int spare = *spare_;
  spare_.reset();
  if (!servers_.Knows(spare)) return;  // It has left the list.
  if (servers_.IsSpare(spare) && subset_.HasRoom(spare, now_)) {
    bool fair = true;
    for (const int server : serving) {
      const double excess = subset_.ExcessOf(server, now_);
      if (excess <= 0) continue;
      fair = false;
      if (now_ < swaps_after_ || static_cast<double>(rng_.UniformFloat()) >= excess) continue;
      servers_.Use(spare);
      servers_.Part(server);
      swap_pause_ = std::clamp(2 * swap_pause_, kFirstSwapPause, kLongestSwapPause);
      swaps_after_ = now_ + swap_pause_;
      return;
    }
    if (fair) swap_pause_ *= 0.9;
  }
  servers_.Part(spare);
}

}  // namespace systole
