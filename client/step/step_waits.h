// A histogram of a trainer's waits for its steps.
//
// Thread-compatible value type.
#ifndef SYSTOLE_CLIENT_STEP_STEP_WAITS_H_
#define SYSTOLE_CLIENT_STEP_STEP_WAITS_H_

#include <array>
#include <cstddef>
#include <cstdint>

#include "absl/time/time.h"
#include "core/metrics/histogram.h"

namespace systole {

// Unlike Histogram, this class has plain numbers, which threads may not share without a lock. A
// feed holds a lock anyway when it adds a wait and when it copies its numbers.
class StepWaits {
 public:
  // In seconds. A wait up to the first bound counts as hardly waiting (client/verdict). The last
  // bound is the time after which a feed gives up: `retry_for`, ten minutes by default.
  static constexpr std::array<double, 14> kBounds = {50e-6, 200e-6, 0.001, 0.002, 0.005, 0.01, 0.02,
                                                     0.05,  0.1,    0.5,   2,     10,    60,   600};

  // A negative wait counts as 0.
  void Add(absl::Duration waited);
  HistogramReading Read() const;

 private:
  std::array<int64_t, kBounds.size() + 1> counts_ = {};
  double seconds_ = 0;
};

}  // namespace systole

#endif  // SYSTOLE_CLIENT_STEP_STEP_WAITS_H_
