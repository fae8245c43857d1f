#include "core/engine/task_size.h"

#include <algorithm>

namespace systole {
namespace {

// The fewest examples of a task. A task of costly examples may have fewer. A decode of an image
// takes half a millisecond, so handing a task over costs little beside this many decodes. With more
// images in a task, one slice would keep fewer threads busy.
constexpr int64_t kMinExamplesPerTask = 8;
// A task of small examples has this many bytes of records to read, or of padding to write. With
// fewer bytes, handing the task over and reading would cost more than the work.
constexpr int64_t kTaskBytes = 256 << 10;
// A thread keeps some 64 bytes for each example of its task.
constexpr int64_t kMaxExamplesPerTask = 4096;
// The most values that are computed for the examples of a task, if it has several examples. This
// bound is needed although a turn ends after some 50 ms: the rest of a large task is still made by
// only one thread at a time.
constexpr int64_t kMaxTaskElements = int64_t{1} << 26;

}  // namespace

int64_t WholeGroups(const FeedPlan& plan, int64_t examples) {
  const int64_t group = plan.group();
  return (examples + group - 1) / group * group;
}

TaskSize TaskSizeOf(const FeedPlan& plan) {
  const int64_t by_bytes = std::clamp(kTaskBytes / plan.dataset().mean_record_bytes(),
                                      kMinExamplesPerTask, kMaxExamplesPerTask);
  const int64_t by_cost = std::max<int64_t>(1, kMaxTaskElements / plan.example_elements());
  const int64_t records = std::min(by_bytes, by_cost);
  const int64_t example_bytes = plan.layout().slice_bytes() / plan.layout().per_core_batch();
  const int64_t padding = std::clamp<int64_t>(kTaskBytes / example_bytes, 1, kMaxExamplesPerTask);
  return {.records = WholeGroups(plan, records), .padding = WholeGroups(plan, padding)};
}

}  // namespace systole
