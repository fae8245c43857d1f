// Counts how many numbers lie between given bounds, as a histogram of Prometheus does.
#ifndef SYSTOLE_CORE_METRICS_HISTOGRAM_H_
#define SYSTOLE_CORE_METRICS_HISTOGRAM_H_

#include <atomic>
#include <cstdint>
#include <vector>

#include "absl/types/span.h"

namespace systole {

// The present state of a histogram. counts[i] is the number of values that are greater than
// bounds[i - 1] and at most bounds[i]. The first count has no lower bound, and the last one has no
// upper bound. So there is one count more than bounds.
struct HistogramReading {
  std::vector<double> bounds;
  std::vector<int64_t> counts;
  double sum = 0;  // The sum of all values.

  int64_t count() const;  // How many values there are.
};

// Thread-safe, and adds without a lock. If a reading is made while values are added, the reading's
// sum may lack some of these values.
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
