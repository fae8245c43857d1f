#include "client/lanes/wire_chooser.h"

#include <algorithm>
#include <cstdint>
#include <limits>

#include "client/lanes/feed_lanes.h"
#include "gtest/gtest.h"

namespace systole {
namespace {

// Steps until the form changes, at most `most`; `most` + 1 if it does not.
int64_t StepsToChange(WireChooser& chooser, int64_t waited_us, int64_t sent_us,
                      int64_t most = 5000) {
  for (int64_t step = 1; step <= most; ++step) {
    chooser.SliceBegins(waited_us, sent_us);
    if (chooser.StepEnds(/*held=*/false)) return step;
  }
  return most + 1;
}

// One whose stream has begun and whose first step is over.
WireChooser Begun(v1::Wire wire, double ratio) {
  WireChooser chooser(wire, ratio);
  chooser.StreamBegins();
  EXPECT_FALSE(chooser.StepEnds(false));
  return chooser;
}

TEST(WireChooserTest, AutoBeginsFinishedAndBecomesCompactWhenSendingTakesTheTime) {
  WireChooser chooser = Begun(v1::AUTO, 4);
  EXPECT_FALSE(chooser.compact());
  EXPECT_EQ(StepsToChange(chooser, /*waited_us=*/20, /*sent_us=*/80), 8);
  EXPECT_TRUE(chooser.compact());
}

TEST(WireChooserTest, AutoStaysFinishedWhileTheMakingLimits) {
  WireChooser chooser = Begun(v1::AUTO, 4);
  EXPECT_EQ(StepsToChange(chooser, 21, 79), 5001);
}

TEST(WireChooserTest, AutoGoesBackOnceFinishedWouldFitTwice) {
  WireChooser chooser = Begun(v1::AUTO, 4);
  StepsToChange(chooser, 0, 100);
  // FINISHED would take 4 * 13 of 100.
  EXPECT_EQ(StepsToChange(chooser, 87, 13), 5001);
  // 4 * 12. After one change it takes twice as many steps.
  EXPECT_LE(StepsToChange(chooser, 88, 12), 2 * 16);
  EXPECT_FALSE(chooser.compact());
}

TEST(WireChooserTest, EveryChangeDoublesTheStepsForTheNext) {
  WireChooser chooser = Begun(v1::AUTO, 2);
  int64_t wanted = 8;
  for (int change = 0; change < 20; ++change) {
    const bool compact = chooser.compact();
    EXPECT_EQ(compact ? StepsToChange(chooser, 100, 1) : StepsToChange(chooser, 1, 100), wanted);
    EXPECT_NE(chooser.compact(), compact);
    wanted = std::min<int64_t>(2 * wanted, WireChooser::kMaxWantedSteps);
  }
}

TEST(WireChooserTest, StreamsThatEndAndAreOpenedAnewNeverFreezeIt) {
  WireChooser chooser(v1::AUTO, 2);
  for (int change = 0; change < 20; ++change) {
    const bool compact = chooser.compact();
    int streams = 0;
    for (; chooser.compact() == compact && streams < 10; ++streams) {
      chooser.StreamBegins();
      // One step less than the stream has: its first does not count.
      ASSERT_FALSE(chooser.StepEnds(false));
      if (compact) {
        StepsToChange(chooser, 100, 1, kStepsPerStream - 1);
      } else {
        StepsToChange(chooser, 1, 100, kStepsPerStream - 1);
      }
    }
    EXPECT_EQ(streams, 1) << change;
  }
}

TEST(WireChooserTest, AStepThatTheClientHeldUpProvesNothingNorDoesTheNext) {
  WireChooser chooser = Begun(v1::AUTO, 4);
  for (int round = 0; round < 100; ++round) {
    for (int step = 0; step < 7; ++step) {
      chooser.SliceBegins(0, 100);
      EXPECT_FALSE(chooser.StepEnds(/*held=*/false));
    }
    chooser.SliceBegins(0, 1'000'000);
    EXPECT_FALSE(chooser.StepEnds(/*held=*/true));
  }
  // What a pause made slow arrives with the step after it.
  chooser.SliceBegins(0, 1'000'000);
  EXPECT_FALSE(chooser.StepEnds(false));
  EXPECT_EQ(StepsToChange(chooser, 100, 100), 5001);
}

TEST(WireChooserTest, AStreamsFirstStepProvesNothing) {
  WireChooser chooser = Begun(v1::AUTO, 4);
  for (int stream = 0; stream < 100; ++stream) {
    chooser.StreamBegins();
    chooser.SliceBegins(0, 1'000'000);
    EXPECT_FALSE(chooser.StepEnds(false));
    for (int step = 0; step < 7; ++step) {
      chooser.SliceBegins(100, 1);
      EXPECT_FALSE(chooser.StepEnds(false));
    }
  }
}

TEST(WireChooserTest, AServerThatSaysNothingOrNonsenseChangesNothingForGood) {
  WireChooser silent = Begun(v1::AUTO, 4);
  EXPECT_EQ(StepsToChange(silent, 0, 0), 5001);
  WireChooser negative = Begun(v1::AUTO, 4);
  EXPECT_EQ(StepsToChange(negative, -5, std::numeric_limits<int64_t>::min()), 5001);
  WireChooser huge = Begun(v1::AUTO, 4);
  EXPECT_EQ(
      StepsToChange(huge, std::numeric_limits<int64_t>::max(), std::numeric_limits<int64_t>::max()),
      5001);
}

TEST(WireChooserTest, FinishedAndCompactNeverChange) {
  for (const v1::Wire wire : {v1::FINISHED, v1::COMPACT}) {
    WireChooser chooser = Begun(wire, 4);
    EXPECT_EQ(chooser.compact(), wire == v1::COMPACT);
    EXPECT_EQ(StepsToChange(chooser, 0, 100), 5001);
    EXPECT_EQ(StepsToChange(chooser, 100, 0), 5001);
  }
  WireChooser none;
  EXPECT_FALSE(none.compact());
  EXPECT_EQ(StepsToChange(none, 0, 100), 5001);
}

}  // namespace
}  // namespace systole
