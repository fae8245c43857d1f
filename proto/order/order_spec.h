// Converts the part of a feed spec that says which record stands where to core/order's form. The
// server serves by it. The client uses it to name the records that a server has masked.
//
// Thread-safe: no state.
#ifndef SYSTOLE_PROTO_ORDER_ORDER_SPEC_H_
#define SYSTOLE_PROTO_ORDER_ORDER_SPEC_H_

#include <cstdint>

#include "core/order/order.h"
#include "systole/v1/feed.pb.h"

namespace systole {

// For a dataset of `num_records` records. Order::Create() checks the numbers. REQUIRES: the values
// of the spec's enumerations are known.
OrderSpec OrderSpecOf(const v1::FeedSpec& spec, int64_t num_records);

}  // namespace systole

#endif  // SYSTOLE_PROTO_ORDER_ORDER_SPEC_H_
