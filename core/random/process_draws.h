// Draws that differ from process to process. They are for waits, because processes that failed at
// the same time must not try again at the same time, and for numbers that identify a process. The
// bytes of a feed must not depend on these draws.
//
// Thread-safe.
#ifndef SYSTOLE_CORE_RANDOM_PROCESS_DRAWS_H_
#define SYSTOLE_CORE_RANDOM_PROCESS_DRAWS_H_

#include <cstdint>
#include <functional>

namespace systole {

// A function that draws a number, uniform in [0, 1), at each call. Only one thread at a time may
// call the function. `now` is the count of any clock. Because `now` differs, a process draws other
// numbers than an earlier process with the same process ID. Each use in a process passes another
// `purpose`, and so draws other numbers.
std::function<double()> DrawsOfProcess(uint64_t now, uint32_t purpose);

// A number of 64 bits, made from draws of DrawsOfProcess(). Two calls with the same `now` and
// `purpose` give the same number.
uint64_t NumberOfProcess(uint64_t now, uint32_t purpose);

}  // namespace systole

#endif  // SYSTOLE_CORE_RANDOM_PROCESS_DRAWS_H_
