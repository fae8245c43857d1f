// Counts the threads that this program has started. A test that starts threads must have the word
// THREADS in its call of systole_test() in CMakeLists.txt. The main() of the tests checks this with
// the count.
#ifndef SYSTOLE_TESTS_STARTED_THREADS_H_
#define SYSTOLE_TESTS_STARTED_THREADS_H_

namespace systole {

// Always 0 in a build with a sanitizer, because threads cannot be counted there. Thread-safe.
int StartedThreads();

}  // namespace systole

#endif  // SYSTOLE_TESTS_STARTED_THREADS_H_
