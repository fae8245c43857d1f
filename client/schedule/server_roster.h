// The servers that a feed uses: which of them may be given steps, and when a server that failed or
// lagged is asked again. The servers of the list that the feed does not use are in ServerSubset.
//
//   Asking -> Serving -> Resting (failed or late; asked again later) -> Asking ..
//   Spare (asked, gets no steps) -> Serving
//   any -> parting (gets no steps any more) -> released
//
// A server is asked whether it can serve the feed (ResolveFeed) before it gets steps.
//
// Servers have numbers that are never used twice. A number that is not known (any more) is ignored.
// Times are those of StepSchedule. Thread-compatible.
#ifndef SYSTOLE_CLIENT_SCHEDULE_SERVER_ROSTER_H_
#define SYSTOLE_CLIENT_SCHEDULE_SERVER_ROSTER_H_

#include <cstdint>
#include <map>
#include <optional>
#include <variant>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/time/time.h"
#include "client/schedule/failure.h"
#include "client/schedule/schedule_events.h"
#include "core/random/counter_rng.h"

namespace systole {

class ServerRoster {
 public:
  // Uses backoff, max_backoff and seed.
  explicit ServerRoster(const ScheduleOptions& options);

  // Adds a new server. Its first question is under way.
  void Join(int number);
  // Adds a new server that gets no steps before Use(). Its first question is under way.
  void JoinSpare(int number);
  // A spare server serves from now on. REQUIRES: its question was answered well.
  void Use(int number);
  // The server gets no more steps, and Advance() releases it.
  void Part(int number);
  // Notes that a question to a serving server is under way.
  void Ask(int number);
  // The server gets no more steps, and Advance() forgets it. False: the server is not known.
  bool Leave(int number);

  // The question to the server was answered well.
  void Answered(int number);
  // The question to the server failed. `matters` says whether failures still count. Returns true if
  // the server rests because of this failure. Returns false if the failure does not count, or if
  // the server has left or is resting already.
  bool AskFailed(int number, const Failure& failure, absl::Duration now, bool matters);
  // Whether questions to the server have failed so often that another question is of no use. A
  // server that cannot be reached is not useless: it may be starting again.
  bool IsUseless(int number) const;

  // A stream of the server failed: the server rests, if it serves.
  void StreamFailed(int number, const Failure& failure, absl::Duration now);
  // The server sends nothing: it rests, whatever its state was.
  void FellSilent(int number, absl::Duration now);
  // The server is late with a step. If it serves, it rests from now on while other servers serve.
  // If the server is still being asked for the first time, IsExpected() is false from now on.
  void Lagged(int number, absl::Duration now);
  // A step came from the server.
  void StepArrived(int number);

  bool Knows(int number) const { return servers_.contains(number); }
  // Whether a question to the server is under way.
  bool IsAsked(int number) const;
  // Whether the server was never given steps, because its first question is under way.
  bool IsNew(int number) const;
  // Whether JoinSpare() added the server, and its question has not failed.
  bool IsSpare(int number) const;
  bool Serves(int number) const;
  bool AnotherServes(int number) const;
  // Whether a plan counts on the server: it serves, or is asked for the first time.
  bool IsExpected(int number) const;
  std::vector<int> Expected() const;
  std::vector<int> AllServing() const;
  // The servers that rest or are asked again. The server that failed first comes first.
  std::vector<int> AllResting() const;
  // The serving server with the fewest lanes, but not `avoided`.
  std::optional<int> Choose(absl::FunctionRef<int64_t(int)> lanes_of,
                            std::optional<int> avoided = std::nullopt) const;

  // Before the feed has begun: the server that has failed for longest, and since when. nullopt if a
  // server serves, or if no server has failed.
  struct Failing {
    int number;
    absl::Duration since;
  };
  std::optional<Failing> LongestFailing() const;

  struct Advanced {
    absl::Duration due = absl::InfiniteDuration();  // When to ask the next server.
    int64_t probes = 0;                             // How many servers were asked again.
    std::vector<int> released;
  };
  // Forgets servers that have left, and releases those that part, as soon as `used` returns false
  // for them. If `asks`, asks the servers whose pause is over. Appends the actions.
  Advanced Advance(absl::Duration now, bool asks, absl::FunctionRef<bool(int)> used,
                   ScheduleActions& actions);

 private:
  struct Asking {
    bool first;  // The server never failed or lagged, so a plan counts on it.
  };
  struct Serving {};
  struct Spare {};
  struct Resting {
    absl::Duration since;
    absl::Duration pause;
    absl::Duration pause_if_others;  // The pause while another server serves.
  };
  struct Server {
    std::variant<Asking, Serving, Spare, Resting> state;
    bool left = false;
    bool parts = false;
    bool asked = false;  // A question is under way.
    int failures = 0;    // Failures since the server's last complete step.
    int lags = 0;        // Lags since the server last sent kStepsToTrust steps in a row.
    int steps = 0;
    // Failed questions of each kind, since the server last answered or could not be reached.
    int suspect = 0;
    int damaged = 0;
    // The time of the first failure after the server's last answer. Unset if there was none.
    std::optional<absl::Duration> failing_since;

    bool goes() const { return left || parts; }
    bool serves() const { return !goes() && std::holds_alternative<Serving>(state); }
    bool is_new() const {
      const Asking* const asking = std::get_if<Asking>(&state);
      return !goes() && asking != nullptr && asking->first;
    }
    bool is_expected() const { return serves() || is_new(); }
  };

  Server* Find(int number);
  const Server* Find(int number) const;
  void Fail(Server& server, const Failure& failure, absl::Duration now);
  // `pause` and up to a quarter more, at random.
  absl::Duration Jittered(absl::Duration pause);
  absl::Duration LagPause(const Server& server);

  const absl::Duration backoff_;
  const absl::Duration max_backoff_;
  CounterRng rng_;
  std::map<int, Server> servers_;
};

}  // namespace systole

#endif  // SYSTOLE_CLIENT_SCHEDULE_SERVER_ROSTER_H_
