// Chooses the servers of a long list that a client uses. Every client puts the servers into an
// order of its own (rendezvous hashing), and takes them in this order:
//
//   rank(server) = hash(client, name)        the lowest rank is first
//   listed --Take()--> taken --GiveBack()--> listed, and for a minute behind all others --> ..
//
// So clients that know nothing of each other spread over the servers, and a server that joins or
// leaves changes nothing for the clients that do not use it. Chance alone would give some servers
// twice as many clients as others. Therefore a server says how busy it is. Its clients leave it if
// it is busier than kFairLoad times the average of other servers.
//
// Servers have the numbers of StepSchedule, and times are its times. Thread-compatible.
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
  // last. If `rested`, such servers are left out.
  std::optional<int> Take(absl::Duration now, bool rested = false);
  // Whether Take() would return a server.
  bool CanTake(absl::Duration now, bool rested = false) const;
  // Gives back a server that was taken.
  void GiveBack(int server, absl::Duration now);

  // What a server has answered about its load. nullopt: the server does not say.
  void Told(int server, const std::optional<ServerLoad>& load, absl::Duration now);
  // The load in the server's last answer. nullopt: the answer had none, or is 3 minutes old.
  std::optional<ServerLoad> LoadOf(int server, absl::Duration now) const;
  // Whether the server has room for this client: it has a free place, and is no busier than the
  // average of the other servers that told of their load.
  bool HasRoom(int server, absl::Duration now) const;
  // The part of its load that a server should lose. 0 if the server is hardly busy, or no busier
  // than kFairLoad times the average of the other servers that told of their load. If each of its
  // clients leaves with this probability, the load that stays is fair.
  double ExcessOf(int server, absl::Duration now) const;

 private:
  // What is known of a server that is taken, was given back, or told of its load.
  struct Known {
    bool taken = false;
    std::optional<absl::Duration> given_back;
    std::optional<ServerLoad> load;
    absl::Duration told;
  };
  bool IsTaken(int server) const;
  // The average load of the other servers. nullopt: none of them told of its load.
  std::optional<double> AverageWithout(int server, absl::Duration now) const;
  bool IsRested(int server, absl::Duration now) const;
  std::optional<int> Next(absl::Duration now, bool rested) const;
  // Forgets servers that are not taken, were not given back in the last minute, and have not told
  // of their load for 3 minutes.
  void Forget(absl::Duration now);

  std::vector<std::pair<uint64_t, int>> order_;  // Rank and number of each server in the list.
  std::map<int, Known> known_;
};

}  // namespace systole

#endif  // SYSTOLE_CLIENT_SCHEDULE_SERVER_SUBSET_H_
