#include "client/schedule/server_choice.h"

#include <algorithm>
#include <cstddef>
#include <vector>

namespace systole {
namespace {

// While the taken servers fail one after the other, up to this many servers more than wanted are
// taken without a pause. After that, there is a pause before each further server. The pause doubles
// from `backoff` to `max_backoff`.
constexpr int kTakenAtOnce = 2;

// A server that is taken in place of another may have too much to do as well. At most this many
// such servers in a row are given back. Then the next server is kept.
constexpr int kMostTooBusy = 3;

// About how often servers are asked how busy they are.
constexpr absl::Duration kLookPeriod = absl::Seconds(10);

// If a client exchanges a server and the new server is too busy again, perhaps this client makes it
// busy. So after each exchange, the pause before the next exchange is longer. The growing pause
// also keeps clients from changing servers at the same time.
constexpr absl::Duration kFirstSwapPause = absl::Seconds(20);
constexpr absl::Duration kLongestSwapPause = absl::Minutes(5);

// Servers that are less busy than this are not compared with others.
constexpr double kBusy = 0.1;

}  // namespace

ServerChoice::ServerChoice(const ScheduleOptions& options)
    : backoff_(options.backoff),
      max_backoff_(options.max_backoff),
      rng_(options.seed, /*epoch=*/0, /*record=*/1, /*purpose=*/0),
      demand_(options.first_servers, options.max_servers) {}

void ServerChoice::StepTaken(absl::Duration now, absl::Duration waited, bool settled,
                             const ServerRoster& roster) {
  const bool complete = roster.AllServing().size() == static_cast<size_t>(demand_.wanted());
  demand_.StepTaken(now, waited, settled && complete, subset_.CanTake(now, /*rested=*/true));
}

absl::Duration ServerChoice::Advance(absl::Duration now, ServerRoster& roster,
                                     ScheduleActions& actions) {
  due_ = absl::InfiniteDuration();
  TakeAndPart(now, roster, actions);
  LookAround(now, roster, actions);
  return due_;
}

bool ServerChoice::TakeServer(absl::Duration now, ServerRoster& roster, ScheduleActions& actions) {
  const int failed = taken_ - demand_.wanted() - kTakenAtOnce;
  if (failed >= 0) {
    const absl::Duration pause =
        std::min(backoff_ * (int64_t{1} << std::min(failed, 20)), max_backoff_);
    if (now < taken_at_ + pause) {
      due_ = taken_at_ + pause;
      return false;
    }
  }
  const std::optional<int> server = subset_.Take(now);
  if (!server.has_value()) return false;
  ++taken_;
  taken_at_ = now;
  roster.Join(*server);
  actions.push_back(AskServer{.server = *server});
  return true;
}

void ServerChoice::TakeAndPart(absl::Duration now, ServerRoster& roster, ScheduleActions& actions) {
  const size_t wanted = static_cast<size_t>(demand_.wanted());
  size_t expected = roster.Expected().size();
  while (expected < wanted && TakeServer(now, roster, actions)) ++expected;
  const std::vector<int> serving = roster.AllServing();
  const std::vector<int> resting = roster.AllResting();
  // Once enough servers serve, the resting servers are given back, because others have replaced
  // them. Until then up to `wanted` resting servers stay, because they may come back before another
  // server answers.
  const size_t kept = serving.size() >= wanted ? 0 : wanted;
  for (size_t i = 0; i + kept < resting.size(); ++i) roster.Part(resting[i]);
  // If more servers serve than are wanted, the busiest are given back.
  for (size_t surplus = serving.size(); surplus > wanted; --surplus) {
    const auto busy = [this, now](int server) {
      const std::optional<ServerLoad> load = subset_.LoadOf(server, now);
      return load.has_value() ? load->busy : 0.0;
    };
    int busiest = -1;
    for (const int server : serving) {
      if (!roster.Serves(server)) continue;
      if (busiest < 0 || busy(server) >= busy(busiest)) busiest = server;
    }
    roster.Part(busiest);
  }
}

void ServerChoice::Answered(int server, const std::optional<ServerLoad>& load, absl::Duration now,
                            ServerRoster& roster) {
  const bool is_new = roster.IsNew(server);
  roster.Answered(server);
  subset_.Told(server, load, now);
  if (!is_new) return;
  if (!subset_.HasRoom(server, now) && too_busy_ < kMostTooBusy &&
      subset_.CanTake(now, /*rested=*/true)) {
    ++too_busy_;
    roster.Part(server);
    return;
  }
  taken_ = 0;
  too_busy_ = 0;
}

void ServerChoice::PlanLook(absl::Duration now) {
  look_at_ = now + kLookPeriod * (0.5 + static_cast<double>(rng_.UniformFloat()));
}

void ServerChoice::LookAround(absl::Duration now, ServerRoster& roster, ScheduleActions& actions) {
  if (!begun_) return;
  if (looks_) {
    EndLook(now, roster);
    return;
  }
  if (now < look_at_) return;
  PlanLook(now);
  const std::vector<int> serving = roster.AllServing();
  if (serving.size() != static_cast<size_t>(demand_.wanted()) ||
      !subset_.CanTake(now, /*rested=*/true)) {
    return;
  }
  for (const int server : serving) {
    // A server that sent no load with earlier answers would send none now.
    const std::optional<ServerLoad> load = subset_.LoadOf(server, now);
    if (roster.IsAsked(server) || !load.has_value()) continue;
    roster.Ask(server);
    actions.push_back(AskServer{.server = server});
    looks_ = true;
    if (spare_.has_value() || load->busy < kBusy) continue;
    spare_ = subset_.Take(now, /*rested=*/true);
    roster.JoinSpare(*spare_);
    actions.push_back(AskServer{.server = *spare_});
  }
}

void ServerChoice::EndLook(absl::Duration now, ServerRoster& roster) {
  if (spare_.has_value() && roster.IsAsked(*spare_)) return;
  const std::vector<int> serving = roster.AllServing();
  for (const int server : serving) {
    if (roster.IsAsked(server)) return;
  }
  looks_ = false;
  if (!spare_.has_value()) return;
  const int spare = *spare_;
  spare_.reset();
  if (!roster.Knows(spare)) return;  // The spare server has left the list.
  if (roster.IsSpare(spare) && subset_.HasRoom(spare, now)) {
    bool fair = true;
    for (const int server : serving) {
      const double excess = subset_.ExcessOf(server, now);
      if (excess <= 0) continue;
      fair = false;
      if (now < swaps_after_ || static_cast<double>(rng_.UniformFloat()) >= excess) continue;
      roster.Use(spare);
      roster.Part(server);
      swap_pause_ = std::clamp(2 * swap_pause_, kFirstSwapPause, kLongestSwapPause);
      swaps_after_ = now + swap_pause_;
      return;
    }
    if (fair) swap_pause_ *= 0.9;
  }
  roster.Part(spare);
}

}  // namespace systole
