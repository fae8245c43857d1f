// The books of one run in virtual time: sums, the waits for each step, and the steps themselves
// as far as there is room.
//
// Thread-compatible value type.
#ifndef SYSTOLE_CLIENT_EMULATOR_TIMING_TIMING_BOOKS_H_
#define SYSTOLE_CLIENT_EMULATOR_TIMING_TIMING_BOOKS_H_

#include <cstdint>
#include <vector>

#include "client/emulator/timing/latency_histogram.h"
#include "client/emulator/timing/step_record.h"
#include "client/emulator/timing/utilisation.h"

namespace systole::emulator {

// Records kept of a run of `num_cores` cores: some 100,000 steps of 8 cores, in 20 MB.
int64_t MaxStepRecords(int num_cores);

class TimingBooks {
 public:
  // REQUIRES: records come in order and have equally many cores.
  void Add(StepRecord record);
  // See UtilisationMeter; also counts among waits(), with the time it had lasted.
  void AddOpenWait(absl::Duration wait);

  int64_t steps() const { return steps_; }
  // Of the first step, which the utilisation leaves out.
  absl::Duration first_wait() const { return first_wait_; }
  Utilisation utilisation() const { return meter_.result(); }
  // From the moment the cores wanted a step (the end of the step before) until the last of them had
  // its slice; 0 for a step that was there in time. Without the first step.
  const LatencyHistogram& waits() const { return waits_; }

  // Every record_stride()-th step from step 0 on. When MaxStepRecords are kept, every second one is
  // dropped and the stride doubles. Sums and waits are of all steps.
  const std::vector<StepRecord>& records() const { return records_; }
  int64_t record_stride() const { return record_stride_; }

 private:
  int64_t steps_ = 0;
  absl::Duration first_wait_;
  UtilisationMeter meter_;
  LatencyHistogram waits_;
  std::vector<StepRecord> records_;
  int64_t record_stride_ = 1;
};

}  // namespace systole::emulator

#endif  // SYSTOLE_CLIENT_EMULATOR_TIMING_TIMING_BOOKS_H_
