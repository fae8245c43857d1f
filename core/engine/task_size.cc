#include "core/engine/task_size.h"

#include <algorithm>

namespace systole {
namespace {

// Examples of one task: enough that handing it over costs nothing beside a decode of half a
// millisecond each, few enough that one slice of images keeps several threads busy.
constexpr int64_t kMinExamplesPerTask = 8;
// Bytes that a task of small ones is made up to, of records read or of padding written: below,
// handing over and reading cost more than the work.
constexpr int64_t kTaskBytes = 256 << 10;
// A thread keeps some 64 bytes for each example of its task.
constexpr int64_t kMaxExamplesPerTask = 4096;
// Values that the examples of a task are made of, if it has several. A turn ends sooner (some 50
// ms); but what is left of a task is one thread's, while others could have made examples of it.
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
