#include "core/order/feed_position.h"

#include <algorithm>
#include <limits>
#include <string>

#include "absl/numeric/int128.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "core/status/check.h"

namespace systole {
namespace {

absl::uint128 Wide(int64_t value) { return static_cast<uint64_t>(value); }

int64_t Narrow(absl::uint128 value) { return static_cast<int64_t>(absl::Uint128Low64(value)); }

// The number of examples in all steps of one epoch.
int64_t ExamplesPerEpoch(const Order& order) {
  return std::min(order.spec().num_records, order.steps_per_epoch() * order.spec().global_batch);
}

}  // namespace

FeedPosition PositionBefore(const Order& order, int64_t step) {
  SYSTOLE_CHECK(step >= 0);
  const int64_t epoch = step / order.steps_per_epoch();
  const int64_t examples = step % order.steps_per_epoch() * order.spec().global_batch;
  if (order.spec().mixture == nullptr) return {.epoch = epoch, .examples = examples};
  const absl::uint128 turns = Wide(epoch) * Wide(ExamplesPerEpoch(order)) + Wide(examples);
  const absl::uint128 records = Wide(order.spec().num_records);
  return {.epoch = Narrow(turns / records), .examples = Narrow(turns % records)};
}

absl::uint128 TurnsBefore(const Order& order, const FeedPosition& position) {
  return Wide(position.epoch) * Wide(order.spec().num_records) + Wide(position.examples);
}

std::string PositionText(const Order& order, const FeedPosition& position) {
  if (order.spec().mixture == nullptr) {
    return absl::StrCat("after ", position.examples, " examples of epoch ", position.epoch);
  }
  return absl::StrFormat("after %d examples of the mixture", TurnsBefore(order, position));
}

absl::StatusOr<ResumedStep> StepFrom(const Order& order, const FeedPosition& position) {
  const int64_t records = order.spec().num_records;
  if (position.epoch < 0 || position.examples < 0 || position.examples >= records) {
    return absl::InvalidArgumentError(
        absl::StrCat("a feed of ", records, " records has no position after ", position.examples,
                     " examples of epoch ", position.epoch, "; want epoch 0 or more, and 0 to ",
                     records - 1, " examples"));
  }
  absl::uint128 epoch = Wide(position.epoch);
  int64_t examples = position.examples;
  const int64_t per_epoch = ExamplesPerEpoch(order);
  if (order.spec().mixture != nullptr) {
    const absl::uint128 turns = TurnsBefore(order, position);
    epoch = turns / Wide(per_epoch);
    examples = Narrow(turns % Wide(per_epoch));
  }
  const int64_t batch = order.spec().global_batch;
  // `rounded_up` is steps_per_epoch() + 1 if the position is in the tail that kDrop leaves out.
  const int64_t rounded_up = examples / batch + (examples % batch == 0 ? 0 : 1);
  const int64_t step_in_epoch = std::min(rounded_up, order.steps_per_epoch());
  const absl::uint128 step = epoch * Wide(order.steps_per_epoch()) + Wide(step_in_epoch);
  if (step > Wide(std::numeric_limits<int64_t>::max())) {
    return absl::InvalidArgumentError(absl::StrCat("a feed has no position ",
                                                   PositionText(order, position),
                                                   ": the step's number would exceed 2^63 - 1"));
  }
  // The position may be that of a feed with another global batch. With kDrop, that feed may have
  // delivered more examples of a mixture than this whole feed has. Then no step is left.
  const int64_t end = order.total_steps().value_or(std::numeric_limits<int64_t>::max());
  if (step > Wide(end) && order.spec().mixture != nullptr &&
      TurnsBefore(order, position) <= Wide(order.spec().epochs) * Wide(records)) {
    return ResumedStep{.step = end};
  }
  return ResumedStep{
      .step = Narrow(step),
      .skipped = std::max<int64_t>(std::min(step_in_epoch * batch, per_epoch) - examples, 0)};
}

}  // namespace systole
