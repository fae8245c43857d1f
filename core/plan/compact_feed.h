// A feed in the form in which its tensors travel as uint8, for a client to finish
// (v1::CompactForm).
//
// Thread-compatible; immutable once made.
#ifndef SYSTOLE_CORE_PLAN_COMPACT_FEED_H_
#define SYSTOLE_CORE_PLAN_COMPACT_FEED_H_

#include <memory>
#include <optional>
#include <vector>

#include "core/dataset/dataset.h"
#include "core/operations/compact_form.h"
#include "core/plan/feed_plan.h"

namespace systole {

// How one tensor is finished.
struct CompactTensor {
  CompactForm form;
  int channel_axis = 0;  // Of the tensor's shape. 0 if all values have one rule.
};

struct CompactFeed {
  // Makes what travels: a copy of the feed's plan, in which tensors with a form end as uint8. As it
  // is another plan, engines never take slices of one for the other's.
  std::shared_ptr<const FeedPlan> plan;
  // By tensor of either plan's layout: names, shapes and their order are the same. nullopt: it
  // travels as it is.
  std::vector<std::optional<CompactTensor>> tensors;
};

// None if all tensors of `plan` travel as they are: see CompactFormOf(). Tensors in tiles do, whose
// uint8 would be packed in another way, and those that `mix` mixes after they were finished.
// REQUIRES: `dataset` is the plan's.
std::optional<CompactFeed> CompactFeedOf(const FeedPlan& plan,
                                         std::shared_ptr<const Dataset> dataset);

}  // namespace systole

#endif  // SYSTOLE_CORE_PLAN_COMPACT_FEED_H_
