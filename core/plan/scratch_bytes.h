// An estimate of the memory that a thread needs, besides the slice, to make examples of a feed. It
// counts memory whose size the spec decides. The estimate is limited, because many wide outputs
// could take gigabytes on every thread.
//
// Thread-safe: no state.
#ifndef SYSTOLE_CORE_PLAN_SCRATCH_BYTES_H_
#define SYSTOLE_CORE_PLAN_SCRATCH_BYTES_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "core/batch/slice_layout.h"
#include "core/plan/output_plan.h"

namespace systole {

struct ScratchBytes {
  int64_t tables = 0;    // Tables of the resizers.
  int64_t decoders = 0;  // Decoders of JPEGs. The thread's other feeds use the same decoders.
  int64_t example = 0;   // Memory for an example that is made outside its place in the slice, and
                         // then copied there.
  // The part of `example` that does not depend on the record. The rest of `example` is for images
  // between transforms. This rest is counted as soon as the size of the images is known.
  int64_t known_example = 0;

  int64_t sum() const { return tables + decoders + example; }
};

// The estimate for a feed with these outputs and this layout of its slices.
ScratchBytes ScratchBytesOf(absl::Span<const OutputPlan> outputs, const SliceLayout& slice);

// The most bytes that a feed may take on a thread.
inline constexpr int64_t kMaxScratchBytes = int64_t{128} << 20;

// Returns InvalidArgument, with the remedy, if bytes.sum() is more than kMaxScratchBytes.
absl::Status CheckScratchBytes(const ScratchBytes& bytes);

}  // namespace systole

#endif  // SYSTOLE_CORE_PLAN_SCRATCH_BYTES_H_
