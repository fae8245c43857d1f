// A history of a run's steps in bounded memory. A row is one step at first. When there is no room
// for another row, neighbouring rows are merged in pairs. From then on a row covers twice as many
// steps. Sums, smallest and largest values are kept. So no spike is lost, but the exact step of a
// spike is forgotten.
//
// Thread-compatible.
#ifndef SYSTOLE_CLIENT_EMULATOR_REPORT_STEP_HISTORY_H_
#define SYSTOLE_CLIENT_EMULATOR_REPORT_STEP_HISTORY_H_

#include <cstdint>
#include <vector>

#include "absl/time/time.h"
#include "absl/types/span.h"

namespace systole::emulator {

// One step. A time that the run's mode does not have is zero. Loss, accuracy and learning rate are
// reported only for modes that have them.
struct StepEntry {
  int64_t step = 0;             // Counted from 0; a run from a checkpoint begins later.
  absl::Duration start;         // Since the run's start.
  absl::Duration infeed_stall;  // Waiting for data.
  absl::Duration compute;
  absl::Duration barrier;  // Waiting for the slowest core.
  double loss = 0;
  double accuracy = 0;
  double learning_rate = 0;
};

// Mean, smallest and largest of the finite losses (or accuracies) of some steps. If no value is
// finite, all three are NaN.
struct Spread {
  double mean = 0;
  double min = 0;
  double max = 0;
  int64_t values = 0;  // How many values are finite; `mean` is their mean.
};

// A row of the history: `steps` consecutive steps.
struct StepRow {
  int64_t first_step = 0;
  int64_t steps = 0;
  absl::Duration start;                           // Of the first step.
  absl::Duration infeed_stall, compute, barrier;  // Sums.
  absl::Duration longest;                         // Of the longest step: stall + compute + barrier.
  Spread loss, accuracy;
  double learning_rate = 0;  // Of the first step.
};

class StepHistory {
 public:
  static constexpr size_t kMaxRows = 1024;

  // Adds the next step. REQUIRES (CHECK): its number is the last step's plus 1. O(1) amortised.
  void Add(const StepEntry& entry);

  // Every row but the last covers steps_per_row() steps.
  const std::vector<StepRow>& rows() const { return rows_; }
  int64_t steps_per_row() const { return steps_per_row_; }
  // Steps in all rows.
  int64_t steps() const { return steps_; }
  // All rows as one. REQUIRES: steps() > 0.
  StepRow Total() const;

 private:
  std::vector<StepRow> rows_;
  int64_t steps_per_row_ = 1;
  int64_t steps_ = 0;
};

// Merges neighbours of `rows` into at most `max_rows` rows. Each merged row but the last is made of
// the same number of rows. REQUIRES: max_rows > 0.
std::vector<StepRow> MergeRows(absl::Span<const StepRow> rows, size_t max_rows);

}  // namespace systole::emulator

#endif  // SYSTOLE_CLIENT_EMULATOR_REPORT_STEP_HISTORY_H_
