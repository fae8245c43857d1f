#include "client/look/place_kinds.h"

#include <utility>

#include "core/order/record_list.h"
#include "core/spec/order_spec.h"

namespace systole {

PlaceKinds::PlaceKinds(const v1::FeedSpec& spec, std::optional<Order> order)
    : order_(std::move(order)) {
  invalid_ = PlaceKind::kEmpty;
  if (spec.tail() != v1::PAD) invalid_ = PlaceKind::kMasked;
  if (spec.tail() == v1::PAD && spec.on_corrupt() != v1::MASK) invalid_ = PlaceKind::kPadding;
  // An uneven split over the cores leaves places empty in every step.
  if (spec.global_batch() % NumCoresOf(spec) != 0) {
    invalid_ = PlaceKind::kEmpty;
  }
}

KnownPlace PlaceKinds::At(int64_t step, int core, int64_t slot, bool is_valid) const {
  KnownPlace known = {.kind = is_valid ? PlaceKind::kExample : invalid_};
  if (!order_.has_value()) return known;
  known.record = order_->PlaceOnCore(step, core, slot).record;
  if (!is_valid) known.kind = known.record.has_value() ? PlaceKind::kMasked : PlaceKind::kPadding;
  if (known.record == kUnknownRecord) known.record.reset();
  return known;
}

}  // namespace systole
