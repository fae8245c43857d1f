// How much work an example of a feed is for a thread, in values computed. It is estimated from the
// feed's spec and a sample of the dataset. It is limited, because otherwise a spec of a few hundred
// bytes could keep a thread, and all that wait for it, busy with one example for minutes.
//
// Thread-safe: no state.
#ifndef SYSTOLE_CORE_PLAN_EXAMPLE_COST_H_
#define SYSTOLE_CORE_PLAN_EXAMPLE_COST_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "core/dataset/dataset.h"
#include "core/plan/output_plan.h"
#include "systole/v1/feed.pb.h"

namespace systole {

// The most values of an example. They take half a second of a thread, or a few seconds with the
// slowest transforms.
inline constexpr int64_t kMaxExampleElements = int64_t{1} << 28;
// The most values of a group of examples that are mixed. Only one thread makes a group.
inline constexpr int64_t kMaxGroupElements = int64_t{1} << 30;

// Values of an example of `outputs`, which are in the order of `spec`; at least 1. Counts the
// pixels of the largest image of the sample, or of the default value, the values that each
// transform computes, and those of `mix`. It is an estimate, because images of the dataset may be
// larger.
//   InvalidArgument  more than the limits. The message has the sum and its largest part.
absl::StatusOr<int64_t> CountExampleElements(const v1::FeedSpec& spec, const Dataset& dataset,
                                             absl::Span<const OutputPlan> outputs, int64_t group);

}  // namespace systole

#endif  // SYSTOLE_CORE_PLAN_EXAMPLE_COST_H_
