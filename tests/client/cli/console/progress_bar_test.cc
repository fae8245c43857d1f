#include "client/cli/console/progress_bar.h"

#include <algorithm>
#include <sstream>
#include <string>

#include "core/concurrency/worker_pool.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/wait_until.h"

namespace systole {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;

int64_t Drawings(const std::string& text) { return std::count(text.begin(), text.end(), '\r'); }

// A terminal with a clock that the test turns by hand.
struct Terminal {
  std::ostringstream text;
  absl::Duration now;
  int columns = 100;

  Console console(bool is_terminal = true) {
    return {.out = text, .err = text, .err_is_terminal = is_terminal, .terminal_columns = [this] {
              return columns;
            }};
  }
  // Options of a bar that only Add() draws.
  ProgressBarOptions Options(const std::string& label, std::optional<int64_t> total) {
    return {.label = label,
            .total = total,
            .clock = [this] { return now; },
            .redraw_every = absl::InfiniteDuration()};
  }
};

Progress Packing() {
  return {.label = "packing", .done = 1620, .total = 3600, .per_second = 120.0};
}

TEST(ProgressLineTest, ShowsPercentageCountRateTimeLeftAndRemark) {
  EXPECT_EQ(ProgressLine(Packing(), 100),
            "packing [=============>                ]  45%  1620/3600  120/s  17 s left");
  Progress training = {.label = "training", .done = 3, .total = 725, .per_second = 0.25};
  training.remark = "epoch 1/5, loss 1.634";
  EXPECT_EQ(ProgressLine(training, 120),
            "training [>                             ]   0%  3/725  0.25/s  48 min left  "
            "epoch 1/5, loss 1.634");
}

TEST(ProgressLineTest, BytesAndTimesHaveTheirUnits) {
  EXPECT_EQ(ProgressLine({.label = "verifying",
                          .unit = ProgressUnit::kBytes,
                          .done = 500'000'000,
                          .total = 2'000'000'000,
                          .per_second = 410e6},
                         100),
            "verifying [=======>                      ]  25%  0.50/2.00 GB  410 MB/s  4 s left");
  EXPECT_EQ(ProgressLine({.label = "pacing",
                          .unit = ProgressUnit::kMilliseconds,
                          .done = 12'345,
                          .total = 60'000,
                          .per_second = 1000.0},
                         100),
            "pacing [======>                       ]  20%  12/60 s  48 s left");
}

TEST(ProgressLineTest, AnUnknownTotalShowsNoPercentage) {
  EXPECT_EQ(ProgressLine({.label = "feeding", .done = 17, .per_second = 12.5}, 80),
            "feeding  17  12.5/s");
  EXPECT_EQ(ProgressLine({.label = "connecting"}, 80), "connecting");
}

TEST(ProgressLineTest, ANoticeStandsInThePlaceOfTheRate) {
  Progress feeding = {.label = "feeding", .done = 17, .total = 100, .per_second = 3.0};
  feeding.remark = "loss 1";
  feeding.notice = "server A lost, asking B (12 s)";
  EXPECT_EQ(
      ProgressLine(feeding, 100),
      "feeding [=====>                        ]  17%  17/100  server A lost, asking B (12 s)");
  EXPECT_EQ(ProgressLine(feeding, 60), "feeding  17%  17/100  server A lost, asking B (12 s)");
  EXPECT_EQ(ProgressLine(feeding, 35), "server A lost, asking B (12 s)");
}

// A line that fills the last column makes some terminals go to the next line.
TEST(ProgressLineTest, IsShorterThanAnyTerminal) {
  Progress long_one = Packing();
  long_one.remark = "epoch 1/5, loss 1.634";
  Progress waiting = long_one;
  waiting.notice = "server 10.120.130.140:8470 lost, asking 10.120.130.141:8470 (123 s)";
  for (int columns = 0; columns <= 150; ++columns) {
    EXPECT_LT(ProgressLine(long_one, columns).size(), std::max(columns, 1)) << columns;
    EXPECT_LT(ProgressLine(waiting, columns).size(), std::max(columns, 1)) << columns;
  }
  EXPECT_EQ(ProgressLine(long_one, 50), "packing  45%  17 s left  epoch 1/5, loss 1.634");
  EXPECT_EQ(ProgressLine(long_one, 30), "packing  45%  17 s left");
  EXPECT_EQ(ProgressLine(long_one, 6), "packi");
  EXPECT_EQ(ProgressLine(waiting, 50), "server 10.120.130.140:8470 lost, asking.. (123 s)");
}

TEST(ProgressBarTest, TakesItsRateFromTheClock) {
  Terminal terminal;
  ProgressBar bar(terminal.console(), terminal.Options("packing", 3600));
  bar.Add(36);
  EXPECT_THAT(terminal.text.str(), EndsWith("   1%  36/3600"));  // The rate is not known yet.
  terminal.now = absl::Seconds(10);
  bar.Add(36);
  EXPECT_THAT(terminal.text.str(), EndsWith("   2%  72/3600  7.20/s  8 min left"));
}

TEST(ProgressBarTest, WorkOfAnEarlierRunCountsForThePercentageButNotTheRate) {
  Terminal terminal;
  ProgressBarOptions options = terminal.Options("training", 100);
  options.done_before = 50;
  ProgressBar bar(terminal.console(), options);
  EXPECT_THAT(terminal.text.str(), EndsWith("  50%  50/100"));
  terminal.now = absl::Seconds(10);
  bar.Add(10);
  EXPECT_THAT(terminal.text.str(), EndsWith("  60%  60/100  1.00/s  41 s left"));
}

TEST(ProgressBarTest, AsksForTheNoticeWheneverItIsDrawn) {
  Terminal terminal;
  std::string notice = "server A lost, asking B (1 s)";
  ProgressBarOptions options = terminal.Options("feeding", std::nullopt);
  options.notice = [&notice] { return notice; };
  ProgressBar bar(terminal.console(), options);
  EXPECT_EQ(terminal.text.str(), "");
  bar.Redraw();
  EXPECT_THAT(terminal.text.str(), EndsWith("feeding  server A lost, asking B (1 s)"));
  notice = "";
  bar.Redraw();
  EXPECT_THAT(terminal.text.str(), EndsWith("\x1b[Kfeeding"));
}

TEST(ProgressBarTest, IsDrawnAgainThoughNothingMoves) {
  Terminal terminal;
  ProgressBarOptions options = terminal.Options("feeding", 10);
  Mutex mu;
  CondVar changed;
  int asked = 0;
  options.notice = [&] {
    MutexLock lock(mu);
    ++asked;
    changed.SignalAll();
    return "";
  };
  options.redraw_every = absl::Milliseconds(1);
  const ProgressBar bar(terminal.console(), options);
  MutexLock lock(mu);
  while (asked < 3 && changed.WaitFor(mu, absl::FromChrono(kLongestWait))) continue;
  EXPECT_GE(asked, 3);
}

TEST(ProgressBarTest, FollowsTheTerminalsWidth) {
  Terminal terminal;
  ProgressBar bar(terminal.console(), terminal.Options("packing", 100));
  terminal.columns = 20;
  bar.Add(50);
  EXPECT_THAT(terminal.text.str(), EndsWith("\x1b[Kpacking  50%"));
}

TEST(ProgressBarTest, WritesNothingWhereThereIsNoTerminal) {
  Terminal terminal;
  {
    ProgressBar bar(terminal.console(/*is_terminal=*/false), terminal.Options("packing", 2));
    bar.Add(1);
    bar.Add(1, "remark");
    bar.Redraw();
  }
  EXPECT_EQ(terminal.text.str(), "");
}

TEST(ProgressBarTest, LeavesAnEmptyLineBehind) {
  Terminal terminal;
  { ProgressBar bar(terminal.console(), terminal.Options("packing", 2)); }
  EXPECT_THAT(terminal.text.str(), EndsWith("\r\x1b[K"));
}

TEST(ProgressBarTest, DrawsOnlyWhenThePercentChange) {
  Terminal terminal;
  ProgressBar bar(terminal.console(), terminal.Options("packing", 1'000'000));
  for (int i = 0; i < 20'000; ++i) bar.Add(1);
  EXPECT_EQ(Drawings(terminal.text.str()), 3);  // At 0, 1 and 2 per cent.
}

TEST(ProgressBarTest, DrawsANewRemarkAtOnce) {
  Terminal terminal;
  ProgressBar bar(terminal.console(), terminal.Options("training", 1'000'000));
  bar.Add(1, "loss 1.60");
  bar.Add(1, "loss 1.60");
  EXPECT_EQ(Drawings(terminal.text.str()), 2);
  EXPECT_THAT(terminal.text.str(), EndsWith("1/1000000  loss 1.60"));
}

TEST(ProgressBarTest, StaysAtAHundredPercentWhenThereIsNothingOrTooMuchToDo) {
  Terminal terminal;
  ProgressBar none(terminal.console(), terminal.Options("packing", 0));
  EXPECT_THAT(terminal.text.str(), HasSubstr("100%  0/0"));
  ProgressBar few(terminal.console(), terminal.Options("packing", 2));
  terminal.now = absl::Seconds(5);
  few.Add(5);
  EXPECT_THAT(terminal.text.str(), EndsWith("100%  5/2  1.00/s"));
}

TEST(ProgressBarTest, CountsTheWorkOfAllThreads) {
  Terminal terminal;
  ProgressBar bar(terminal.console(), terminal.Options("packing", 1000));
  WorkerPool pool(4);
  ParallelFor(pool, 1000, [&](int64_t) { bar.Add(1); });
  EXPECT_THAT(terminal.text.str(), EndsWith("100%  1000/1000"));
}

}  // namespace
}  // namespace systole
