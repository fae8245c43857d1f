// Where a feed stands, counted in examples. Unlike the number of a step, this count does not depend
// on the global batch. So a feed can go on at the same example with another global batch.
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

// What a feed has delivered: all earlier epochs, and the first `examples` examples of `epoch`. At
// the end of an epoch, the position is example 0 of the next epoch, even if kDrop left examples
// out. For a mixture, `epoch` is the count of all delivered examples divided by num_records, and
// `examples` is the remainder. The mixture's own epochs do not count here, because with kDrop their
// length depends on the global batch.
struct FeedPosition {
  int64_t epoch = 0;     // >= 0
  int64_t examples = 0;  // 0 .. num_records - 1

  bool operator==(const FeedPosition&) const = default;
};

// The position before `step`. REQUIRES: step >= 0 (CHECK).
FeedPosition PositionBefore(const Order& order, int64_t step);

// The number of turns that a mixture has taken before `position`.
absl::uint128 TurnsBefore(const Order& order, const FeedPosition& position);

// The position in words: "after 40 examples of epoch 2". For a mixture, the text counts the
// examples of all epochs: "after 540 examples of the mixture".
std::string PositionText(const Order& order, const FeedPosition& position);

// Where a feed goes on.
struct ResumedStep {
  int64_t step = 0;
  // How many examples lie between the position and the step, without those that kDrop leaves out in
  // every epoch. 0 if the position comes from a feed with the order's own global batch.
  int64_t skipped = 0;
};

// The first step whose examples all come at `position` or later. This step may be the first of the
// next epoch. With kDrop, a feed of a mixture may have fewer examples than come before `position`.
// The result is then total_steps(), the step after the feed's last one, if at most epochs *
// num_records examples come before `position`.
//   InvalidArgument  a field of `position` is negative, `examples` is not below num_records, or the
//                    step's number is beyond 2^63 - 1.
absl::StatusOr<ResumedStep> StepFrom(const Order& order, const FeedPosition& position);

}  // namespace systole

#endif  // SYSTOLE_CORE_ORDER_FEED_POSITION_H_
