// A time limit for each test, so that every wait of a test is bounded. If a test waits for
// something that never comes (a message, a lock, a thread), the program ends with a failure that
// names the test. A test that knows what it waits for should use tests/wait_until.h, which fails
// earlier and says more.
//
// Single-thread.
#ifndef SYSTOLE_TESTS_TEST_DEADLINE_H_
#define SYSTOLE_TESTS_TEST_DEADLINE_H_

#include <string>

#include "gtest/gtest.h"
#include "tests/sanitizers.h"

namespace systole {

// The limit is longer than any test takes, also on a machine that is several times slower. Two
// other limits are shorter, because their messages say more about the wait: kLongestWait of
// tests/wait_until.h and, without sanitizers, kStuckAfter of tests/system/process.cc. test_timeout
// in tests/CMakeLists.txt is longer, so that the program can still name the test that hangs.
constexpr unsigned kTestSeconds = 1000;

// Gives the program `seconds` from now on. After that time the program writes "FAILED: `what` is
// still running .." and ends with code 1. Replaces the previous deadline. The deadline is a signal
// (SIGALRM) and not a thread, because death tests fork. A forked child has no deadline.
void SetDeadline(const std::string& what, unsigned seconds);

// Gives kTestSeconds to each test, and to the code before, between and after tests.
class TestDeadline : public testing::EmptyTestEventListener {
 public:
  TestDeadline();
  void OnTestSuiteStart(const testing::TestSuite& suite) override;
  void OnTestStart(const testing::TestInfo& test) override;
  void OnTestEnd(const testing::TestInfo& test) override;
};

}  // namespace systole

#endif  // SYSTOLE_TESTS_TEST_DEADLINE_H_
