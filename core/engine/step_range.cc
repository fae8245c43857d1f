#include "core/engine/step_range.h"

#include <algorithm>
#include <optional>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace systole {

absl::StatusOr<int64_t> CountSlices(const FeedPlan& plan, const StepRange& range) {
  if (range.first_step < 0 || range.count < 1 || range.stride < 1) {
    return absl::InvalidArgumentError(
        absl::StrCat("first_step ", range.first_step, ", count ", range.count, ", stride ",
                     range.stride, ": want first_step >= 0, count and stride >= 1"));
  }
  if (range.core_begin < 0 || range.core_begin >= range.core_end ||
      range.core_end > plan.num_cores()) {
    return absl::InvalidArgumentError(
        absl::StrCat("cores [", range.core_begin, ", ", range.core_end,
                     "): want a range that is not empty inside [0, ", plan.num_cores(), ")"));
  }
  const std::optional<int64_t> total = plan.order().total_steps();
  if (total.has_value() && range.first_step > *total) {
    return absl::InvalidArgumentError(absl::StrCat("first_step ", range.first_step,
                                                   " lies beyond the feed's end at step ", *total));
  }
  // Steps from first_step to the feed's end, or to the largest step if the feed has no end.
  const int64_t end = total.value_or(std::numeric_limits<int64_t>::max());
  const int64_t steps_left = end - range.first_step;
  const int64_t strides = steps_left / range.stride + (steps_left % range.stride != 0 ? 1 : 0);
  const int64_t most = std::numeric_limits<int64_t>::max() / range.num_cores();
  return std::min({range.count, strides, most}) * range.num_cores();
}

}  // namespace systole
