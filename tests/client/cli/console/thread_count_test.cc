#include "client/cli/console/thread_count.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/status_matchers.h"

namespace systole {
namespace {

using ::testing::Ge;
using ::testing::HasSubstr;

TEST(ThreadCountTest, TakesTheNumberGivenOrAsksTheMachine) {
  EXPECT_THAT(ThreadCount(3), IsOkAndHolds(3));
  EXPECT_THAT(ThreadCount(1024), IsOkAndHolds(1024));
  EXPECT_THAT(ThreadCount(0), IsOkAndHolds(Ge(1)));
}

TEST(ThreadCountTest, RefusesNumbersOutOfRange) {
  for (const int64_t threads : {-1, 1025}) {
    EXPECT_THAT(ThreadCount(threads),
                StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("--threads")));
  }
}

}  // namespace
}  // namespace systole
