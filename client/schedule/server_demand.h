// Decides how many servers a feed uses. Adds a server while the trainer waits, if the server added
// last has helped. Gives a server up if the server added last did not help, or if for some time the
// trainer has not waited.
//
//   measure the trainer's wait and rate -> waits: add one -> measure -> faster: go on
//                                                                    -> not:    give it back
//
// Each server in a row that did not help doubles the time until the next server is tried. If the
// trainer waits after a server was given up, the time until another server is given up doubles. So
// the number of servers changes less and less often.
//
// Times are those of StepSchedule. Thread-compatible.
#ifndef SYSTOLE_CLIENT_SCHEDULE_SERVER_DEMAND_H_
#define SYSTOLE_CLIENT_SCHEDULE_SERVER_DEMAND_H_

#include <algorithm>
#include <cstdint>
#include <optional>

#include "absl/time/time.h"

namespace systole {

class ServerDemand {
 public:
  // Begins with `first` servers and never wants more than `most`. REQUIRES: 1 <= most.
  ServerDemand(int first, int most) : least_(std::min(first, most)), most_(most), wanted_(least_) {}

  int wanted() const { return wanted_; }

  // The trainer took a step after a wait of `waited`. `settled`: all servers that are wanted serve,
  // and the steps taken now come from all these servers. `more`: the list has another server.
  void StepTaken(absl::Duration now, absl::Duration waited, bool settled, bool more);

 private:
  struct Measure {
    absl::Duration begin;
    int64_t steps = 0;
    absl::Duration waited = absl::ZeroDuration();
  };
  // `waits`: the part of the time in which the trainer waited, 0 to 1. `rate`: steps a second.
  void Judge(absl::Duration now, double waits, double rate, bool more);

  const int least_;
  const int most_;
  int wanted_;
  std::optional<Measure> measure_;
  // The rate before the last server was added, until it is known whether the server helps.
  std::optional<double> rate_before_;
  absl::Duration pause_ = absl::ZeroDuration();  // The pause after a server that did not help.
  // Before this time no server is added.
  absl::Duration grows_after_ = -absl::InfiniteDuration();
  bool shrank_ = false;  // The last change was that a server was given up.
  // When the trainer last waited, or a server was last given up for lack of waits.
  absl::Duration waited_at_ = absl::ZeroDuration();
  // A server is given up when the trainer has not waited for this long.
  absl::Duration shrinks_after_ = kShrinksAfter;

  static constexpr absl::Duration kShrinksAfter = absl::Minutes(1);
};

}  // namespace systole

#endif  // SYSTOLE_CLIENT_SCHEDULE_SERVER_DEMAND_H_
