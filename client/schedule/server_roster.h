// The servers that a feed uses: which of them may be given steps, and when a server that failed or
// lagged is asked again. The servers of the list that the feed does not use are in ServerSubset.
//
//   Asking -> Serving -> Resting (failed or late; asked again later) -> Asking ..
//   Spare (asked, gets no steps) -> Serving
//   any -> parting (gets no steps any more) -> released (given back to the list)
//
// A question is a call of ResolveFeed, which asks whether the server can serve the feed. A server
// gets steps only after it has answered that it can.
//
// The numbers of servers are never used twice. Use(), Part() and Ask() need a server of this
// roster. The other methods ignore the number of a server that was forgotten or released. Times are
// the running time of StepSchedule (running_clock.h). Thread-compatible.
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
  // A spare server serves from now on. REQUIRES: Answered() was called for it.
  void Use(int number);
  // The server gets no more steps, and Advance() releases it.
  void Part(int number);
  // Notes that a question to a serving server is under way.
  void Ask(int number);
  // The server gets no more steps, and Advance() forgets it. False: the server is not known.
  bool Leave(int number);

  // The server has answered the question: it can serve the feed.
  void Answered(int number);
  // The question to the server failed. `matters` is false if the feed has stopped and failures do
  // not count any more. Returns true if the server rests because of this failure. Returns false if
  // the failure does not count, or if the server parts, has left or is resting already.
  bool AskFailed(int number, const Failure& failure, absl::Duration now, bool matters);
  // Whether so many questions to the server have failed that another question is of no use. A
  // failed attempt to reach the server sets this count back to 0, because the next process at the
  // address may be a good one.
  bool IsUseless(int number) const;

  // A stream of the server failed. If the server serves, it rests from now on.
  void StreamFailed(int number, const Failure& failure, absl::Duration now);
  // The server sends nothing on a stream. It rests from now on, whatever its state was.
  void FellSilent(int number, absl::Duration now);
  // The server is late with a step. If it serves, it rests from now on while other servers serve.
  // If the server is still being asked for the first time, IsExpected() is false from now on.
  void Lagged(int number, absl::Duration now);
  // A step came from the server.
  void StepArrived(int number);

  bool Knows(int number) const { return servers_.contains(number); }
  // Whether a question to the server is under way.
  bool IsAsked(int number) const;
  // Whether Join() added the server, its first question is under way, and Lagged() was not called
  // for it. False if the server parts or has left.
  bool IsNew(int number) const;
  // Whether the server is in the state Spare: JoinSpare() added it, its question has not failed,
  // and Use() was not called.
  bool IsSpare(int number) const;
  bool Serves(int number) const;
  bool AnotherServes(int number) const;
  // Whether a plan gives steps to the server: Serves() or IsNew().
  bool IsExpected(int number) const;
  std::vector<int> Expected() const;
  std::vector<int> AllServing() const;
  // The servers that rest or are asked again. The server that has failed for longest comes first.
  // Servers that were late, but have not failed since their last answer, come last.
  std::vector<int> AllResting() const;
  // The serving server, other than `avoided`, for which `lanes_of` returns the lowest number.
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
  // Forgets servers that have left, and releases servers that part. A server for which a question
  // is under way, or `used` returns true, is kept until a later call. If `asks` is true, asks the
  // servers whose pause is over. Appends the actions.
  Advanced Advance(absl::Duration now, bool asks, absl::FunctionRef<bool(int)> used,
                   ScheduleActions& actions);

 private:
  struct Asking {
    bool first;  // The server never failed or lagged, so a plan gives it steps.
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
    // Questions that failed as kSuspect, and as kDamaged, since the server last answered or could
    // not be reached.
    int suspect = 0;
    int damaged = 0;
    // The time of the first failure after the server's last answer. Unset if no failure followed.
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
