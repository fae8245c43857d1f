// Options of a StepScheduler.
//
// Thread-compatible.
#ifndef SYSTOLE_CORE_ENGINE_STEP_SCHEDULER_OPTIONS_H_
#define SYSTOLE_CORE_ENGINE_STEP_SCHEDULER_OPTIONS_H_

#include <cstdint>
#include <limits>

namespace systole {

struct StepSchedulerOptions {
  // About this many threads work at a time.
  int threads = 1;
  int64_t memory_budget_bytes = int64_t{1} << 30;
  int max_sealed_slices = std::numeric_limits<int>::max();
  // Whether streams of one plan share slices.
  bool share_slices = false;
  // A thread gives the rest of its task back once its work has cost this much (nanoseconds).
  double turn = std::numeric_limits<double>::infinity();
};

}  // namespace systole

#endif  // SYSTOLE_CORE_ENGINE_STEP_SCHEDULER_OPTIONS_H_
