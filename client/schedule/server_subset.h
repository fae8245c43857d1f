// Chooses which servers of a long list a client uses. Every client sorts the servers into an order
// of its own (rendezvous hashing), and takes servers in this order:
//
//   rank(server) = hash(client, name)        the lowest rank is first
//   listed --Take()--> taken --GiveBack()--> listed; for a minute, one of the last
//
// So clients that know nothing of each other spread over the servers. A server that joins or leaves
// changes nothing for the clients that do not use it. Chance alone would give some servers twice as
// many clients as others. Therefore a server says how busy it is. Some of its clients leave it if
// it is busier than kFairLoad times the average of other servers.
//
// Numbers of servers are those of StepSchedule. Times are its running time (running_clock.h).
// Thread-compatible.
#ifndef SYSTOLE_CLIENT_SCHEDULE_SERVER_SUBSET_H_
#define SYSTOLE_CLIENT_SCHEDULE_SERVER_SUBSET_H_

#include <cstdint>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "client/schedule/schedule_events.h"

namespace systole {

// A server has too much to do if it is busier than this number times the average of other servers.
inline constexpr double kFairLoad = 1.2;

// The rank of the server of this name for `client`, a number that each client draws.
uint64_t RankOf(absl::string_view name, uint64_t client);

class ServerSubset {
 public:
  // Adds a server to the list.
  void Add(int server, uint64_t rank);
  // Takes a server off the list. False: it is not in the list.
  bool Remove(int server);

  // Takes the first server that is not taken. Servers that were given back in the last minute come
  // last. If `rested` is true, servers given back in the last minute are not taken at all. nullopt:
  // there is no server to take.
  std::optional<int> Take(absl::Duration now, bool rested = false);
  // Whether Take() would return a server.
  bool CanTake(absl::Duration now, bool rested = false) const;
  // Gives back a server that was taken.
  void GiveBack(int server, absl::Duration now);

  // Keeps the load that a server gave in its answer. nullopt: the answer had no load.
  void Told(int server, const std::optional<ServerLoad>& load, absl::Duration now);
  // The load in the server's last answer. nullopt: the answer had no load, or is at least 3 minutes
  // old.
  std::optional<ServerLoad> LoadOf(int server, absl::Duration now) const;
  // Whether the server has room for this client: it has a free place, and is no busier than the
  // average of the other servers whose load is known. A server of unknown load has room.
  bool HasRoom(int server, absl::Duration now) const;
  // The probability with which each client of the server should leave the server. If all clients
  // follow it, the server's load falls to the average of the other servers whose load is known, but
  // at most by half. 0 if the server's load is low, or is at most kFairLoad times this average, or
  // if this load or the average is not known.
  double ExcessOf(int server, absl::Duration now) const;

 private:
  // What is known of a server that is taken, was given back, or gave its load.
  struct Known {
    bool taken = false;
    std::optional<absl::Duration> given_back;
    std::optional<ServerLoad> load;
    absl::Duration told;
  };
  bool IsTaken(int server) const;
  // The average load of the other servers whose load is known. nullopt: there is none.
  std::optional<double> AverageWithout(int server, absl::Duration now) const;
  bool IsRested(int server, absl::Duration now) const;
  std::optional<int> Next(absl::Duration now, bool rested) const;
  // Forgets what is known of a server if the server is not taken, was not given back in the last
  // minute, and has not answered for 3 minutes.
  void Forget(absl::Duration now);

  std::vector<std::pair<uint64_t, int>> order_;  // Rank and number of each server in the list.
  std::map<int, Known> known_;
};

}  // namespace systole

#endif  // SYSTOLE_CLIENT_SCHEDULE_SERVER_SUBSET_H_
