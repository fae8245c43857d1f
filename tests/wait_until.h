// Waits for what another thread or process brings about a moment later, and fails if it does not.
//
// Thread-compatible.
#ifndef SYSTOLE_TESTS_WAIT_UNTIL_H_
#define SYSTOLE_TESTS_WAIT_UNTIL_H_

#include <chrono>
#include <thread>

#include "gtest/gtest.h"

namespace systole {

// For what must happen: a hundred times what it takes on a machine with nothing else to do, so that
// a machine ten times slower has time left, under a sanitizer too. It bounds failures; nothing that
// holds takes so long. Timeouts of an honest client or server that must not run out have it as
// well.
constexpr std::chrono::seconds kLongestWait(300);

// Calls `holds` every fifth of a millisecond until it returns true. A failure after `longest`:
//   ASSERT_TRUE(WaitUntil([&] { return server.streams() == 0; }));
template <typename Predicate>
testing::AssertionResult WaitUntil(Predicate holds,
                                   std::chrono::milliseconds longest = kLongestWait) {
  const auto deadline = std::chrono::steady_clock::now() + longest;
  while (!holds()) {
    if (std::chrono::steady_clock::now() > deadline) {
      return testing::AssertionFailure() << "still not so after " << longest.count() << " ms";
    }
    std::this_thread::sleep_for(std::chrono::microseconds(200));
  }
  return testing::AssertionSuccess();
}

}  // namespace systole

#endif  // SYSTOLE_TESTS_WAIT_UNTIL_H_
