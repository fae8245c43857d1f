// How many threads this program has started. With it, the main() of the tests checks the word
// THREADS of systole_test(): a test that starts threads must have it.
#ifndef SYSTOLE_TESTS_STARTED_THREADS_H_
#define SYSTOLE_TESTS_STARTED_THREADS_H_

namespace systole {

// 0 in a build with a sanitizer, where this cannot count. Thread-safe.
int StartedThreads();

}  // namespace systole

#endif  // SYSTOLE_TESTS_STARTED_THREADS_H_
