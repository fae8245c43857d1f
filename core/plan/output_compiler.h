// Translates one output of a feed spec: checks it against the dataset, and makes a program of its
// transforms.
//
// Thread-safe: no state.
#ifndef SYSTOLE_CORE_PLAN_OUTPUT_COMPILER_H_
#define SYSTOLE_CORE_PLAN_OUTPUT_COMPILER_H_

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/dataset/dataset.h"
#include "core/plan/output_plan.h"
#include "systole/v1/feed.pb.h"

namespace systole {

// Fills in all fields of the plan except `feature` and `tensor`, which depend on the other outputs.
//   InvalidArgument  the message has the output, the transform's place, the field and the cause.
absl::StatusOr<OutputPlan> CompileOutput(const v1::Output& output, const Dataset& dataset);

// Whether a plan that CompileOutput() made of `output` can feed the records of another dataset,
// too.
//   InvalidArgument  as CompileOutput(); or the feature is of another kind in the other dataset.
absl::Status CheckOtherDataset(const v1::Output& output, const OutputPlan& plan,
                               const Dataset& dataset);

}  // namespace systole

#endif  // SYSTOLE_CORE_PLAN_OUTPUT_COMPILER_H_
