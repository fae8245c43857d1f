// The training loop's sums and reports at some step. With them a later run goes on as if there had
// been no break.
//
// Thread-compatible value types.
#ifndef SYSTOLE_CLIENT_EMULATOR_TRAINING_LOOP_STATE_H_
#define SYSTOLE_CLIENT_EMULATOR_TRAINING_LOOP_STATE_H_

#include <cstdint>
#include <vector>

#include "absl/time/time.h"
#include "client/emulator/training/trainer.h"
#include "client/emulator/training/training_report.h"

namespace systole::emulator {

// Sums over valid examples; a Score holds their means.
struct ScoreSums {
  int64_t examples = 0;
  int64_t correct = 0;
  double loss = 0;

  void Add(const StepResult& result) {
    examples += result.valid;
    correct += result.correct;
    loss += result.loss * static_cast<double>(result.valid);
  }
  Score score() const {
    if (examples == 0) return {};
    const auto n = static_cast<double>(examples);
    return {.examples = examples, .loss = loss / n, .accuracy = static_cast<double>(correct) / n};
  }
};

struct LoopState {
  // The epochs that have ended, with their validation.
  std::vector<EpochReport> epochs;
  // The current epoch so far. Its field `training` is set at the end of the epoch. Until then,
  // `sums` has the sums.
  EpochReport current;
  ScoreSums sums;
  // The next step of the current epoch, counted from 0. Equals current.steps, except if the run was
  // resumed with another global batch within this epoch. Then this field counts the epoch's
  // examples before the resume in steps of the new batch size.
  int64_t step_in_epoch = 0;
  // As in TrainingReport, for the run so far.
  absl::Duration training_time;
  absl::Duration first_step_wait;
};

}  // namespace systole::emulator

#endif  // SYSTOLE_CLIENT_EMULATOR_TRAINING_LOOP_STATE_H_
