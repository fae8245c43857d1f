// A feed in virtual time: a StepSchedule between servers that delay, hang, fail, send little by
// little, drain, join and leave, and a trainer that pauses. Everything follows from one seed. The
// schedule is judged only by the actions and steps that the simulated world sees.
//
// Thread-compatible.
#ifndef SYSTOLE_TESTS_CLIENT_SCHEDULE_SIMULATION_H_
#define SYSTOLE_TESTS_CLIENT_SCHEDULE_SIMULATION_H_

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <queue>
#include <set>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "client/schedule/step_schedule.h"
#include "core/random/counter_rng.h"

namespace systole {

// Changes the schedule's actions before the simulation carries them out. Tests plant bugs with it.
using PlantedBug = std::function<void(const ScheduleEvent& event, ScheduleActions& actions)>;

struct SimulationResult {
  std::string wrong;  // The first property that failed; empty: none.
  bool gave_up = false;
  ScheduleCounts counts;
  absl::Duration took;          // Virtual time to the end.
  absl::Duration longest_wait;  // For one step, by the trainer.
};

class Simulation {
 public:
  // The feed begins with `first_servers` of the simulation's servers.
  explicit Simulation(uint64_t seed, PlantedBug bug = nullptr, int first_servers = kMostServers);

  SimulationResult Run();

 private:
  enum class Kind { kTick, kAnswer, kChunk, kStep, kEnd, kTrainer, kTrouble };
  struct Occurrence {
    absl::Duration at;
    int64_t order;  // Breaks ties: the lowest is first.
    Kind kind;
    int subject = 0;         // A server or a stream.
    int64_t generation = 0;  // The generation of the subject. Outdated events are ignored.
    std::optional<Failure> failure;
    bool operator<(const Occurrence& other) const {
      return at != other.at ? at > other.at : order > other.order;
    }
  };
  struct World {  // The true state of one server.
    bool up = true;
    bool joined = false;
    bool left = false;
    bool drips = false;
    bool drains = false;
    absl::Duration hangs_until = absl::ZeroDuration();
    absl::Duration step_time;
    double failing = 0;  // The probability that a step breaks its stream.
    bool asked = false;
    // Whether the server has answered. The client forgets this at each failure, because another
    // process may listen on the server's address afterwards.
    bool known = false;
  };
  struct Stream {
    int server;
    int64_t step;
    int64_t stride;
    int64_t end;
    int64_t generation;
    bool reading = false;  // The next step is on the way.
    bool paused = false;
    bool stopping = false;
    bool cancelled = false;  // The schedule stopped the stream.
  };

  void At(absl::Duration delay, Occurrence occurrence);
  bool Chance(double likely) { return rng_.UniformFloat() < likely; }
  absl::Duration Between(absl::Duration low, absl::Duration high);
  void Handle(const ScheduleEvent& event);
  void Carry(const AskServer& action);
  void Carry(const ForgetServer& action);
  void Carry(const ReleaseServer& action);
  void Carry(const OpenStream& action);
  void Carry(const StopStream& action);
  void Carry(const PauseStream& action);
  void Carry(const ResumeStream& action);
  void Carry(const DeliverStep& action);
  void Carry(const CloseLane& action);
  void Carry(const GiveUp& action);
  void Carry(const StepLate&) {}
  void CheckState();
  void NextStep(int lane);
  void Trouble();
  void Train();
  void Join(int server);
  // Forgets, as the client does, what the server has answered.
  void Forget(int server) { servers_[static_cast<size_t>(server)].known = false; }
  void BreakStreamsOf(int server, const Failure& failure);
  void Happen(const Occurrence& what);
  void Wrong(const std::string& what);

  CounterRng rng_;
  const PlantedBug bug_;
  ScheduleOptions options_;
  bool has_healthy_ = true;  // Whether server 0 is free of trouble for the whole feed.
  std::optional<StepSchedule> schedule_;
  std::priority_queue<Occurrence> queue_;
  int64_t order_ = 0;
  absl::Duration now_ = absl::ZeroDuration();
  // Until then the client's process stands still.
  absl::Duration stopped_until_ = absl::ZeroDuration();
  // How long the process has stood still in the trainer's present wait.
  absl::Duration stopped_for_ = absl::ZeroDuration();
  std::vector<World> servers_;
  std::map<int, Stream> streams_;  // By lane.
  std::set<int> lanes_;            // Lanes that had a stream and are not closed.
  int64_t generation_ = 0;
  bool started_ = false;
  int64_t first_ = 0;
  int64_t end_ = 0;
  int64_t window_ = 0;
  int64_t next_ = 0;
  std::set<int64_t> delivered_;  // Steps that the trainer has not taken yet.
  int64_t delivered_count_ = 0;
  int64_t copies_ = 0;
  bool training_ = false;  // False: the trainer waits for a step.
  absl::Duration wants_since_ = absl::ZeroDuration();
  absl::Duration arrived_at_ = absl::ZeroDuration();
  bool over_ = false;
  SimulationResult result_;
};

}  // namespace systole

#endif  // SYSTOLE_TESTS_CLIENT_SCHEDULE_SIMULATION_H_
