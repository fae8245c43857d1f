// A feed whose tensors are sent as uint8 and finished by the client (v1::CompactForm).
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

// How the client finishes one tensor.
struct CompactTensor {
  CompactForm form;
  // The channels' index in the tensor's shape. 0 if all values have the same rule.
  int channel_axis = 0;
};

struct CompactFeed {
  // Makes the slices that are sent. This is a copy of the feed's plan, except that tensors with a
  // CompactForm have uint8 elements. The copy is a plan of its own, so engines never mistake its
  // slices for slices of the feed's plan.
  std::shared_ptr<const FeedPlan> plan;
  // One entry for each tensor of the layout. Both plans have the same names and shapes of tensors
  // in the same order. nullopt: the tensor is sent as it is.
  std::vector<std::optional<CompactTensor>> tensors;
};

// nullopt if all tensors of `plan` are sent as they are (see CompactFormOf()). Tensors in tiles are
// sent as they are, because uint8 would be packed in another way. Tensors that the spec's `mix`
// mixes are also sent as they are, because mixing takes finished values. REQUIRES: `dataset` is the
// plan's.
std::optional<CompactFeed> CompactFeedOf(const FeedPlan& plan,
                                         std::shared_ptr<const Dataset> dataset);

}  // namespace systole

#endif  // SYSTOLE_CORE_PLAN_COMPACT_FEED_H_
