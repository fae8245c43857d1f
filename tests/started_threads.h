// How many threads this program has started. The main() of the tests uses it to check that a test
// whose code has threads says so (THREADS in systole_test()).
#ifndef SYSTOLE_TESTS_STARTED_THREADS_H_
#define SYSTOLE_TESTS_STARTED_THREADS_H_

namespace systole {

// 0 in a build with a sanitizer, where this cannot count. Thread-safe.
int StartedThreads();

}  // namespace systole

#endif  // SYSTOLE_TESTS_STARTED_THREADS_H_
