#include "server/statusz/status_history.h"

#include <optional>
#include <vector>

#include "gtest/gtest.h"
#include "tests/server/statusz/sample_view.h"

namespace systole {
namespace {

TEST(StatusHistoryTest, KeepsASampleEveryFiveSecondsForTenMinutes) {
  const ServerView view = SampleView();
  StatusHistory history;
  for (int second = 0; second < 3600; ++second) {
    const absl::Duration now = absl::Seconds(second);
    EXPECT_EQ(history.Wants(now), second % 5 == 0);
    if (history.Wants(now)) history.Add(now, view.families, {});
  }
  ServerView filled = {.families = view.families};
  history.Fill(absl::Seconds(3600), filled);
  // 121 samples of the times from 2995 s to 3595 s, and the sample of now.
  ASSERT_EQ(filled.history.size(), 122u);
  EXPECT_EQ(filled.history.front().at, absl::Seconds(2995));
  EXPECT_EQ(filled.history.back().at, absl::Seconds(3600));
  EXPECT_EQ(filled.history.back().steps, 123456);
  EXPECT_EQ(filled.history.back().wait_ratio, .25);
}

TEST(StatusHistoryTest, StreamsAreComparedWithTheSampleBeforeTheLast) {
  StatusHistory history;
  for (int i = 1; i <= 3; ++i) history.Add(absl::Seconds(5 * i), {}, {{.number = i}});
  ServerView view;
  history.Fill(absl::Seconds(16), view);
  ASSERT_EQ(view.streams_before.size(), 1u);
  EXPECT_EQ(view.streams_before[0].number, 2);
}

TEST(StatusHistoryTest, WithoutTrainerReportsTheMeanWaitIsUnknown) {
  const std::vector<MetricFamily> families =
      FamiliesOf(kTrainerMetricPrefix, ReadTrainerMetrics({}));
  EXPECT_EQ(MeanWait(families), std::nullopt);
  EXPECT_EQ(MeanWait({}), std::nullopt);
}

}  // namespace
}  // namespace systole
