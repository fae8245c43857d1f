#include "core/metrics/histogram.h"

#include <algorithm>
#include <cstddef>
#include <numeric>

namespace systole {

int64_t HistogramReading::count() const {
  return std::accumulate(counts.begin(), counts.end(), int64_t{0});
}

void Histogram::Add(double number) {
  const auto bound = std::lower_bound(bounds_.begin(), bounds_.end(), number);
  counts_[static_cast<size_t>(bound - bounds_.begin())].fetch_add(1, std::memory_order_relaxed);
  sum_.fetch_add(number, std::memory_order_relaxed);
}

HistogramReading Histogram::Read() const {
  HistogramReading reading = {.bounds = {bounds_.begin(), bounds_.end()}};
  reading.counts.reserve(counts_.size());
  for (const std::atomic<int64_t>& count : counts_) {
    reading.counts.push_back(count.load(std::memory_order_relaxed));
  }
  reading.sum = sum_.load(std::memory_order_relaxed);
  return reading;
}

}  // namespace systole
