// Where a feed stands, counted in examples. A step's number stands for other examples if the global
// batch changes. A number of examples does not depend on the global batch. So a feed can go on at
// the same example with another global batch.
//
// Thread-safe: no state.
#ifndef SYSTOLE_CORE_ORDER_FEED_POSITION_H_
#define SYSTOLE_CORE_ORDER_FEED_POSITION_H_

#include <cstdint>
#include <string>

#include "absl/numeric/int128.h"
#include "absl/status/statusor.h"
#include "core/order/order.h"

namespace systole {

// `examples` of the epoch's examples were delivered. At the end of an epoch, the position is
// example 0 of the next epoch, whatever the tail left out. The epochs of a mixture are not passes
// over its records, and with kDrop their length depends on the batch. So in a mixture `epoch *
// num_records + examples` counts all examples that were delivered.
struct FeedPosition {
  int64_t epoch = 0;     // >= 0
  int64_t examples = 0;  // 0 .. num_records - 1

  bool operator==(const FeedPosition&) const = default;
};

// The position before `step`. REQUIRES: step >= 0 (CHECK).
FeedPosition PositionBefore(const Order& order, int64_t step);

// The turns that a mixture has taken before `position`.
absl::uint128 TurnsBefore(const Order& order, const FeedPosition& position);

// The position in words: "after 40 examples of epoch 2". For a mixture, the text counts the
// examples of all epochs: "after 540 examples of the mixture".
std::string PositionText(const Order& order, const FeedPosition& position);

// Where a feed goes on.
struct ResumedStep {
  int64_t step = 0;
  // Examples between the position and the step. 0 if the position was taken with the order's own
  // global batch. Does not count examples that kDrop leaves out in every epoch.
  int64_t skipped = 0;
};

// The first step whose examples all come at `position` or later. If no step begins at `position`,
// this is the next step, which may be the first of the next epoch. If kDrop leaves a mixture fewer
// examples than come before `position`, this is the step after the feed's last one.
//   InvalidArgument  no feed of `order` can stand at `position`, because `order` has fewer records,
//                    or the step's number is beyond 2^63 - 1.
absl::StatusOr<ResumedStep> StepFrom(const Order& order, const FeedPosition& position);

}  // namespace systole

#endif  // SYSTOLE_CORE_ORDER_FEED_POSITION_H_
