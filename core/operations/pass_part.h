// A fused pass does several operations of a spec at once, so only the time of the whole pass can be
// measured. This header decides for which of these operations the time is counted.
//
// Thread-safe: no state.
#ifndef SYSTOLE_CORE_OPERATIONS_PASS_PART_H_
#define SYSTOLE_CORE_OPERATIONS_PASS_PART_H_

#include <cstddef>

#include "core/operations/program.h"

namespace systole {

// The part for NoteLap(): the number, in the spec, of the step that takes most of the pass's time,
// apart from the decoding of a JPEG. Of the first `fused` steps, this is
//   1. the step that resamples, because the other steps take little time;
//   2. if no step resamples, the step that normalises;
//   3. if no step normalises either, the last step.
// LapTimes::kNoPart if `fused` is 0.
int PassPartOf(const Program& program, size_t fused);

}  // namespace systole

#endif  // SYSTOLE_CORE_OPERATIONS_PASS_PART_H_
