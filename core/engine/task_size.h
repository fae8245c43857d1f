// The most examples that a task of a feed has.
//
// Thread-safe: no state.
#ifndef SYSTOLE_CORE_ENGINE_TASK_SIZE_H_
#define SYSTOLE_CORE_ENGINE_TASK_SIZE_H_

#include <cstdint>

#include "core/engine/pending_slice.h"
#include "core/plan/feed_plan.h"

namespace systole {

TaskSize TaskSizeOf(const FeedPlan& plan);

// `examples`, rounded up to whole groups.
int64_t WholeGroups(const FeedPlan& plan, int64_t examples);

}  // namespace systole

#endif  // SYSTOLE_CORE_ENGINE_TASK_SIZE_H_
