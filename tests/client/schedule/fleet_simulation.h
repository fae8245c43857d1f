// Many feeds and many servers in virtual time. Each client is a StepSchedule with a trainer. Each
// server makes one step after the other, and says how busy it is. Servers fail, are slow, drain,
// join and leave. Everything follows from one seed.
//
// This simulation shows how feeds share the servers, although no feed knows of the others.
// simulation.h simulates a single feed, with more kinds of trouble.
//
// Thread-compatible.
#ifndef SYSTOLE_TESTS_CLIENT_SCHEDULE_FLEET_SIMULATION_H_
#define SYSTOLE_TESTS_CLIENT_SCHEDULE_FLEET_SIMULATION_H_

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <queue>
#include <set>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "client/schedule/step_schedule.h"
#include "core/engine/busy_share.h"
#include "core/random/counter_rng.h"

namespace systole {

struct FleetOptions {
  uint64_t seed = 0;
  int servers = 1000;
  // How many jobs there are, and how many hosts each job has. Each host is a client. For one job in
  // 20, a server takes twice as long to make a step.
  int jobs = 40;
  int hosts = 100;
  // How many steps each client can hold at a time.
  int64_t window = 4;
  // How long a trainer works on a step, and how long a server takes to make one.
  absl::Duration train = absl::Seconds(1);
  absl::Duration step = absl::Milliseconds(125);
  // Whether servers say how busy they are.
  bool tells_load = true;
};

class FleetSimulation {
 public:
  explicit FleetSimulation(const FleetOptions& options);

  // Lets `time` pass.
  void Run(absl::Duration time);

  // Events that a test causes. `server` is a number below num_servers().
  void Kill(int server, absl::Duration down);
  // The server sends no more steps, ends its streams, and is back after `down`.
  void Restart(int server, absl::Duration down);
  void SetSlow(int server, double factor);
  int AddServer();
  void RemoveServer(int server);

  int num_servers() const { return static_cast<int>(servers_.size()); }
  int64_t RandomServer() { return rng_.UniformInt(0, num_servers()); }

  // The time that the busiest server was busy since the last call, divided by the average of all
  // servers. Each call begins a period. A server that was disturbed (killed, restarted, slowed,
  // added or removed) in the period that ends now, or in the one before, does not count as the
  // busiest server.
  double BusiestToAverage();
  double average_busy() const { return average_busy_; }
  // Since the last call: the longest time that a trainer waited for a step.
  absl::Duration TakeLongestWait();
  // Since the last call: the longest time that a server took for a step. Includes the time for the
  // steps that the server had to make first.
  absl::Duration TakeLongestStep();
  // The most servers that one client has used or asked at the same time.
  size_t most_servers() const { return most_servers_; }
  // How many servers a client uses now.
  int64_t ServersOf(size_t client) const { return clients_[client].schedule->servers_in_use(); }
  // Steps that trainers have taken.
  int64_t steps() const { return steps_; }
  // The first thing that was wrong: a step that was asked for though it had come, a step that was
  // delivered twice or too early, or a client that gave up. Empty if nothing was wrong.
  const std::string& wrong() const { return wrong_; }
  // The network's round trip. An answer takes a whole round trip, and the end of a stream takes
  // half of it. A step arrives as soon as it is made.
  static constexpr absl::Duration kRoundTrip = absl::Milliseconds(20);

 private:
  enum class Kind { kTick, kAnswer, kMade, kEnd, kTrainer, kBack };
  struct Occurrence {
    absl::Duration at;
    int64_t order;
    Kind kind;
    int client = 0;
    int subject = 0;  // A lane or a server.
    int64_t generation = 0;
    FailureKind failure = FailureKind::kLost;
    bool failed = false;
    bool operator<(const Occurrence& other) const {
      return at != other.at ? at > other.at : order > other.order;
    }
  };
  struct Server {
    std::string name;
    bool up = true;
    bool drains = false;
    double slow = 1;
    int64_t streams = 0;
    absl::Duration free_at = absl::ZeroDuration();  // When all steps begun so far will be made.
    BusyShare share;
    bool works = false;
    absl::Duration busy = absl::ZeroDuration();  // Since the last BusiestToAverage().
    // 2: disturbed in this period, 1: in the last period, 0: earlier or never. Each call of
    // BusiestToAverage() begins a period.
    int disturbed = 0;
  };
  struct Stream {
    int server;
    int64_t step;
    int64_t stride;
    int64_t end;
    int64_t generation;
    bool ready = false;  // The next step is made, and waits for the client.
    bool paused = false;
    bool ending = false;
  };
  struct Client {
    std::optional<StepSchedule> schedule;
    uint64_t id;
    absl::Duration cost;  // The time in which a server makes a step.
    bool started = false;
    int64_t next = 0;
    std::set<int64_t> delivered;
    bool training = false;
    std::optional<absl::Duration> wants_since;
    absl::Duration tick_at = absl::InfiniteDuration();
    std::map<int, Stream> streams;
    std::set<int> connected;
  };

  void At(absl::Duration delay, Occurrence occurrence);
  void Happen(const Occurrence& what);
  void Handle(int client, const ScheduleEvent& event);
  void Carry(int client, const AskServer& action);
  void Carry(int client, const ForgetServer& action);
  void Carry(int client, const ReleaseServer& action);
  void Carry(int client, const OpenStream& action);
  void Carry(int client, const StopStream& action);
  void Carry(int client, const PauseStream& action);
  void Carry(int client, const ResumeStream& action);
  void Carry(int client, const DeliverStep& action);
  void Carry(int, const CloseLane&) {}
  void Carry(int client, const GiveUp& action);
  void Carry(int, const StepLate&) {}
  // The server begins to make the stream's next step, or ends the stream.
  void MakeNext(int client, int lane);
  void Arrive(int client, int lane);
  void End(int client, int lane, FailureKind kind);
  void EndStreamsOf(int server, FailureKind kind);
  void Train(int client);
  void Update(Server& server);
  void Wrong(const std::string& what);

  const FleetOptions options_;
  CounterRng rng_;
  std::priority_queue<Occurrence> queue_;
  int64_t order_ = 0;
  absl::Duration now_ = absl::ZeroDuration();
  absl::Duration period_begin_ = absl::ZeroDuration();
  std::vector<Server> servers_;
  std::deque<Client> clients_;
  int64_t generation_ = 0;
  int64_t steps_ = 0;
  double average_busy_ = 0;
  absl::Duration longest_wait_ = absl::ZeroDuration();
  absl::Duration longest_step_ = absl::ZeroDuration();
  size_t most_servers_ = 0;
  std::string wrong_;
  ScheduleActions actions_;
};

}  // namespace systole

#endif  // SYSTOLE_TESTS_CLIENT_SCHEDULE_FLEET_SIMULATION_H_
