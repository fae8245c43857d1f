#include "client/emulator/timing/latency_histogram.h"

#include "gtest/gtest.h"

namespace systole::emulator {
namespace {

TEST(LatencyHistogramTest, AnEmptyHistogramReturnsZero) {
  const LatencyHistogram histogram;
  EXPECT_EQ(histogram.Percentile(0.99), absl::ZeroDuration());
  EXPECT_EQ(histogram.max(), absl::ZeroDuration());
  EXPECT_EQ(histogram.count(), 0);
}

TEST(LatencyHistogramTest, SmallValuesAreExact) {
  LatencyHistogram histogram;
  for (int ns = 1; ns <= 100; ++ns) histogram.Add(absl::Nanoseconds(ns));
  EXPECT_EQ(histogram.Percentile(0.0), absl::Nanoseconds(1));
  EXPECT_EQ(histogram.Percentile(0.5), absl::Nanoseconds(50));
  EXPECT_EQ(histogram.Percentile(0.9), absl::Nanoseconds(90));
  EXPECT_EQ(histogram.Percentile(0.99), absl::Nanoseconds(99));
  EXPECT_EQ(histogram.Percentile(1.0), absl::Nanoseconds(100));
}

TEST(LatencyHistogramTest, PercentilesAreTooHighByAtMostASixtyFourth) {
  for (int64_t ns = 1; ns < int64_t{1} << 60; ns = ns * 3 + 1) {
    LatencyHistogram histogram;
    histogram.Add(absl::Nanoseconds(ns));
    histogram.Add(absl::Hours(24 * 365 * 100));
    const absl::Duration median = histogram.Percentile(0.5);
    EXPECT_GE(median, absl::Nanoseconds(ns));
    EXPECT_LE(median, absl::Nanoseconds(ns) * (1 + 1.0 / 64)) << ns;
  }
}

TEST(LatencyHistogramTest, ThePercentileIsNeverAboveTheMaximum) {
  LatencyHistogram histogram;
  histogram.Add(absl::Milliseconds(5));
  EXPECT_EQ(histogram.Percentile(0.5), absl::Milliseconds(5));
  EXPECT_EQ(histogram.max(), absl::Milliseconds(5));
}

TEST(LatencyHistogramTest, MergingCombinesCountsPercentilesAndMaximum) {
  LatencyHistogram a, b;
  for (int i = 0; i < 9; ++i) a.Add(absl::ZeroDuration());
  b.Add(absl::Nanoseconds(70));
  a.Merge(b);
  EXPECT_EQ(a.count(), 10);
  EXPECT_EQ(a.Percentile(0.9), absl::ZeroDuration());
  EXPECT_EQ(a.Percentile(0.91), absl::Nanoseconds(70));
  EXPECT_EQ(a.max(), absl::Nanoseconds(70));
}

}  // namespace
}  // namespace systole::emulator
