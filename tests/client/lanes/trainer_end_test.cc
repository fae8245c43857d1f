#include "client/lanes/trainer_end.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "client/step/step_shelf.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/status_matchers.h"

namespace systole {
namespace {

using testing::HasSubstr;
using testing::Optional;

class TrainerEndTest : public testing::Test {
 protected:
  StepBuffer Buffer() { return *shelf_->Acquire(); }

  // Takes the next step. Returns its number, "end", the error's message, or "nothing yet".
  std::string Take(TrainerEnd& trainer) {
    if (!trainer.HasNext()) return "nothing yet";
    auto taken = trainer.Next(stats_, now_ += absl::Milliseconds(10));
    if (!taken.ok()) return std::string(taken.status().message());
    return taken->has_value() ? absl::StrCat((*taken)->number) : "end";
  }

  const std::shared_ptr<StepShelf> shelf_ = StepShelf::Create(64, 2, {});
  FeedClientStats stats_;
  absl::Duration now_;
};

TEST_F(TrainerEndTest, StepsComeInOrderAndThenTheEnd) {
  TrainerEnd trainer;
  EXPECT_EQ(trainer.next_step(), 0);
  trainer.Start(/*first_step=*/5, /*end_step=*/8, /*window_steps=*/3);
  EXPECT_EQ(trainer.next_step(), 5);
  EXPECT_EQ(Take(trainer), "nothing yet");
  EXPECT_FALSE(trainer.Put(6, Buffer()));
  EXPECT_EQ(Take(trainer), "nothing yet");
  EXPECT_TRUE(trainer.Put(5, Buffer()));  // The trainer has waited for this step.
  EXPECT_EQ(Take(trainer), "5");
  EXPECT_EQ(trainer.next_step(), 6);
  EXPECT_EQ(Take(trainer), "6");
  EXPECT_EQ(Take(trainer), "nothing yet");
  trainer.Put(7, Buffer());
  EXPECT_EQ(Take(trainer), "7");
  EXPECT_EQ(Take(trainer), "end");
  EXPECT_EQ(Take(trainer), "end");
}

TEST_F(TrainerEndTest, StepsBeforeAnErrorAreHandedOut) {
  TrainerEnd trainer;
  trainer.Start(/*first_step=*/0, /*end_step=*/8, /*window_steps=*/4);
  trainer.Put(1, Buffer());
  trainer.EndEarly(2, absl::DataLossError("damaged"));
  EXPECT_THAT(trainer.error(), StatusIs(absl::StatusCode::kDataLoss, HasSubstr("damaged")));
  EXPECT_EQ(Take(trainer), "nothing yet");
  trainer.Put(0, Buffer());
  EXPECT_EQ(Take(trainer), "0");
  EXPECT_EQ(Take(trainer), "1");
  EXPECT_EQ(Take(trainer), "damaged");
  EXPECT_EQ(Take(trainer), "damaged");
}

TEST_F(TrainerEndTest, OnceCancelledNothingIsHandedOutAndTheFirstReasonCounts) {
  TrainerEnd trainer;
  trainer.Start(/*first_step=*/0, /*end_step=*/8, /*window_steps=*/4);
  trainer.Put(0, Buffer());
  EXPECT_FALSE(trainer.cancelled());
  trainer.Cancel(absl::CancelledError("by the trainer"));
  trainer.Cancel(absl::CancelledError("again"));
  EXPECT_TRUE(trainer.cancelled());
  EXPECT_EQ(Take(trainer), "by the trainer");
}

TEST_F(TrainerEndTest, TheLongestWaitForAStepIsCountedButNotForTheFirst) {
  TrainerEnd trainer;
  trainer.Start(/*first_step=*/3, /*end_step=*/20, /*window_steps=*/4);
  const auto wait_for = [&](int64_t step, absl::Duration waited) {
    for (int part = 0; part < 2; ++part) {  // A wait may come in parts.
      trainer.WaitBegins(now_);
      trainer.WaitEnds(now_ += waited / 2);
    }
    trainer.Put(step, Buffer());
    EXPECT_EQ(Take(trainer), absl::StrCat(step));
  };
  wait_for(3, absl::Seconds(9));
  EXPECT_EQ(stats_.longest_wait, absl::ZeroDuration());
  wait_for(4, absl::Seconds(2));
  wait_for(5, absl::Seconds(4));
  wait_for(6, absl::Seconds(3));
  EXPECT_EQ(stats_.longest_wait, absl::Seconds(4));
  EXPECT_EQ(stats_.longest_wait_step, 5);
  EXPECT_EQ(stats_.step_waits.Read().count(), 3);
  EXPECT_EQ(stats_.step_waits.Read().sum, 9);
}

TEST_F(TrainerEndTest, AWaitIsSeenWhileItLasts) {
  TrainerEnd trainer;
  trainer.Start(/*first_step=*/0, /*end_step=*/20, /*window_steps=*/4);
  EXPECT_EQ(trainer.waiting(absl::Seconds(1)), absl::ZeroDuration());
  trainer.WaitBegins(absl::Seconds(1));
  EXPECT_EQ(trainer.waiting(absl::Seconds(3)), absl::Seconds(2));
  trainer.WaitEnds(absl::Seconds(4));
  EXPECT_EQ(trainer.waiting(absl::Seconds(5)), absl::ZeroDuration());
  trainer.WaitBegins(absl::Seconds(6));  // The wait is still for the same step.
  EXPECT_EQ(trainer.waiting(absl::Seconds(7)), absl::Seconds(4));
  trainer.WaitEnds(absl::Seconds(8));
  trainer.Put(0, Buffer());
  EXPECT_EQ(Take(trainer), "0");
  trainer.WaitBegins(absl::Seconds(9));
  EXPECT_EQ(trainer.waiting(absl::Seconds(10)), absl::Seconds(1));
}

TEST_F(TrainerEndTest, StepsAreReadyUpToTheFirstThatIsMissing) {
  TrainerEnd trainer;
  EXPECT_EQ(trainer.CountReady(), 0);
  EXPECT_EQ(trainer.complete_steps(), 0);
  trainer.Start(/*first_step=*/5, /*end_step=*/20, /*window_steps=*/4);
  for (const int64_t step : {5, 6, 8}) trainer.Put(step, Buffer());
  EXPECT_EQ(trainer.CountReady(), 2);
  EXPECT_EQ(trainer.complete_steps(), 3);
  trainer.Put(7, Buffer());
  EXPECT_EQ(trainer.CountReady(), 4);
  EXPECT_EQ(trainer.complete_steps(), 4);
  EXPECT_EQ(Take(trainer), "5");
  EXPECT_EQ(trainer.CountReady(), 3);
  EXPECT_EQ(trainer.complete_steps(), 3);
}

TEST_F(TrainerEndTest, EachWaitIsAttributedToTheStagesThatTheStepWasIn) {
  TrainerEnd trainer;
  trainer.Start(/*first_step=*/0, /*end_step=*/20, /*window_steps=*/2);
  for (int64_t step = 0; step < 5; ++step) {
    // The step is made in the 3 ms before it arrives. The trainer gets it 2 ms after that.
    const absl::Duration arrived = now_ + absl::Milliseconds(8);
    StepSpans spans;
    spans.BeginSlice(StageTimes{.make = absl::Milliseconds(3)}, arrived, arrived);
    spans.Complete();
    trainer.WaitBegins(now_ + absl::Milliseconds(5));
    trainer.WaitEnds(now_ + absl::Milliseconds(10));
    trainer.Put(step, Buffer(), std::move(spans));
    EXPECT_EQ(Take(trainer), absl::StrCat(step));
  }
  const FeedWaits waits = trainer.waits();
  EXPECT_NEAR(waits.times.seconds, 4 * 0.010, 1e-9);
  EXPECT_NEAR(waits.times.of(WaitCause::kDecode), 4 * 0.003, 1e-9);
  EXPECT_NEAR(waits.times.of(WaitCause::kClient), 4 * 0.002, 1e-9);
  EXPECT_EQ(waits.verdict.limit, FeedLimit::kDecode);
}

TEST_F(TrainerEndTest, AReportIncludesTheWaitThatIsUnderWay) {
  TrainerEnd trainer;
  EXPECT_EQ(trainer.Report(now_), TrainerReport());  // The trainer has not begun.
  trainer.Start(/*first_step=*/0, /*end_step=*/200, /*window_steps=*/2);
  EXPECT_EQ(trainer.Report(now_), TrainerReport());
  // Steps lie ready, and the trainer takes one every 10 ms.
  trainer.Put(0, Buffer());
  for (int64_t step = 1; step < 100; ++step) {
    trainer.Put(step, Buffer());
    EXPECT_EQ(Take(trainer), absl::StrCat(step - 1));
  }
  const TrainerReport fast = trainer.Report(now_);
  EXPECT_THAT(fast.waits, Optional(0.0));
  EXPECT_EQ(fast.limit, FeedLimit::kTrainer);
  EXPECT_NEAR(fast.steps_per_second, 100, 1);
  EXPECT_EQ(Take(trainer), "99");
  // Then the feed stands still.
  trainer.WaitBegins(now_);
  now_ += absl::Seconds(60);
  const TrainerReport stuck = trainer.Report(now_);
  ASSERT_TRUE(stuck.waits.has_value());
  EXPECT_GT(*stuck.waits, 0.95);
  EXPECT_EQ(stuck.limit, FeedLimit::kUnknown);
  EXPECT_LT(stuck.steps_per_second, 1);
  // A report changes nothing.
  EXPECT_EQ(trainer.Report(now_), stuck);
  EXPECT_EQ(trainer.waits().times.all_waited(), 0);
}

}  // namespace
}  // namespace systole
