// Functions that every RecordSource needs to read a record into the caller's scratch.
//
// Thread-safe: no state.
#ifndef SYSTOLE_CORE_RECORD_SOURCE_READ_SCRATCH_H_
#define SYSTOLE_CORE_RECORD_SOURCE_READ_SCRATCH_H_

#include <cstdint>

#include "absl/status/status.h"
#include "core/memory/aligned_buffer.h"

namespace systole {

// The status of a read that failed. DataLoss and ResourceExhausted must only mean that the record
// is bad. But the storage returns ResourceExhausted also for a temporary errno such as ENOMEM. So
// both codes become Unavailable here.
absl::Status ReadFailure(const absl::Status& status);

// Makes `scratch` at least `bytes` large. It grows by at least half, so that in a series of ever
// larger records only some need a new buffer. Its old content is lost.
//   Unavailable  no memory.
//   Cancelled    NeedScratch() returned false: the thread must not take more memory now.
absl::Status GrowScratch(uint64_t bytes, AlignedBuffer& scratch);

}  // namespace systole

#endif  // SYSTOLE_CORE_RECORD_SOURCE_READ_SCRATCH_H_
