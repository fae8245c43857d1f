#include "tests/started_threads.h"

#include <atomic>

#ifdef SYSTOLE_COUNT_THREADS

#include <dlfcn.h>
#include <pthread.h>

namespace {
std::atomic<int> started = 0;
}  // namespace

// Replaces libc's function in the whole program, also for shared libraries. Counts the new thread
// and lets libc's function start it.
extern "C" int pthread_create(pthread_t* thread, const pthread_attr_t* attributes,
                              void* (*run)(void*), void* argument) noexcept {
  static const auto create =
      reinterpret_cast<decltype(&pthread_create)>(dlsym(RTLD_NEXT, "pthread_create"));
  ++started;
  return create(thread, attributes, run, argument);
}

namespace systole {
int StartedThreads() { return started; }
}  // namespace systole

#else

namespace systole {
// A sanitizer has a pthread_create() of its own, which must not be replaced.
int StartedThreads() { return 0; }
}  // namespace systole

#endif  // SYSTOLE_COUNT_THREADS
