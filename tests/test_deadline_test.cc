#include "tests/test_deadline.h"

#include <unistd.h>

#include <string>

#include "core/concurrency/bounded_queue.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/wait_until.h"

namespace systole {
namespace {

using ::testing::AllOf;
using ::testing::ExitedWithCode;
using ::testing::HasSubstr;
using ::testing::Not;

TEST(TestDeadlineTest, ATestThatHangsFailsAtItsDeadlineWithItsName) {
  const auto wait_for_ever = [] {
    SetDeadline("QueueTest.Hangs", /*seconds=*/1);
    BoundedQueue<int> queue(1);
    queue.Pop().status().IgnoreError();
    _exit(0);
  };
  EXPECT_EXIT(wait_for_ever(), ExitedWithCode(1),
              "FAILED: QueueTest.Hangs is still running after 1 s");
}

TEST(TestDeadlineTest, AVeryLongNameIsCutInTheFailureAtTheDeadline) {
  const auto wait_for_ever = [] {
    SetDeadline(std::string(10'000, 'x'), /*seconds=*/1);
    while (true) pause();
  };
  EXPECT_EXIT(
      wait_for_ever(), ExitedWithCode(1),
      AllOf(HasSubstr("FAILED: " + std::string(500, 'x')), Not(HasSubstr(std::string(512, 'x')))));
}

// TestDeadline has set an alarm for this test. alarm() returns the seconds that are left.
TEST(TestDeadlineTest, EachTestHasADeadline) {
  const unsigned left = alarm(0);
  SetDeadline("the rest of this test", kTestSeconds);
  EXPECT_GT(left, 0u);
  EXPECT_LE(left, kTestSeconds);
}

TEST(WaitUntilTest, ChecksAgainUntilTheConditionHolds) {
  int looks = 0;
  EXPECT_TRUE(WaitUntil([&looks] { return ++looks == 3; }));
  EXPECT_EQ(looks, 3);
}

TEST(WaitUntilTest, FailsIfTheConditionNeverHolds) {
  const testing::AssertionResult result =
      WaitUntil([] { return false; }, std::chrono::milliseconds(2));
  EXPECT_FALSE(result);
  EXPECT_STREQ(result.message(), "still false after 2 ms");
}

}  // namespace
}  // namespace systole
