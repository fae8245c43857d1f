// The results of a paced or a replayed run, and their text. The text names the mode, because the
// report of another mode, functional (training/), says nothing about a chip's time.
// report/timed_run.h makes the JSON and the page.
//
// Thread-compatible value types.
#ifndef SYSTOLE_CLIENT_EMULATOR_TIMING_TIMING_REPORT_H_
#define SYSTOLE_CLIENT_EMULATOR_TIMING_TIMING_REPORT_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "client/emulator/timing/infeed_clock.h"
#include "client/emulator/timing/paced_run.h"
#include "client/emulator/timing/timing_books.h"

namespace systole::emulator {

// The cores that were timed, and what each core takes in a step.
struct TimedCores {
  std::string model;  // Empty if the step's time was given as a number.
  std::string slice;  // "v3-8"; empty if `model` is empty.
  InfeedOptions infeed;
  int64_t per_core_batch = 0;
  // The bytes of one core's slice of a step: as the feed delivers the slice, and as the chip stores
  // it.
  int64_t slice_bytes = 0;
  int64_t padded_slice_bytes = 0;

  // Examples a second that one core takes if it never waits.
  double core_examples_per_s() const {
    return static_cast<double>(per_core_batch) / absl::ToDoubleSeconds(infeed.step_time);
  }
};

struct TimingReport {
  TimedCores cores;
  TimingBooks books;
  // Set for a paced run, absent for a replay.
  std::optional<PacingOverhead> overhead;
  std::optional<double> wall_au;
  // Remarks that qualify the numbers; a sentence each.
  std::vector<std::string> notes;

  std::string ToText() const;
};

// "p50 0.0 ms, p90 ..".
std::string PercentilesText(const LatencyHistogram& latencies);
// Two lines: about the cores, and about one core's slice.
std::string CoresText(const TimedCores& cores);

}  // namespace systole::emulator

#endif  // SYSTOLE_CLIENT_EMULATOR_TIMING_TIMING_REPORT_H_
