// What the outputs of a plan cost to make, from examples that are timed now and then. It tells
// people which output to look at; nothing is decided by it.
//
// Thread-safe.
#ifndef SYSTOLE_CORE_PLAN_OUTPUT_COSTS_H_
#define SYSTOLE_CORE_PLAN_OUTPUT_COSTS_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/time/time.h"

namespace systole {

class OutputCosts {
 public:
  explicit OutputCosts(size_t outputs) : nanoseconds_(outputs) {}

  // Output `output` of an example took `cost` to make.
  void Add(size_t output, absl::Duration cost) {
    nanoseconds_[output].fetch_add(absl::ToInt64Nanoseconds(cost), std::memory_order_relaxed);
  }
  // The output that took longest so far. A single output is always the one. -1: none was timed.
  int Costliest() const {
    if (nanoseconds_.size() == 1) return 0;
    int costliest = -1;
    int64_t most = 0;
    for (size_t i = 0; i < nanoseconds_.size(); ++i) {
      const int64_t cost = nanoseconds_[i].load(std::memory_order_relaxed);
      if (cost <= most) continue;
      most = cost;
      costliest = static_cast<int>(i);
    }
    return costliest;
  }

 private:
  std::vector<std::atomic<int64_t>> nanoseconds_;
};

}  // namespace systole

#endif  // SYSTOLE_CORE_PLAN_OUTPUT_COSTS_H_
