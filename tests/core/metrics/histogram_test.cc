#include "core/metrics/histogram.h"

#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace systole {
namespace {

using ::testing::ElementsAre;

constexpr double kBounds[] = {0, 0.5, 10};

TEST(HistogramTest, ABoundBelongsToTheBucketBelowIt) {
  Histogram histogram(kBounds);
  for (const double number : {0.0, 0.1, 0.5, 0.6, 10.0, 10.5, 1e300}) histogram.Add(number);
  const HistogramReading reading = histogram.Read();
  EXPECT_THAT(reading.bounds, ElementsAre(0, 0.5, 10));
  EXPECT_THAT(reading.counts, ElementsAre(1, 2, 2, 2));
  EXPECT_EQ(reading.count(), 7);
}

TEST(HistogramTest, TheSumIsTheTotalOfAllAddedNumbers) {
  Histogram histogram(kBounds);
  EXPECT_EQ(histogram.Read().sum, 0);
  EXPECT_EQ(histogram.Read().count(), 0);
  histogram.Add(0.25);
  histogram.Add(100);
  EXPECT_EQ(histogram.Read().sum, 100.25);
}

}  // namespace
}  // namespace systole
