// Mixes the examples of a group with their neighbours, in place in the slice, as v1::Mix defines.
//
// Thread-safe: no state. Allocates nothing.
#ifndef SYSTOLE_CORE_ENGINE_GROUP_MIXER_H_
#define SYSTOLE_CORE_ENGINE_GROUP_MIXER_H_

#include <cstdint>

#include "absl/types/span.h"
#include "core/operations/ops/mix_draws.h"
#include "core/order/order.h"
#include "core/plan/feed_plan.h"

namespace systole {

// Mixes the examples in slots [begin, begin + places.size()) of `slice`, a block of
// plan.layout().slice_bytes(). `places` are their places in the feed. An example's partner is the
// next example of its group. The partner of the last example is the first one. An example stays as
// it is if the example or its partner is not valid. REQUIRES: these examples are made, and their
// flags in the `valid` tensor are set. plan.mix() has a value. Both bounds of the slots are
// multiples of plan.mix()->group.
void MixExamples(const FeedPlan& plan, int64_t begin, absl::Span<const Place> places,
                 uint8_t* slice);

// Mixes one group, whose first slot is `begin`. draws[i] says how the example in slot begin + i is
// mixed with the next one. The last example is mixed with the first. REQUIRES: draws.size() ==
// plan.group.
void MixGroup(const MixPlan& plan, const SliceLayout& layout, int64_t begin,
              absl::Span<const MixDraw> draws, uint8_t* slice);

}  // namespace systole

#endif  // SYSTOLE_CORE_ENGINE_GROUP_MIXER_H_
