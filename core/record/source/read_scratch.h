// Functions that every RecordSource needs to read a record into the caller's scratch.
//
// Thread-safe: no state.
#ifndef SYSTOLE_CORE_RECORD_SOURCE_READ_SCRATCH_H_
#define SYSTOLE_CORE_RECORD_SOURCE_READ_SCRATCH_H_

#include <cstdint>

#include "absl/status/status.h"
#include "core/memory/aligned_buffer.h"

namespace systole {

// The status of a read that failed. Readers of records take DataLoss and ResourceExhausted to mean
// that the record is bad. But storage may return these codes although the record is good, such as
// ResourceExhausted for ENOMEM. So ReadFailure() turns both codes into Unavailable.
absl::Status ReadFailure(const absl::Status& status);

// Makes `scratch` at least `bytes` large. A buffer that is too small is replaced by a buffer of at
// least 1.5 times its size, so that a series of slowly growing records needs few new buffers. The
// old content is then lost.
//   Unavailable  no memory.
//   Cancelled    NeedScratch() returned false: the thread must not take more memory now.
absl::Status GrowScratch(uint64_t bytes, AlignedBuffer& scratch);

}  // namespace systole

#endif  // SYSTOLE_CORE_RECORD_SOURCE_READ_SCRATCH_H_
