// Decides to which of a spec's operations the time of a fused pass is counted. One pass does
// several operations, so only the whole pass can be measured.
//
// Thread-safe: no state.
#ifndef SYSTOLE_CORE_OPERATIONS_PASS_PART_H_
#define SYSTOLE_CORE_OPERATIONS_PASS_PART_H_

#include <cstddef>

#include "core/operations/program.h"

namespace systole {

// The part for NoteLap(): the number, in the spec, of the step that takes most of the pass's time,
// not counting the decoding of a JPEG. If one of the first `fused` steps resamples, it is that
// step, because the other steps take little time. Otherwise it is the step that normalises. If no
// step normalises, it is the last step. LapTimes::kNoPart if nothing is fused.
int PassPartOf(const Program& program, size_t fused);

}  // namespace systole

#endif  // SYSTOLE_CORE_OPERATIONS_PASS_PART_H_
