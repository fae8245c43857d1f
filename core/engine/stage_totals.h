// How long the stages of slices took, added up over all streams of an engine, and how long streams
// waited for their steps.
//
// Thread-safe, and adds without a lock.
#ifndef SYSTOLE_CORE_ENGINE_STAGE_TOTALS_H_
#define SYSTOLE_CORE_ENGINE_STAGE_TOTALS_H_

#include <atomic>

#include "absl/time/time.h"
#include "core/batch/stage_times.h"
#include "core/metrics/histogram.h"

namespace systole {

class StageTotals {
 public:
  StageTotals();

  // A slice with these times was delivered.
  void Add(const StageTimes& stages);
  // A stream has got all its slices of a step. It waited for the time `wait` until these slices
  // were made.
  void AddStep(absl::Duration wait);

  // The sums of the times. `costliest` is not set.
  StageTimes stages() const;
  // Seconds. The first bucket has the steps for which no stream waited.
  HistogramReading step_waits() const { return step_waits_.Read(); }

 private:
  // Thousands of slices may wait at a time, so a 64-bit sum of nanoseconds could overflow within
  // days.
  std::atomic<double> read_seconds_ = 0;
  std::atomic<double> make_seconds_ = 0;
  std::atomic<double> wait_seconds_ = 0;
  Histogram step_waits_;
};

}  // namespace systole

#endif  // SYSTOLE_CORE_ENGINE_STAGE_TOTALS_H_
