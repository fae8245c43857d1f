// How one step's time was spent, core by core. All times are those of the virtual clock
// (infeed_clock.h). `start` and end() count from the beginning of the run.
//
//   end of the step before                     start                      end
//        |-- overhead --|---------- wait --------|-------- compute --------|
//                       |- infeed stall -|- barrier -|     of each core
//
// Thread-compatible value type.
#ifndef SYSTOLE_CLIENT_EMULATOR_TIMING_STEP_RECORD_H_
#define SYSTOLE_CLIENT_EMULATOR_TIMING_STEP_RECORD_H_

#include <algorithm>
#include <cstdint>
#include <vector>

#include "absl/time/time.h"

namespace systole::emulator {

struct StepRecord {
  int64_t step = 0;         // Counted from 0 in this run.
  absl::Duration overhead;  // The emulator's own lateness, not part of `wait`; 0 in replay.
  absl::Duration wait;      // The wait until the last core was fed.
  absl::Duration start;     // When all cores began to compute.
  absl::Duration compute;
  // Each core's wait for its own slice, at most `wait`.
  std::vector<absl::Duration> infeed_stall;

  // How long `core`, after it was fed, waited for the core that was fed last.
  absl::Duration barrier(int core) const { return wait - infeed_stall[static_cast<size_t>(core)]; }
  absl::Duration max_infeed_stall() const {
    return *std::max_element(infeed_stall.begin(), infeed_stall.end());
  }
  absl::Duration end() const { return start + compute; }
  // The step's time without the emulator's overhead.
  absl::Duration duration() const { return wait + compute; }
};

}  // namespace systole::emulator

#endif  // SYSTOLE_CLIENT_EMULATOR_TIMING_STEP_RECORD_H_
