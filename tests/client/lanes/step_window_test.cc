#include "client/lanes/step_window.h"

#include <memory>
#include <optional>

#include "gtest/gtest.h"

namespace systole {
namespace {

StepBuffer Buffer(uint8_t mark) {
  return StepBuffer(new uint8_t(mark), [](uint8_t* memory) { delete memory; });
}

TEST(StepWindowTest, AllowsOnlyTheStepsOfTheWindow) {
  StepWindow window(/*first_step=*/10, /*slots=*/3);
  EXPECT_FALSE(window.Allows(9));
  EXPECT_TRUE(window.Allows(10));
  EXPECT_TRUE(window.Allows(12));
  EXPECT_FALSE(window.Allows(13));
  EXPECT_FALSE(window.Allows(-1));
}

TEST(StepWindowTest, GivesStepsInOrderHoweverTheyComplete) {
  StepWindow window(10, 3);
  for (const int64_t step : {12, 11, 10}) {
    EXPECT_EQ(window.TakeNext(), std::nullopt);
    window.Put(step, Buffer(static_cast<uint8_t>(step)));
  }
  for (const int64_t step : {10, 11, 12}) {
    EXPECT_EQ(window.next_step(), step);
    const std::optional<StepBuffer> buffer = window.TakeNext();
    ASSERT_TRUE(buffer.has_value());
    EXPECT_EQ(**buffer, step);
  }
  EXPECT_EQ(window.TakeNext(), std::nullopt);
  EXPECT_TRUE(window.Allows(15));
  EXPECT_FALSE(window.HasNext());  // Step 13 has the place that step 10 had.
}

}  // namespace
}  // namespace systole
