// Percentiles of any number of durations in constant memory. A bucket's width is at most 1/64 of
// its values. So a percentile is at most 1.6 % too high, and exact below 128 ns. The maximum is
// exact.
//
// Thread-compatible value type.
#ifndef SYSTOLE_CLIENT_EMULATOR_TIMING_LATENCY_HISTOGRAM_H_
#define SYSTOLE_CLIENT_EMULATOR_TIMING_LATENCY_HISTOGRAM_H_

#include <array>
#include <cstdint>

#include "absl/time/time.h"

namespace systole::emulator {

// The percentiles that reports show.
inline constexpr struct {
  const char* name;
  double fraction;
} kReportedPercentiles[] = {{"p50", 0.5}, {"p90", 0.9}, {"p99", 0.99}};

class LatencyHistogram {
 public:
  // REQUIRES: latency >= 0. Counted in whole nanoseconds, rounded down.
  void Add(absl::Duration latency);
  void Merge(const LatencyHistogram& other);

  int64_t count() const { return count_; }
  absl::Duration max() const { return max_; }
  // The smallest value v for which at least `fraction` of all values are <= v. It is rounded up to
  // its bucket's end, but not above max(). 0 if there are no values. REQUIRES: 0 <= fraction <= 1.
  absl::Duration Percentile(double fraction) const;

 private:
  static constexpr int kSubBuckets = 64;
  static constexpr int kBuckets = kSubBuckets * 58;  // For up to 2^63 ns.

  static int BucketOf(uint64_t ns);
  // The largest value that falls into the bucket.
  static uint64_t LastOf(int bucket);

  std::array<int64_t, kBuckets> counts_ = {};
  int64_t count_ = 0;
  absl::Duration max_;
};

}  // namespace systole::emulator

#endif  // SYSTOLE_CLIENT_EMULATOR_TIMING_LATENCY_HISTOGRAM_H_
