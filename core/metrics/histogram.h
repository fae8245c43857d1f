// How often a number fell between bounds, as a histogram of Prometheus counts it.
#ifndef SYSTOLE_CORE_METRICS_HISTOGRAM_H_
#define SYSTOLE_CORE_METRICS_HISTOGRAM_H_

#include <atomic>
#include <cstdint>
#include <vector>

#include "absl/types/span.h"

namespace systole {

// A histogram as it is now. Bucket i has the numbers that are greater than bounds[i - 1], if there
// is such a bound, and at most bounds[i]. The last bucket has no upper bound, so there is one
// bucket more than bounds.
struct HistogramReading {
  std::vector<double> bounds;
  std::vector<int64_t> counts;
  double sum = 0;  // The sum of all numbers.

  int64_t count() const;  // How many numbers there are.
};

// Thread-safe, and adds without a lock. If a reading is made while numbers are added, its sum may
// lack some of these numbers.
class Histogram {
 public:
  // `bounds` ascend. They are not copied, and must outlive this object, so use a constant.
  explicit Histogram(absl::Span<const double> bounds)
      : bounds_(bounds), counts_(bounds.size() + 1) {}

  // O(log of the number of bounds).
  void Add(double number);

  HistogramReading Read() const;

 private:
  const absl::Span<const double> bounds_;
  std::vector<std::atomic<int64_t>> counts_;
  std::atomic<double> sum_ = 0;
};

}  // namespace systole

#endif  // SYSTOLE_CORE_METRICS_HISTOGRAM_H_
