// A time limit for each test. If a test waits for something that never comes (a message, a lock, a
// thread), its program does not hang, but ends with a failure that names the test. Every wait of
// every test is bounded. A test that knows what it waits for uses tests/wait_until.h, which fails
// earlier and says more.
//
// Single-thread.
#ifndef SYSTOLE_TESTS_TEST_DEADLINE_H_
#define SYSTOLE_TESTS_TEST_DEADLINE_H_

#include <string>

#include "gtest/gtest.h"
#include "tests/sanitizers.h"

namespace systole {

// The limit is longer than any test takes, also on a machine that is several times slower. It is
// also longer than kLongestWait of tests/wait_until.h and, without sanitizers, than kStuckAfter of
// tests/system/process.cc, because the messages of those limits say more about the wait. It is
// below test_timeout in tests/CMakeLists.txt, so that the program can still name the test that
// hangs.
constexpr unsigned kTestSeconds = 1000;

// Gives the program `seconds` from now on. After that time the program writes "FAILED: `what` is
// still running .." and ends with code 1. Replaces the previous deadline. The deadline is a signal
// (SIGALRM), because death tests fork, and a forked child has neither the alarm nor a thread.
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
