// Decides which servers of the list a feed uses. It takes a server from the list while too few
// servers serve, and gives a server back to the list when it is not needed. Now and then it
// compares the servers in use with another server.
//
// The servers that were taken are in the feed's ServerRoster, which the calls below change. Times
// are those of StepSchedule, and never go back. Advance() appends to `actions`. Thread-compatible.
#ifndef SYSTOLE_CLIENT_SCHEDULE_SERVER_CHOICE_H_
#define SYSTOLE_CLIENT_SCHEDULE_SERVER_CHOICE_H_

#include <cstdint>
#include <optional>

#include "absl/time/time.h"
#include "client/schedule/schedule_events.h"
#include "client/schedule/server_demand.h"
#include "client/schedule/server_roster.h"
#include "client/schedule/server_subset.h"
#include "core/random/counter_rng.h"

namespace systole {

class ServerChoice {
 public:
  // Uses first_servers, max_servers, backoff, max_backoff and seed.
  explicit ServerChoice(const ScheduleOptions& options);

  // Adds a server to the list.
  void Add(int server, uint64_t rank) { subset_.Add(server, rank); }
  // Removes a server from the list. Returns false if the server is not in the list.
  bool Remove(int server) { return subset_.Remove(server); }
  // The feed has begun. From now on servers are compared.
  void Begin(absl::Duration now) {
    begun_ = true;
    PlanLook(now);
  }
  // A server has answered. A new server that is full or too busy is given back if the list has
  // another server, but only a few times in a row.
  void Answered(int server, const std::optional<ServerLoad>& load, absl::Duration now,
                ServerRoster& roster);
  // The trainer took a step after a wait of `waited`. `settled`: the step belongs to the present
  // plan, the division of the coming steps among the servers in use (see the README).
  void StepTaken(absl::Duration now, absl::Duration waited, bool settled,
                 const ServerRoster& roster);
  // Gives back a server that the roster no longer uses.
  void GiveBack(int server, absl::Duration now) { subset_.GiveBack(server, now); }
  // Whether the list has a server that could be taken.
  bool CanTake(absl::Duration now) const { return subset_.CanTake(now); }

  // Takes servers and gives others back, so that as many serve as are wanted, and compares servers
  // if a comparison is due. Returns when Advance() should be called again at the latest.
  absl::Duration Advance(absl::Duration now, ServerRoster& roster, ScheduleActions& actions);

 private:
  // Takes the next server of the list, and asks it. Returns false if the list has no further
  // server, or if it is too early. If it is too early, sets due_ to the time of the next attempt.
  bool TakeServer(absl::Duration now, ServerRoster& roster, ScheduleActions& actions);
  void TakeAndPart(absl::Duration now, ServerRoster& roster, ScheduleActions& actions);
  // Sets look_at_.
  void PlanLook(absl::Duration now);
  void LookAround(absl::Duration now, ServerRoster& roster, ScheduleActions& actions);
  void EndLook(absl::Duration now, ServerRoster& roster);

  const absl::Duration backoff_;
  const absl::Duration max_backoff_;
  CounterRng rng_;
  ServerSubset subset_;
  ServerDemand demand_;
  absl::Duration due_ = absl::InfiniteDuration();
  bool begun_ = false;
  // taken_ counts the servers taken since a new server answered and was kept. too_busy_ counts how
  // many of these were given back because of their load. taken_at_ is when a server was last taken.
  int taken_ = 0;
  int too_busy_ = 0;
  absl::Duration taken_at_ = absl::ZeroDuration();
  // When the servers in use, and a spare server of the list, are asked how busy they are.
  absl::Duration look_at_ = absl::InfiniteDuration();
  // The spare server, while it is asked.
  std::optional<int> spare_;
  // Whether servers are being asked now.
  bool looks_ = false;
  absl::Duration swaps_after_ = absl::ZeroDuration();  // Before this time no server is exchanged.
  absl::Duration swap_pause_ = absl::ZeroDuration();
};

}  // namespace systole

#endif  // SYSTOLE_CLIENT_SCHEDULE_SERVER_CHOICE_H_
