#include "client/emulator/timing/latency_histogram.h"

#include <algorithm>
#include <bit>

namespace systole::emulator {

// Values below 128 have a bucket each. A larger value is cut down to its 7 highest bits. The first
// of these bits is always 1, so there are 64 buckets for each position of the highest bit.
int LatencyHistogram::BucketOf(uint64_t ns) {
  const int shift = std::max(0, static_cast<int>(std::bit_width(ns)) - 7);
  return shift * kSubBuckets + static_cast<int>(ns >> shift);
}

uint64_t LatencyHistogram::LastOf(int bucket) {
  if (bucket < 2 * kSubBuckets) return static_cast<uint64_t>(bucket);
  const int shift = bucket / kSubBuckets - 1;
  const auto top = static_cast<uint64_t>(bucket - shift * kSubBuckets);
  return ((top + 1) << shift) - 1;
}

void LatencyHistogram::Add(absl::Duration latency) {
  const int64_t ns = std::max<int64_t>(0, absl::ToInt64Nanoseconds(latency));
  ++counts_[static_cast<size_t>(BucketOf(static_cast<uint64_t>(ns)))];
  ++count_;
  max_ = std::max(max_, latency);
}

void LatencyHistogram::Merge(const LatencyHistogram& other) {
  for (size_t i = 0; i < counts_.size(); ++i) counts_[i] += other.counts_[i];
  count_ += other.count_;
  max_ = std::max(max_, other.max_);
}

absl::Duration LatencyHistogram::Percentile(double fraction) const {
  int64_t seen = 0;
  for (int bucket = 0; bucket < kBuckets; ++bucket) {
    seen += counts_[static_cast<size_t>(bucket)];
    if (seen > 0 && static_cast<double>(seen) >= fraction * static_cast<double>(count_)) {
      return std::min(max_, absl::Nanoseconds(static_cast<int64_t>(LastOf(bucket))));
    }
  }
  return absl::ZeroDuration();
}

}  // namespace systole::emulator
