// Translates one output of a feed spec: checks its chain of transforms and works out its shape.
//
// Thread-safe: no state.
#ifndef SYSTOLE_CORE_PIPELINE_OUTPUT_COMPILER_H_
#define SYSTOLE_CORE_PIPELINE_OUTPUT_COMPILER_H_

#include <string>

#include "absl/status/statusor.h"
#include "core/numeric/normalise.h"
#include "core/pipeline/dataset.h"
#include "core/pipeline/feed_plan.h"
#include "core/tensor/dtype.h"
#include "systole/v1/feed.pb.h"

namespace systole {

// All of the plan but `feature` and `tensor`, which depend on the other outputs.
//   InvalidArgument  names the output, the transform's place and field, what was seen and wanted.
absl::StatusOr<OutputPlan> CompileOutput(const v1::Output& output, const Dataset& dataset);

// How values of an output of type uint8, float32 or bfloat16 are written.
PixelType PixelTypeOf(DType dtype);

}  // namespace systole

#endif  // SYSTOLE_CORE_PIPELINE_OUTPUT_COMPILER_H_
