// The results of a training run: numbers per epoch and for the whole run, and their text. This is
// for functional mode only. Emulation on a host is far slower than a chip, so nothing here says how
// busy a chip would be.
//
// Thread-compatible value types.
#ifndef SYSTOLE_CLIENT_EMULATOR_TRAINING_TRAINING_REPORT_H_
#define SYSTOLE_CLIENT_EMULATOR_TRAINING_TRAINING_REPORT_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace systole::emulator {

// Means over valid examples, or 0 if there was none.
struct Score {
  int64_t examples = 0;
  double loss = 0;
  double accuracy = 0;
};

struct EpochReport {
  int64_t steps = 0;
  Score training;
  std::optional<Score> validation;
  absl::Duration duration;     // The training steps and the waits for them, without validation.
  absl::Duration compute;      // The training steps alone.
  int64_t bytes_received = 0;  // For training and validation.
  // Per core: the time from when a step was wanted until the core's own slice had arrived. The wait
  // for other cores' slices does not count, and neither does the run's first step.
  std::vector<absl::Duration> infeed_stall;

  double images_per_second() const;
  absl::Duration mean_step() const;  // duration / steps.
};

struct TrainingReport {
  std::string model;
  std::string numerics = "exact";  // A NumericsName().
  int64_t num_cores = 0;
  int64_t per_core_batch = 0;
  std::vector<EpochReport> epochs;
  // The time from the loop's start to its end: waits, steps and validation.
  absl::Duration training_time;
  // The wait for the run's first step, in which the client connects and the pipeline fills.
  absl::Duration first_step_wait;

  int64_t bytes_received() const;
  std::vector<absl::Duration> infeed_stall() const;  // Per core, all epochs.
  double images_per_second() const;                  // Over all epochs' durations.

  // A table, then the sums, then `about_feed` in a line of its own, unless it is empty. The text
  // ends with the line "validation accuracy 0.NNN" if there was validation.
  std::string ToText(absl::string_view about_feed = "") const;
};

}  // namespace systole::emulator

#endif  // SYSTOLE_CLIENT_EMULATOR_TRAINING_TRAINING_REPORT_H_
