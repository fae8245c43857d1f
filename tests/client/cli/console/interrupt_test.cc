#include "client/cli/console/interrupt.h"

#include <signal.h>

#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/status_matchers.h"

namespace systole {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

class InterruptTest : public testing::Test {
 protected:
  std::vector<int> ended_;
  Interrupt interrupt_{[this](int signal) { ended_.push_back(signal); }};
};

TEST_F(InterruptTest, WithoutACallbackAnInterruptEndsTheProgramAtOnce) {
  interrupt_.Request(SIGTERM);
  EXPECT_THAT(ended_, ElementsAre(SIGTERM));
  EXPECT_EQ(interrupt_.signal(), SIGTERM);
}

TEST_F(InterruptTest, AsksTheCallbackFirstAndEndsTheProgramTheSecondTime) {
  int asked = 0;
  const InterruptCallback callback(&interrupt_, [&asked] { ++asked; });
  EXPECT_FALSE(callback.requested());
  interrupt_.Request(SIGINT);
  EXPECT_TRUE(callback.requested());
  EXPECT_EQ(asked, 1);
  EXPECT_THAT(ended_, IsEmpty());
  interrupt_.Request(SIGINT);
  EXPECT_EQ(asked, 1);
  EXPECT_THAT(ended_, ElementsAre(SIGINT));
}

TEST_F(InterruptTest, AfterTheCallbackIsGoneAnInterruptEndsTheProgramAtOnce) {
  {
    const InterruptCallback callback(&interrupt_, [] {});
  }
  interrupt_.Request(SIGINT);
  EXPECT_THAT(ended_, ElementsAre(SIGINT));
}

TEST_F(InterruptTest, ACallbackRegisteredAfterTheInterruptIsCalledAtOnce) {
  interrupt_.Request(SIGINT);
  bool asked = false;
  const InterruptCallback callback(&interrupt_, [&asked] { asked = true; });
  EXPECT_TRUE(asked);
}

TEST_F(InterruptTest, ACallbackWithoutAnInterruptObjectIsNotCalled) {
  const InterruptCallback callback(nullptr, [] { FAIL(); });
  EXPECT_FALSE(callback.requested());
}

}  // namespace
}  // namespace systole
