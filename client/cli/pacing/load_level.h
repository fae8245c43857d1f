// Runs a number of paced trainers on real servers at once. Measures how fast steps arrive, and how
// much processor time and memory the servers use.
//
// Each trainer has a feed of its own. The feed's seed is the spec's seed plus the trainer's number.
// So no two trainers can share a step that a server has made.
//
// Thread-compatible value types.
#ifndef SYSTOLE_CLIENT_CLI_PACING_LOAD_LEVEL_H_
#define SYSTOLE_CLIENT_CLI_PACING_LOAD_LEVEL_H_

#include <algorithm>
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "client/cli/pacing/missing_tally.h"
#include "client/emulator/timing/paced_run.h"
#include "client/emulator/timing/timing_report.h"
#include "client/feed/feed_client.h"
#include "systole/v1/feed.pb.h"

namespace systole {

struct LoadOptions {
  v1::FeedSpec spec;
  FeedClientOptions client;
  emulator::TimedCores cores;
  // How long to measure, from the moment when every trainer has its first step.
  absl::Duration duration;
};

// What was measured with one number of trainers. The window is the time of the measurement. It
// begins when every trainer has its first step, and lasts LoadOptions::duration.
struct LoadLevel {
  emulator::TimedCores cores;
  std::vector<emulator::PacedResult> trainers;
  absl::Duration window;
  // Steps that arrived in full in the window, summed over all trainers.
  int64_t steps = 0;
  // The masked examples and the padding of all trainers together, from their first steps on.
  MissingTally missing;
  // Processor time of all servers in the window; nullopt if a server does not report it.
  std::optional<double> server_cpu_seconds;
  // Processors of all servers together, as the servers report them.
  int server_cpus = 0;
  // Resident memory of all servers together at the window's end; nullopt if a server does not
  // report it.
  std::optional<int64_t> server_resident_bytes;
  // How often trainers asked again, or asked another server, from their first steps on.
  int64_t retries = 0;

  // The lowest AU (accelerator utilization, utilisation.h) of a trainer, and the lowest AU by the
  // wall clock (PacedResult::wall_au).
  double lowest_au() const;
  double lowest_wall_au() const;
  // Whether every trainer's AU is at least 90 %, by the emulator's clock and by the wall clock.
  // If this machine is too slow for a trainer's pace, the trainer takes fewer steps than a chip
  // would. Only the AU by the wall clock shows this, because the emulator's clock leaves out the
  // time that the emulator itself loses.
  bool fed() const { return std::min(lowest_au(), lowest_wall_au()) >= emulator::kHighAu; }
  // The waits of all trainers.
  emulator::LatencyHistogram waits() const;
  double examples() const;
  double steps_per_s() const { return static_cast<double>(steps) / absl::ToDoubleSeconds(window); }
  // The steps a second that the trainers take if they never wait.
  double wanted_steps_per_s() const {
    return static_cast<double>(trainers.size()) / absl::ToDoubleSeconds(cores.infeed.step_time);
  }
  double examples_per_s() const { return examples() / absl::ToDoubleSeconds(window); }
  // How many cores the examples that arrived would keep busy: the examples that arrived per second,
  // divided by the examples that a core takes per second. While clients fetch steps ahead, more
  // examples arrive than the trainers' cores take.
  double cores_worth() const { return examples_per_s() / cores.core_examples_per_s(); }
  // The average number of cores that computed: the sum over trainers of cores times AU.
  double cores_busy() const;
  std::optional<double> server_cpus_busy() const;
  // cores_worth() / server_cpus_busy(): the examples that the servers make in a second of processor
  // time, divided by the examples that a core takes in a second.
  std::optional<double> cores_fed_per_server_cpu() const;
};

// Runs `trainers` trainers. Calls `on_time`, which may be null, now and then with the part of
// options.duration that has passed. Ends with the first error of a trainer.
//   Unavailable  a trainer's feed ended before the window did.
absl::StatusOr<LoadLevel> RunLoadLevel(const LoadOptions& options, int trainers,
                                       const std::function<void(absl::Duration)>& on_time);

// The largest number of trainers, up to `most`, for which `is_fed` returns true; 0 if none. Assumes
// that more trainers are harder to feed. Tries 1, 2, 4, .. up to the first number that is not fed,
// at most `most`. Then bisects between this number and the largest number that was fed. Returns the
// first error.
absl::StatusOr<int> LargestFed(int most, const std::function<absl::StatusOr<bool>(int)>& is_fed);

// Tries all of 1, 2, 4, .. and `most`. If all are fed, returns `most`. Otherwise returns the
// largest tried number that is below every number that is not fed, or 0 if there is none. Returns
// the first error.
absl::StatusOr<int> RampUp(int most, const std::function<absl::StatusOr<bool>(int)>& is_fed);

}  // namespace systole

#endif  // SYSTOLE_CLIENT_CLI_PACING_LOAD_LEVEL_H_
