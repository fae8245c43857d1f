// Does the same work for many things on any number of threads. The returned error does not depend
// on the number of threads.
//
// Thread-safe: no state.
#ifndef SYSTOLE_CORE_RECORD_SOURCE_ORDERED_WORK_H_
#define SYSTOLE_CORE_RECORD_SOURCE_ORDERED_WORK_H_

#include <cstdint>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"

namespace systole {

// A function that calls call(i) for each i in [0, count), in any order and perhaps on several
// threads, and that returns when all calls have ended.
using ForEachCall = absl::FunctionRef<void(int64_t count, absl::FunctionRef<void(int64_t i)> call)>;

// Calls work(i) for each i in [0, count), by means of `for_each`. After an error no call for a
// later i begins, but the calls for all earlier i are still made. So the returned error is always
// the error of the lowest i that has one. If InterruptRequested(), makes no more calls and returns
// Cancelled. On every thread, InterruptRequested() reads the flag of the thread that called
// WorkInOrder().
absl::Status WorkInOrder(int64_t count, ForEachCall for_each,
                         absl::FunctionRef<absl::Status(int64_t i)> work);

}  // namespace systole

#endif  // SYSTOLE_CORE_RECORD_SOURCE_ORDERED_WORK_H_
