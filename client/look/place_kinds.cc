#include "client/look/place_kinds.h"

#include "core/status/status_macros.h"
#include "proto/order/order_spec.h"

namespace systole {

absl::StatusOr<PlaceKinds> PlaceKinds::Create(const v1::FeedSpec& spec, int64_t num_records) {
  PlaceKind invalid = PlaceKind::kEmpty;
  if (spec.tail() != v1::PAD) invalid = PlaceKind::kMasked;
  if (spec.tail() == v1::PAD && spec.on_corrupt() != v1::MASK) invalid = PlaceKind::kPadding;
  // A split leaves places empty in every step.
  if (spec.num_cores() > 0 && spec.global_batch() % spec.num_cores() != 0) {
    invalid = PlaceKind::kEmpty;
  }
  // How many records each shard has is not known here.
  if (num_records == 0 || SelectsByShards(spec)) return PlaceKinds(invalid, std::nullopt);
  SYSTOLE_ASSIGN_OR_RETURN(const OrderSpec order_spec, OrderSpecOf(spec, num_records, {}));
  SYSTOLE_ASSIGN_OR_RETURN(Order order, Order::Create(order_spec));
  return PlaceKinds(invalid, std::move(order));
}

KnownPlace PlaceKinds::At(int64_t step, int core, int64_t slot, bool is_valid) const {
  KnownPlace known = {.kind = is_valid ? PlaceKind::kExample : invalid_};
  if (!order_.has_value()) return known;
  known.record = order_->PlaceOnCore(step, core, slot).record;
  if (!is_valid) known.kind = known.record.has_value() ? PlaceKind::kMasked : PlaceKind::kPadding;
  return known;
}

}  // namespace systole
