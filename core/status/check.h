// CHECK for our own bugs. Never use it for input: for wrong input from a caller, a peer or a file,
// return a Status.
//
// Thread-safe: no state.
#ifndef SYSTOLE_CORE_STATUS_CHECK_H_
#define SYSTOLE_CORE_STATUS_CHECK_H_

#include <cstdio>
#include <cstdlib>

// If `condition` is false, prints it with its file and line, and aborts.
#define SYSTOLE_CHECK(condition)                                                         \
  do {                                                                                   \
    if (!(condition)) {                                                                  \
      std::fprintf(stderr, "%s:%d: check failed: %s\n", __FILE__, __LINE__, #condition); \
      std::abort();                                                                      \
    }                                                                                    \
  } while (false)

#endif  // SYSTOLE_CORE_STATUS_CHECK_H_
