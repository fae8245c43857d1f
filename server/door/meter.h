// Watches what connections over TCP send, and says which are to be closed because it is too much
// (allowance.h). No poll walks over all of them: a connection is looked at when something has come,
// a moment later, and from then on less and less often until nothing changes.
//
// Single-thread.
#ifndef SYSTOLE_SERVER_DOOR_METER_H_
#define SYSTOLE_SERVER_DOOR_METER_H_

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/time/time.h"
#include "core/concurrency/monotonic_clock.h"
#include "server/door/allowance.h"
#include "server/door/open_calls.h"
#include "server/door/open_streams.h"

namespace systole {

class Meter {
 public:
  struct Excess {
    int fd = -1;
    bool alone = false;  // By itself; else it cost most when all together cost too much.
    std::string what;    // What it has sent.
  };

  // `epoll` is told what to watch. `clock` says what time has earned.
  Meter(int epoll, MonotonicClock clock)
      : epoll_(epoll), clock_(std::move(clock)), looks_clock_(SteadyClock()) {}

  // To be called before gRPC gets the connection. `calls` is null, and `address` empty, where calls
  // do not tell it. False: the system refuses to watch it.
  bool Add(int fd, const std::string& peer, const std::string& address,
           std::shared_ptr<OpenCalls::Connection> calls);
  // Nothing happens if it is not known.
  void Remove(int fd);

  // `epoll` has told of `fd`.
  std::vector<Excess> Wake(int fd);
  // To be called after every wait, which lasts for WaitMs() at most; -1: for ever.
  std::vector<Excess> LookAtDue();
  int WaitMs() const;

  // Whether one more connection of `peer` may be handed over now. Few may at a time, because what
  // they send shows a moment later; and none for a while after one that ended and had not earned
  // what it cost, because gRPC takes time and memory to end its streams.
  bool MayComeIn(const std::string& peer) const;

 private:
  struct Connection {
    std::string peer;
    std::string address;
    std::shared_ptr<OpenCalls::Connection> calls;
    Traffic traffic;
    absl::Duration streams_looked_at = -absl::InfiniteDuration();
    int64_t bytes_at_streams = 0;  // Received at that time.
    absl::Duration next_look = absl::InfiniteDuration();
    int quiet_looks = 0;  // One after the other that found nothing new.
  };

  // Looks at it and says when to look again. `armed`: `epoll` tells what comes.
  void Look(int fd, Connection& connection, bool armed, std::vector<Excess>& excess);
  void Schedule(int fd, Connection& connection, absl::Duration at);
  void Settle(int fd);
  // A connection ends, and `cost` of it is not earned.
  void Punish(const Connection& connection, int64_t cost);
  // What time does to those who are new, and to peers that sent too much.
  void PassTime(absl::Duration now);
  Excess Close(int fd, bool alone);

  const int epoll_;
  const MonotonicClock clock_;
  const MonotonicClock looks_clock_;
  std::map<int, Connection> connections_;
  std::set<std::pair<absl::Duration, int>> looks_;  // Those with a `next_look`.
  Allowances allowances_;
  std::map<int, absl::Duration> new_;  // Until when each is new at most.
  std::map<std::string, int> new_of_;  // How many of each peer; none is 0.
  std::map<std::string, int64_t> penalties_;
  absl::Duration penalties_at_;
  OpenStreams streams_;
};

}  // namespace systole

#endif  // SYSTOLE_SERVER_DOOR_METER_H_
