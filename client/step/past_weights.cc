#include "client/step/past_weights.h"

#include <cstddef>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/numeric/int128.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/types/span.h"
#include "core/order/feed_position.h"
#include "core/order/mixture.h"

namespace systole {
namespace {

// The turn (core/order/mixture.h) at which the change at `place` begins. If `place` is a step
// number, it means a step of `steps`.
absl::uint128 TurnOf(const ChangePlace& place, const Order& steps) {
  return place.by_example ? place.turn : TurnsBefore(steps, PositionBefore(steps, place.number));
}

// Whether the changes of `order` before the token's position are those of the token's feed, if step
// numbers in the changes mean steps of `steps`.
bool HasPastOf(const ResumeToken& token, const Order& order, const Order& steps) {
  const absl::uint128 end = TurnsBefore(order, token.position);
  std::vector<absl::uint128> turns;
  for (const WeightChange& change : order.spec().mixture->changes()) {
    const absl::uint128 turn = TurnOf(change.place, steps);
    if (turn >= end) break;
    if (turns.size() == token.weight_changes.size()) return false;
    turns.push_back(turn);
  }
  return turns.size() == token.weight_changes.size() &&
         order.FingerprintIfChangedAt(token.dataset_fingerprint, turns) == token.order_fingerprint;
}

// Whether a step of `steps` begins where the token was taken.
bool HasStepAt(const ResumeToken& token, const Order& steps) {
  const absl::StatusOr<ResumedStep> step = StepFrom(steps, token.position);
  return step.ok() && step->skipped == 0;
}

// `order` with the global batch, at most kMaxBatchFound, that gives it the token's past
// (HasPastOf()) and a step that begins where the token was taken. Nullopt if no batch or more than
// one does: with a choice of batches, the examples at which later changes begin would depend on the
// choice.
std::optional<Order> WithThePastOf(const ResumeToken& token, const Order& order) {
  if (order.spec().mixture == nullptr || token.weight_changes.empty()) return std::nullopt;
  OrderSpec spec = order.spec();
  spec.epochs = 0;  // Endless: with a small batch, the epochs could have too many steps in total.
  std::optional<Order> found;
  for (int64_t batch = 1; batch <= kMaxBatchFound; ++batch) {
    spec.global_batch = batch;
    absl::StatusOr<Order> steps = Order::Create(spec);
    if (!steps.ok()) break;  // This batch is too large, so larger ones are too large as well.
    if (!HasStepAt(token, *steps) || !HasPastOf(token, order, *steps)) continue;
    if (found.has_value()) return std::nullopt;
    found = *std::move(steps);
  }
  return found;
}

// What to do if the past differs.
std::string Remedy(const ResumeToken& token, const Order& order) {
  const std::optional<Order> steps = WithThePastOf(token, order);
  if (!steps.has_value()) {
    return "If the token's feed had another global_batch, its steps began at other examples: write "
           "each of its changes up to this place with `from_example: N` instead of `from_step`, "
           "where N is the number of examples before the change";
  }
  std::vector<std::string> examples;
  for (const WeightChange& change : order.spec().mixture->changes()) {
    if (change.place.by_example) continue;
    examples.push_back(absl::StrFormat("`from_example: %d` instead of `from_step: %d`",
                                       TurnOf(change.place, *steps), change.place.number));
  }
  return absl::StrCat("The token's feed had global_batch: ", steps->spec().global_batch,
                      ", so these steps began at other examples. Examples do not depend on "
                      "global_batch: write ",
                      absl::StrJoin(examples, ", "));
}

}  // namespace

std::string DifferentPast(const ResumeToken& token, const Order& order) {
  const absl::Span<const WeightChange> own =
      order.WeightChangesBefore(TurnsBefore(order, token.position));
  const std::vector<uint16_t>& old = token.weight_changes;
  size_t i = 0;
  while (i < own.size() && i < old.size() && own[i].hash == old[i]) ++i;
  if (i < own.size()) {
    const ChangePlace& place = own[i].place;
    return absl::StrCat("the past differs from ", place.by_example ? "example " : "step ",
                        place.number, " on: at that place the spec has `weights` ",
                        i < old.size() ? "other than those of the token's feed"
                                       : "that the token's feed did not have",
                        ". Weights may change where the token was taken, ",
                        PositionText(order, token.position),
                        ", or later; earlier changes must stay the same. ", Remedy(token, order));
  }
  if (i == old.size()) return "";
  return absl::StrCat("the past differs: before the token was taken, ",
                      PositionText(order, token.position),
                      ", the weights of the token's feed changed more often (", old.size(),
                      ") than those of the spec (", own.size(),
                      "); want the same `weights` before this place. ", Remedy(token, order));
}

}  // namespace systole
