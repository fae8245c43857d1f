// Paced mode. Each step of the cores lasts as long as on the real chip, by the wall clock. So real
// servers have the load that the real chip would give them. Nothing is computed.
//
// There are two clocks. The virtual clock (infeed_clock.h) says when steps start and end. The
// virtual ends of steps are the deadlines of this loop, so the loop's lateness does not add up. The
// wall clock says when slices arrive, and measures the loop's waits. The time that the loop itself
// loses is measured (PacingOverhead) and never booked as a stall:
//   * If the loop is late by at most a step, it catches up by the next step's deadline.
//   * If the loop is late by more than a step, the virtual clock is moved on (StepRecord.overhead).
//     Otherwise the loop would catch up with a burst of short steps, and would take steps from the
//     feed faster than the chip does.
//
// One thread is enough to pace all cores, because all cores start a step at the same moment, when
// the last core has its slice.
//
// Single-thread.
#ifndef SYSTOLE_CLIENT_EMULATOR_TIMING_PACED_RUN_H_
#define SYSTOLE_CLIENT_EMULATOR_TIMING_PACED_RUN_H_

#include <cstdint>
#include <functional>
#include <limits>
#include <optional>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "client/emulator/timing/infeed_clock.h"
#include "client/emulator/timing/slice_arrival.h"
#include "client/emulator/timing/timing_books.h"
#include "core/concurrency/pace.h"

namespace systole::emulator {

struct PacedOptions {
  InfeedOptions infeed;
  // The run ends after max_steps steps, or with the first step whose end is max_duration or more
  // after the start of step 0. It also ends if the feed ends or is cancelled. If the feed is
  // cancelled during a wait, the wait counts (Utilisation::open_wait).
  int64_t max_steps = std::numeric_limits<int64_t>::max();
  absl::Duration max_duration = absl::InfiniteDuration();
  Pacer pacer;
  // Called after every step, with the virtual time since the first step started. May be null.
  std::function<void(const StepRecord& record, absl::Duration elapsed)> on_step;
};

// The emulator's own time, over all steps.
struct PacingOverhead {
  absl::Duration noticing;      // From when a step can be taken until the loop has taken it.
  absl::Duration max_noticing;  // The longest noticing of one step.
  absl::Duration work;          // The loop's work between having a step and waiting for its end.
  absl::Duration max_late;      // The most by which the loop was late at a step's end.
};

struct PacedResult {
  TimingBooks books;
  PacingOverhead overhead;
  // Compute time / wall time from the first step's end to the end of the run, an open wait
  // included. This is the AU (utilisation.h) if the time that the emulator itself loses counts as
  // lost by the chip. nullopt if no time was counted.
  std::optional<double> wall_au;
};

// An error of `pop` is passed on unchanged. Cancelled is the exception: it ends the run without an
// error.
//   InvalidArgument     an option is out of range.
//   FailedPrecondition  cores are given different steps, or only some cores are given a step.
absl::StatusOr<PacedResult> RunPaced(const PopArrival& pop, const PacedOptions& options);

}  // namespace systole::emulator

#endif  // SYSTOLE_CLIENT_EMULATOR_TIMING_PACED_RUN_H_
