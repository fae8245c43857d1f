// Waits for what another thread or process does a moment later, and fails if it does not happen.
//
// Thread-compatible.
#ifndef SYSTOLE_TESTS_WAIT_UNTIL_H_
#define SYSTOLE_TESTS_WAIT_UNTIL_H_

#include <chrono>
#include <thread>

#include "gtest/gtest.h"

namespace systole {

// How long a test waits for an event that must happen. This is a hundred times what such events
// take on an idle machine. So this time is also enough under a sanitizer on a machine that is ten
// times slower. A test that passes never waits so long. kLongestWait is also the timeout of clients
// and servers whose timeouts must not run out.
constexpr std::chrono::seconds kLongestWait(300);

// Calls `holds` every fifth of a millisecond until it returns true, and fails after `longest`:
//   ASSERT_TRUE(WaitUntil([&] { return server.streams() == 0; }));
template <typename Predicate>
testing::AssertionResult WaitUntil(Predicate holds,
                                   std::chrono::milliseconds longest = kLongestWait) {
  const auto deadline = std::chrono::steady_clock::now() + longest;
  while (!holds()) {
    if (std::chrono::steady_clock::now() > deadline) {
      return testing::AssertionFailure() << "still false after " << longest.count() << " ms";
    }
    std::this_thread::sleep_for(std::chrono::microseconds(200));
  }
  return testing::AssertionSuccess();
}

}  // namespace systole

#endif  // SYSTOLE_TESTS_WAIT_UNTIL_H_
