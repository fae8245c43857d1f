// Whether a place of a step holds an example and, if not, why.
//
// Thread-compatible: const throughout.
#ifndef SYSTOLE_CLIENT_LOOK_PLACE_KINDS_H_
#define SYSTOLE_CLIENT_LOOK_PLACE_KINDS_H_

#include <cstdint>
#include <optional>

#include "core/order/order.h"
#include "systole/v1/feed.pb.h"

namespace systole {

enum class PlaceKind {
  kExample,
  kPadding,  // The order has no record here.
  kMasked,   // The order has a record here, and this record is damaged.
  kEmpty,    // Padding or masked. Without the order it is not known which.
};

struct KnownPlace {
  PlaceKind kind = PlaceKind::kExample;
  std::optional<int64_t> record;  // nullopt: no record, or an unknown one.
};

class PlaceKinds {
 public:
  // `order`: the order of the feed, if it is known.
  PlaceKinds(const v1::FeedSpec& spec, std::optional<Order> order);

  // REQUIRES: step >= 0, `core` is one of the spec's, 0 <= slot < per-core batch.
  KnownPlace At(int64_t step, int core, int64_t slot, bool is_valid) const;

 private:
  PlaceKind invalid_;  // The kind of an invalid place, if only the spec is known.
  std::optional<Order> order_;
};

}  // namespace systole

#endif  // SYSTOLE_CLIENT_LOOK_PLACE_KINDS_H_
