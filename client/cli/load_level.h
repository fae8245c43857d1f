// So many paced trainers on real servers at once, and what that took of the servers.
//
// Each trainer has a feed of its own (the spec's seed plus the trainer's number), so that no two
// can share a step that the server has made.
//
// Thread-compatible value types.
#ifndef SYSTOLE_CLIENT_CLI_LOAD_LEVEL_H_
#define SYSTOLE_CLIENT_CLI_LOAD_LEVEL_H_

#include <algorithm>
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "client/cli/missing_tally.h"
#include "client/emulator/timing/paced_run.h"
#include "client/emulator/timing/timing_report.h"
#include "client/feed/feed_client.h"
#include "systole/v1/feed.pb.h"

namespace systole {

struct LoadOptions {
  v1::FeedSpec spec;
  FeedClientOptions client;
  emulator::TimedCores cores;
  // From the moment on which every trainer has its first step.
  absl::Duration duration;
};

// What was measured between the moment on which every trainer had its first step and the end of the
// duration.
struct LoadLevel {
  emulator::TimedCores cores;
  std::vector<emulator::PacedResult> trainers;
  absl::Duration window;
  // That arrived in full in the window, of all trainers.
  int64_t steps = 0;
  // Of all trainers, from their first steps on.
  MissingTally missing;
  // Processor time of all servers in the window; nullopt if one does not tell.
  std::optional<double> server_cpu_seconds;
  // Processors of all servers, as they tell.
  int server_cpus = 0;

  // The lowest of the trainers' AU, and of their AU by the wall clock.
  double lowest_au() const;
  double lowest_wall_au() const;
  // Every trainer's AU is at least 90 %, the emulator's own lost time included: trainers that this
  // machine cannot pace ask less of the servers than chips would, and prove nothing.
  bool fed() const { return std::min(lowest_au(), lowest_wall_au()) >= emulator::kHighAu; }
  // Of all trainers.
  emulator::LatencyHistogram waits() const;
  double examples() const;
  double examples_per_s() const { return examples() / absl::ToDoubleSeconds(window); }
  // Cores that would have taken the examples that arrived: examples/s over a core's demand. More
  // than there are while clients fill their windows.
  double cores_worth() const { return examples_per_s() / cores.core_examples_per_s(); }
  // Cores that computed, on average: every trainer's cores times its AU.
  double cores_busy() const;
  std::optional<double> server_cpus_busy() const;
  // cores_worth() / server_cpus_busy(): examples for each second of a server's processor, over what
  // a core takes in a second.
  std::optional<double> cores_fed_per_server_cpu() const;
};

// Runs `trainers` of them. `on_time` is told how much of the duration has passed; may be null. An
// error of any trainer ends the level.
//   Unavailable  a trainer's feed came to an end: what it did until then says nothing of a rate.
absl::StatusOr<LoadLevel> RunLoadLevel(const LoadOptions& options, int trainers,
                                       const std::function<void(absl::Duration)>& on_time);

// The largest number of trainers, up to `most`, that `is_fed` says yes to; 0 if none. Takes more to
// be harder: asks 1, 2, 4, .. up to the first no (or `most`), and halves the gap below it. The
// first error is returned.
absl::StatusOr<int> LargestFed(int most, const std::function<absl::StatusOr<bool>(int)>& is_fed);

}  // namespace systole

#endif  // SYSTOLE_CLIENT_CLI_LOAD_LEVEL_H_
