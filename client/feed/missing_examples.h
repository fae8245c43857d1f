// The places of a step that hold no example: `valid` is 0 there. Where the epoch's order has a
// record, it was damaged and the feed masks such records (on_corrupt: MASK); where it has none, the
// place is padding behind the epoch's last record (tail: PAD).
//
// Thread-safe: no state.
#ifndef SYSTOLE_CLIENT_FEED_MISSING_EXAMPLES_H_
#define SYSTOLE_CLIENT_FEED_MISSING_EXAMPLES_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "client/feed/feed_client_stats.h"
#include "client/feed/step.h"
#include "core/order/order.h"

namespace systole {

struct MissingExamples {
  int64_t masked = 0;
  int64_t padded = 0;
  // The record_id of each masked place, by core and place.
  std::vector<int64_t> masked_records;

  bool empty() const { return masked == 0 && padded == 0; }
};

// Costs a look at each byte of `valid`, and some hundred nanoseconds for each place that is
// missing. Without an `order` all of them count as masked: they are not to go unseen.
MissingExamples FindMissing(const Step& step, const std::optional<Order>& order);

// Counts and lists them in `stats`.
void AddMissing(const MissingExamples& missing, FeedClientStats& stats);

}  // namespace systole

#endif  // SYSTOLE_CLIENT_FEED_MISSING_EXAMPLES_H_
