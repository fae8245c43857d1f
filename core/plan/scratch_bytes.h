// An estimate of what a thread needs beside the slice to make examples of a feed, as far as the
// spec decides it. It is limited, because many wide outputs would take gigabytes on every thread.
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
  int64_t decoders = 0;  // For the JPEGs of an example; the thread's other feeds use them, too.
  int64_t example = 0;   // An example that is not made in its place but copied there.
  // The part of `example` that does not depend on the record. The rest, images between transforms,
  // is counted once their size is known.
  int64_t known_example = 0;

  int64_t sum() const { return tables + decoders + example; }
};

// Of a feed with these outputs and this layout of its slices.
ScratchBytes ScratchBytesOf(absl::Span<const OutputPlan> outputs, const SliceLayout& slice);

// Most bytes that a feed may take on a thread.
inline constexpr int64_t kMaxScratchBytes = int64_t{128} << 20;

// InvalidArgument, with the remedy, if the feed takes more.
absl::Status CheckScratchBytes(const ScratchBytes& bytes);

}  // namespace systole

#endif  // SYSTOLE_CORE_PLAN_SCRATCH_BYTES_H_
