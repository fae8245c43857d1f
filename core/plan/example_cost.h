// How many values a thread computes to make one example of a feed. The number is estimated from the
// feed's spec and a sample of the dataset, and is limited. Otherwise a spec of a few hundred bytes
// could keep a thread busy with one example for minutes, while other feeds wait for the thread.
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

// The most values that may be computed for an example. A thread takes half a second for them, or a
// few seconds with the slowest transforms.
inline constexpr int64_t kMaxExampleElements = int64_t{1} << 28;
// The most values for all examples of a group that `mix` mixes. Only one thread makes a group.
inline constexpr int64_t kMaxGroupElements = int64_t{1} << 30;

// How many values are computed for an example; at least 1. `outputs` are in the order of `spec`.
// `group` is how many examples a group of `mix` has. Counts the pixels of the largest image (of the
// sample, or the default value), the values that each transform computes, and the values that `mix`
// computes. The number is an estimate, because the dataset may have larger images.
//   InvalidArgument  the number is above a limit. The message has the sum and its largest part.
absl::StatusOr<int64_t> CountExampleElements(const v1::FeedSpec& spec, const Dataset& dataset,
                                             absl::Span<const OutputPlan> outputs, int64_t group);

}  // namespace systole

#endif  // SYSTOLE_CORE_PLAN_EXAMPLE_COST_H_
