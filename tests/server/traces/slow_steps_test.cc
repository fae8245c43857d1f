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

bool All(const std::string&) { return true; }

std::vector<int64_t> NumbersOf(const std::vector<SlowStep>& steps) {
  std::vector<int64_t> numbers;
  for (const SlowStep& step : steps) numbers.push_back(step.step);
  return numbers;
}

TEST(SlowStepsTest, TheSlowestStepsOfEachDatasetAreKeptSlowestFirst) {
  SlowSteps steps;
  EXPECT_THAT(steps.Read(All).made, IsEmpty());
  for (int i = 0; i < 100; ++i) steps.Add("a", {"a"}, Step(i, (i * 37) % 100, (i * 53) % 100));
  SlowStepLists lists = steps.Read(All);
  for (size_t i = 0; i < 5; ++i) EXPECT_EQ((lists.made[i].step * 37) % 100, 99 - i);
  for (size_t i = 0; i < 3; ++i) EXPECT_EQ((lists.sent[i].step * 53) % 100, 99 - i);
  EXPECT_THAT(lists.made, SizeIs(SlowSteps::kSlowestMade));
  EXPECT_THAT(lists.sent, SizeIs(SlowSteps::kSlowestSent));
  // The next minute's steps are faster. They take the place of none of this minute.
  for (int i = 0; i < 10; ++i) steps.Add("a", {"a"}, Step(100 + i, i, i, /*minute=*/1));
  const SlowStepLists both = steps.Read(All);
  std::vector<int64_t> made = {109, 108, 107, 106, 105};
  std::vector<int64_t> sent = {109, 108, 107};
  for (const SlowStep& step : lists.made) made.push_back(step.step);
  for (const SlowStep& step : lists.sent) sent.push_back(step.step);
  EXPECT_EQ(NumbersOf(both.made), made);
  EXPECT_EQ(NumbersOf(both.sent), sent);
  steps.Add("b", {"b"}, Step(1000, 1));
  EXPECT_THAT(steps.Read(All).made, SizeIs(2 * SlowSteps::kSlowestMade + 1));
}

TEST(SlowStepsTest, AddReturnsWhetherAStepIsAmongTheSlowest) {
  SlowSteps steps;
  for (int i = 0; i < 5; ++i) EXPECT_TRUE(steps.Add("a", {"a"}, Step(i, 10, 10)));
  EXPECT_FALSE(steps.Add("a", {"a"}, Step(5, 10, 10)));
  EXPECT_FALSE(steps.Add("a", {"a"}, Step(6, 9, 9)));
  EXPECT_TRUE(steps.Add("a", {"a"}, Step(7, 11, 0)));
  EXPECT_TRUE(steps.Add("a", {"a"}, Step(8, 0, 11)));
  EXPECT_TRUE(steps.Add("b", {"b"}, Step(9, 1, 1)));
  EXPECT_TRUE(steps.Add("a", {"a"}, Step(10, 1, 1, /*minute=*/1)));
}

TEST(SlowStepsTest, TimeSpentWaitingForTheClientDoesNotMakeAStepSlow) {
  SlowSteps steps;
  for (int i = 0; i < 5; ++i) steps.Add("a", {"a"}, Step(i, 10, 10));
  TracedStep waited = Step(5, 9, 9);
  waited.times.wait = absl::Hours(1);
  EXPECT_FALSE(steps.Add("a", {"a"}, waited));
}

TEST(SlowStepsTest, MinutesAreListedNewestFirstAndOldMinutesAreDropped) {
  SlowSteps steps;
  for (int minute = 0; minute < 25; minute += 2) {
    steps.Add("b", {"b"}, Step(minute, 1, 0, minute));
    steps.Add("a", {"a"}, Step(minute + 1, 1, 0, minute));
  }
  const std::vector<int64_t> numbers = NumbersOf(steps.Read(All).made);
  ASSERT_THAT(numbers, SizeIs(2 * SlowSteps::kMinutes));
  EXPECT_THAT((std::vector<int64_t>(numbers.begin(), numbers.begin() + 4)),
              ElementsAre(25, 24, 23, 22));
  EXPECT_EQ(numbers.back(), 24 - 2 * (int64_t{SlowSteps::kMinutes} - 1));
}

TEST(SlowStepsTest, AClockThatIsSetBackLosesNoSteps) {
  SlowSteps steps;
  steps.Add("a", {"a"}, Step(1, 1, 0, 100));
  steps.Add("a", {"a"}, Step(2, 1, 0, 50));
  steps.Add("a", {"a"}, Step(3, 1, 0, -5));
  EXPECT_THAT(NumbersOf(steps.Read(All).made), ElementsAre(3, 2, 1));
}

TEST(SlowStepsTest, ALateStepIsKeptInItsOwnMinute) {
  SlowSteps steps;
  for (int minute = 0; minute < 10; ++minute) steps.Add("a", {"a"}, Step(minute, 1, 0, minute));
  for (int i = 0; i < 5; ++i) {
    steps.Add("a", {"a"}, Step(100 + i, 2, 0, 10));
    steps.Add("a", {"a"}, Step(200 + i, 2, 0, 9));
  }
  // Minute 10 took the place of minute 0. The steps of all other minutes are still there.
  EXPECT_THAT(NumbersOf(steps.Read(All).made), ElementsAre(100, 101, 102, 103, 104, 200, 201, 202,
                                                           203, 204, 8, 7, 6, 5, 4, 3, 2, 1));
}

TEST(SlowStepsTest, StepsOfDatasetsThatMayNotBeListedAreLeftOut) {
  SlowSteps steps;
  steps.Add("a", {"a"}, Step(1, 1, 1));
  steps.Add("a,b", {"a", "b"}, Step(2, 1, 1));
  for (size_t i = 0; i < SlowSteps::kDatasets; ++i) {
    steps.Add(absl::StrCat("c", i), {absl::StrCat("c", i)}, Step(3, 1, 1));
  }
  steps.Add("b", {"b"}, Step(4, 1, 1));  // Goes to "other": the lists are taken.
  const SlowStepLists lists = steps.Read([](const std::string& name) { return name == "a"; });
  EXPECT_THAT(NumbersOf(lists.made), ElementsAre(1));
  EXPECT_THAT(NumbersOf(lists.sent), ElementsAre(1));
}

TEST(SlowStepsTest, KeptStepsAreBoundedHoweverManyDatasetNamesClientsUse) {
  SlowSteps steps;
  for (int minute = 0; minute < 30; ++minute) {
    for (int i = 0; i < 200; ++i) {
      const std::string name = absl::StrCat("d", i);
      steps.Add(name, {name}, Step(i, i, i, minute));
    }
  }
  const SlowStepLists lists = steps.Read(All);
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
