// Converts the part of a feed spec that says which record stands where to core/order's form. The
// server serves by it. The client uses it to name the records that a server has masked.
//
// Thread-safe: no state.
#ifndef SYSTOLE_PROTO_ORDER_ORDER_SPEC_H_
#define SYSTOLE_PROTO_ORDER_ORDER_SPEC_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "core/order/order.h"
#include "systole/v1/feed.pb.h"

namespace systole {

// Whether the order depends on how many records each shard has.
bool SelectsByShards(const v1::FeedSpec& spec);

// For a dataset of `num_records` records. Order::Create() checks the numbers. `records_per_shard`
// is looked at only if SelectsByShards(spec). REQUIRES: the values of the spec's enumerations are
// known.
//   InvalidArgument  `select` cannot be applied; the message says which step.
absl::StatusOr<OrderSpec> OrderSpecOf(const v1::FeedSpec& spec, int64_t num_records,
                                      absl::Span<const int64_t> records_per_shard);

}  // namespace systole

#endif  // SYSTOLE_PROTO_ORDER_ORDER_SPEC_H_
