// Sums over one run in virtual time, and a histogram of the waits for steps. TimingBooks does not
// keep the steps themselves. report/step_history.h keeps them, in bounded memory.
//
// Thread-compatible value type.
#ifndef SYSTOLE_CLIENT_EMULATOR_TIMING_TIMING_BOOKS_H_
#define SYSTOLE_CLIENT_EMULATOR_TIMING_TIMING_BOOKS_H_

#include <cstdint>

#include "client/emulator/timing/latency_histogram.h"
#include "client/emulator/timing/step_record.h"
#include "client/emulator/timing/utilisation.h"

namespace systole::emulator {

class TimingBooks {
 public:
  // REQUIRES: records come in order and all have the same number of cores.
  void Add(const StepRecord& record);
  // See UtilisationMeter::AddOpenWait(). Also adds `wait` to waits().
  void AddOpenWait(absl::Duration wait);

  int64_t steps() const { return steps_; }
  // The wait of the first step, which utilisation() leaves out.
  absl::Duration first_wait() const { return first_wait_; }
  Utilisation utilisation() const { return meter_.result(); }
  // The waits for all steps but the first. A wait lasts from the end of the step before until the
  // last core had its slice. The wait is 0 if all cores had their slices when that step ended.
  const LatencyHistogram& waits() const { return waits_; }

 private:
  int64_t steps_ = 0;
  absl::Duration first_wait_;
  UtilisationMeter meter_;
  LatencyHistogram waits_;
};

}  // namespace systole::emulator

#endif  // SYSTOLE_CLIENT_EMULATOR_TIMING_TIMING_BOOKS_H_
