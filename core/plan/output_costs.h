// The times that the outputs of a plan and their transforms take, measured on a few examples.
// These times show people which output is slow. No code decides anything by them.
//
// Thread-safe.
#ifndef SYSTOLE_CORE_PLAN_OUTPUT_COSTS_H_
#define SYSTOLE_CORE_PLAN_OUTPUT_COSTS_H_

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/time/time.h"
#include "core/interrupt/lap_times.h"

namespace systole {

class OutputCosts {
 public:
  explicit OutputCosts(size_t outputs) : costs_(outputs) {}

  // Adds the time that it took to make output number `output` of an example. `times` has a part for
  // each transform.
  void Add(size_t output, const LapTimes::Times& times) {
    Cost& cost = costs_[output];
    Add(times.all, cost.all);
    for (size_t i = 0; i < times.parts.size(); ++i) Add(times.parts[i], cost.transforms[i]);
  }

  struct Costliest {
    int output = -1;  // -1: nothing was timed.
    // -1: not known, or the output's other work takes longer than each of its transforms.
    int transform = -1;
  };
  // The output that took longest so far, and the transform that takes most of its time. If the plan
  // has only one output, Find() returns that output.
  Costliest Find() const {
    Costliest costliest;
    if (costs_.size() == 1) costliest.output = 0;
    int64_t most = 0;
    for (size_t i = 0; i < costs_.size(); ++i) {
      if (IsMore(costs_[i].all, most)) costliest.output = static_cast<int>(i);
    }
    if (costliest.output < 0) return costliest;
    const Cost& cost = costs_[static_cast<size_t>(costliest.output)];
    int64_t rest = cost.all.load(std::memory_order_relaxed);
    most = 0;
    for (size_t i = 0; i < cost.transforms.size(); ++i) {
      rest -= cost.transforms[i].load(std::memory_order_relaxed);
      if (IsMore(cost.transforms[i], most)) costliest.transform = static_cast<int>(i);
    }
    if (rest > most) costliest.transform = -1;
    return costliest;
  }

 private:
  using Nanoseconds = std::atomic<int64_t>;
  struct Cost {
    Nanoseconds all = 0;
    std::array<Nanoseconds, LapTimes::kParts> transforms = {};
  };

  static void Add(absl::Duration time, Nanoseconds& to) {
    if (time == absl::ZeroDuration()) return;
    to.fetch_add(absl::ToInt64Nanoseconds(time), std::memory_order_relaxed);
  }
  // Returns whether `value` is more than `most`. If so, it becomes the new `most`.
  static bool IsMore(const Nanoseconds& value, int64_t& most) {
    const int64_t nanoseconds = value.load(std::memory_order_relaxed);
    if (nanoseconds <= most) return false;
    most = nanoseconds;
    return true;
  }

  std::vector<Cost> costs_;
};

}  // namespace systole

#endif  // SYSTOLE_CORE_PLAN_OUTPUT_COSTS_H_
