// Finds the places of a step that hold no example, which have `valid` = 0. If the epoch's order has
// a record for the place, that record is damaged and the feed masks it (on_corrupt: MASK). If the
// order has none, the place is padding after the epoch's last record (tail: PAD).
//
// Thread-safe: no state.
#ifndef SYSTOLE_CLIENT_STEP_MISSING_EXAMPLES_H_
#define SYSTOLE_CLIENT_STEP_MISSING_EXAMPLES_H_

#include <cstdint>
#include <string>
#include <vector>

#include "client/step/feed_client_stats.h"
#include "client/step/step.h"
#include "core/order/order.h"

namespace systole {

struct MissingExamples {
  int64_t present = 0;  // Examples that are not missing.
  int64_t padded = 0;
  // The record_id of each masked place, sorted by core, then by place.
  std::vector<int64_t> masked_records;
  // Masked places whose record_id only the servers know, because the spec has a `where`.
  int64_t masked_unknown = 0;

  int64_t masked() const { return static_cast<int64_t>(masked_records.size()) + masked_unknown; }
  bool empty() const { return masked() == 0 && padded == 0; }
};

// Looks at each byte of `valid`, and takes some hundred nanoseconds for each missing example.
MissingExamples FindMissing(const Step& step, const Order& order);

// "step 1: examples masked for damage: 2; record_id 63, 7", for a log. It names the first records
// that are known.
// REQUIRES: at least one example is masked.
std::string MaskedText(int64_t step, const MissingExamples& missing);

// Adds `missing` to the counts and the list in `stats`.
void AddMissing(const MissingExamples& missing, FeedClientStats& stats);

}  // namespace systole

#endif  // SYSTOLE_CLIENT_STEP_MISSING_EXAMPLES_H_
