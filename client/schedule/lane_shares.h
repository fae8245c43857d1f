// Decides which part of a lane's steps the lane's server gets. With n servers each lane has every
// n-th step. If each server got its whole lane, the slowest server would set the pace: the steps of
// the other servers would fill the window, and these servers would pause. So a slow server gets
// only every second or fourth step of its lane. The other steps of the lane go to the servers that
// pause most.
//
//   A, B, C alike:     A B C A B C A B C A B C
//   B is slow:         A B C A A C A B C A A C      half of B's lane
//
// A server is judged by the time in which it has a step to send that has not arrived yet. In the
// rest of the time the server pauses.
//
// Times are those of StepSchedule. Thread-compatible.
#ifndef SYSTOLE_CLIENT_SCHEDULE_LANE_SHARES_H_
#define SYSTOLE_CLIENT_SCHEDULE_LANE_SHARES_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/time/time.h"

namespace systole {

// A server gets each `every`-th step of its lane.
struct LaneShare {
  int server;
  int every = 1;

  friend bool operator==(const LaneShare& a, const LaneShare& b) {
    return a.server == b.server && a.every == b.every;
  }
};

class LaneShares {
 public:
  // The servers of the next plan and their shares. A server of the last plan keeps its share. But
  // if no server would have a whole lane, all servers get whole lanes.
  std::vector<LaneShare> SharesOf(const std::vector<int>& servers) const;
  // The servers with whole lanes, which also get the steps that slow servers do not get. The server
  // that paused most comes first.
  std::vector<int> Helpers(const std::vector<LaneShare>& plan) const;

  // A new plan begins. Nothing is measured until StepTaken() gets `settled`.
  void Begin(const std::vector<LaneShare>& plan);
  // For `time`, the server had a step to send that had not arrived yet.
  void Awaited(int server, absl::Duration time);
  // The trainer took a step. `settled`: the steps taken now are those of the plan. This call may
  // change the shares. If so, SharesOf() returns the new ones.
  void StepTaken(absl::Duration now, bool settled);

 private:
  struct Server {
    LaneShare share;
    absl::Duration awaited = absl::ZeroDuration();
  };
  // Returns whether a share has changed.
  bool Judge(absl::Duration took);
  const Server* Find(int server) const;

  std::vector<Server> servers_;
  std::optional<absl::Duration> begin_;  // When the measurement began.
  int64_t steps_ = 0;
};

}  // namespace systole

#endif  // SYSTOLE_CLIENT_SCHEDULE_LANE_SHARES_H_
