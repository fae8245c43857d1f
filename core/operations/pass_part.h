// For which of a spec's operations the time of a fused pass counts. One pass does several
// operations, so it is measured as a whole.
//
// Thread-safe: no state.
#ifndef SYSTOLE_CORE_OPERATIONS_PASS_PART_H_
#define SYSTOLE_CORE_OPERATIONS_PASS_PART_H_

#include <cstddef>

#include "core/operations/program.h"

namespace systole {

// Of the first `fused` steps, the one that takes most of the pass beside the decoding of a JPEG:
// the one that resamples, beside which the others cost little. If there is none, the one that
// normalises, or the last one. Its number in the spec is the part for NoteLap().
// LapTimes::kNoPart if nothing is fused.
int PassPartOf(const Program& program, size_t fused);

}  // namespace systole

#endif  // SYSTOLE_CORE_OPERATIONS_PASS_PART_H_
