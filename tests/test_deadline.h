// A bound on each test: one that waits for something that never comes (a message, a lock, a thread)
// ends its program with a failure that names it, instead of hanging. It bounds every wait of every
// test; where a test can say what it waits for, tests/wait_until.h fails earlier and says more.
//
// Single-thread.
#ifndef SYSTOLE_TESTS_TEST_DEADLINE_H_
#define SYSTOLE_TESTS_TEST_DEADLINE_H_

#include <string>

#include "gtest/gtest.h"
#include "tests/sanitizers.h"

namespace systole {

// Longer than any test takes on a machine ten times slower, and longer than kStuckAfter of
// tests/system/process.cc and kLongestWait of tests/wait_until.h, which know more about what hangs.
// Below test_timeout in tests/CMakeLists.txt.
constexpr unsigned kTestSeconds = kSanitized ? 3000 : 1000;

// From now on the program has `seconds`; then it writes "FAILED: `what` is still running .." and
// ends with code 1. Replaces the previous deadline. By a signal (SIGALRM) rather than by a thread:
// death tests fork, and a forked child has neither.
void SetDeadline(const std::string& what, unsigned seconds);

// Gives each test kTestSeconds, and as much to what comes before, between and after tests.
class TestDeadline : public testing::EmptyTestEventListener {
 public:
  TestDeadline();
  void OnTestSuiteStart(const testing::TestSuite& suite) override;
  void OnTestStart(const testing::TestInfo& test) override;
  void OnTestEnd(const testing::TestInfo& test) override;
};

}  // namespace systole

#endif  // SYSTOLE_TESTS_TEST_DEADLINE_H_
