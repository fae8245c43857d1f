#include "server/traces/slow_steps.h"

#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace systole {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

// A step that took `ms` to be made and `sent_ms` to be sent, in minute `minute`.
TracedStep Step(int64_t step, int ms, int sent_ms = 0, int minute = 0) {
  return {.step = step,
          .core_end = 1,
          .times = {.read = absl::Milliseconds(ms / 2),
                    .make = absl::Milliseconds(ms - ms / 2),
                    .send = absl::Milliseconds(sent_ms)},
          .ended = absl::FromUnixSeconds(60 * minute + 7)};
}

std::vector<int64_t> NumbersOf(const std::vector<SlowStep>& steps) {
  std::vector<int64_t> numbers;
  for (const SlowStep& step : steps) numbers.push_back(step.step);
  return numbers;
}

TEST(SlowStepsTest, OfEachMinuteAndDatasetTheSlowestAreKeptSlowestFirst) {
  SlowSteps steps;
  EXPECT_THAT(steps.Read().made, IsEmpty());
  for (int i = 0; i < 100; ++i) steps.Add("a", Step(i, (i * 37) % 100, (i * 53) % 100));
  SlowStepLists lists = steps.Read();
  for (size_t i = 0; i < 5; ++i) EXPECT_EQ((lists.made[i].step * 37) % 100, 99 - i);
  for (size_t i = 0; i < 3; ++i) EXPECT_EQ((lists.sent[i].step * 53) % 100, 99 - i);
  EXPECT_THAT(lists.made, SizeIs(SlowSteps::kSlowestMade));
  EXPECT_THAT(lists.sent, SizeIs(SlowSteps::kSlowestSent));
  steps.Add("b", Step(1000, 1));
  EXPECT_THAT(steps.Read().made, SizeIs(SlowSteps::kSlowestMade + 1));
}

TEST(SlowStepsTest, ItSaysWhetherAStepIsAmongTheSlowest) {
  SlowSteps steps;
  for (int i = 0; i < 5; ++i) EXPECT_TRUE(steps.Add("a", Step(i, 10, 10)));
  EXPECT_FALSE(steps.Add("a", Step(5, 10, 10)));
  EXPECT_FALSE(steps.Add("a", Step(6, 9, 9)));
  EXPECT_TRUE(steps.Add("a", Step(7, 11, 0)));
  EXPECT_TRUE(steps.Add("a", Step(8, 0, 11)));
  EXPECT_TRUE(steps.Add("b", Step(9, 1, 1)));
  EXPECT_TRUE(steps.Add("a", Step(10, 1, 1, /*minute=*/1)));
}

TEST(SlowStepsTest, ThatAClientTookNothingMakesAStepNotSlow) {
  SlowSteps steps;
  for (int i = 0; i < 5; ++i) steps.Add("a", Step(i, 10, 10));
  TracedStep waited = Step(5, 9, 9);
  waited.times.wait = absl::Hours(1);
  EXPECT_FALSE(steps.Add("a", waited));
}

TEST(SlowStepsTest, MinutesComeNewestFirstAndOldOnesGo) {
  SlowSteps steps;
  for (int minute = 0; minute < 25; minute += 2) {
    steps.Add("b", Step(minute, 1, 0, minute));
    steps.Add("a", Step(minute + 1, 1, 0, minute));
  }
  const std::vector<int64_t> numbers = NumbersOf(steps.Read().made);
  ASSERT_THAT(numbers, SizeIs(2 * SlowSteps::kMinutes));
  EXPECT_THAT((std::vector<int64_t>(numbers.begin(), numbers.begin() + 4)),
              ElementsAre(25, 24, 23, 22));
  EXPECT_EQ(numbers.back(), 24 - 2 * (int64_t{SlowSteps::kMinutes} - 1));
}

TEST(SlowStepsTest, AClockThatIsSetBackLosesNothingOfTheNewest) {
  SlowSteps steps;
  steps.Add("a", Step(1, 1, 0, 100));
  steps.Add("a", Step(2, 1, 0, 50));
  steps.Add("a", Step(3, 1, 0, -5));
  EXPECT_THAT(NumbersOf(steps.Read().made), ElementsAre(3, 2, 1));
}

TEST(SlowStepsTest, WhatIsKeptIsBoundedWhateverClientsNameTheirDatasets) {
  SlowSteps steps;
  for (int minute = 0; minute < 30; ++minute) {
    for (int i = 0; i < 200; ++i) steps.Add(absl::StrCat("d", i), Step(i, i, i, minute));
  }
  const SlowStepLists lists = steps.Read();
  std::set<std::string> names;
  for (const std::vector<SlowStep>* const list : {&lists.made, &lists.sent}) {
    for (const SlowStep& step : *list) names.insert(step.dataset);
  }
  EXPECT_THAT(names, SizeIs(SlowSteps::kDatasets + 1));
  EXPECT_EQ(names.count("other"), 1u);
  EXPECT_LE(lists.made.size(),
            SlowSteps::kMinutes * (SlowSteps::kDatasets + 1) * SlowSteps::kSlowestMade);
  EXPECT_LE(lists.sent.size(),
            SlowSteps::kMinutes * (SlowSteps::kDatasets + 1) * SlowSteps::kSlowestSent);
}

}  // namespace
}  // namespace systole
