// Bounds how much of an engine one dataset may hold. So if the storage of a dataset hangs, feeds of
// other datasets go on. There are two limits:
//   threads   four sevenths of the threads that do not hang for other datasets
//   memory    for slices with a hanging read: a quarter of the memory budget, or less if reads of
//             more than two datasets hang
// The limit on threads also holds for a dataset whose reads do not hang, because a read that hangs
// looks like a slow read during its first second.
//
// Counts tasks. Has no thread and no clock. Thread-compatible.
#ifndef SYSTOLE_CORE_ENGINE_DATASET_SHARES_H_
#define SYSTOLE_CORE_ENGINE_DATASET_SHARES_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <utility>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "core/plan/feed_plan.h"

namespace systole {

// The number of threads that an engine makes: 7 * `threads`. One dataset may have 4 * `threads` of
// them. Even if the reads of two datasets hang, at least `threads` threads are left for the others.
int MaxThreadsFor(int threads);

// A task whose read hangs.
struct HungTask {
  const FeedPlan* plan = nullptr;
  int64_t record = 0;  // The record that the task reads, or an earlier record.
  // In a zip, the member whose record is read. Nullopt: no zip, or the member is not known.
  std::optional<size_t> part = std::nullopt;
  int64_t cost_bytes = 0;  // The cost of the task's slice.
  bool timed_out = false;  // Whether the task's step has failed because the read hangs.
};

class DatasetShares {
 public:
  // `read_timeout` is for messages.
  DatasetShares(int max_threads, absl::Duration read_timeout)
      : max_threads_(max_threads), read_timeout_(read_timeout) {}

  // A task of the plan has begun, or has ended. Returns whether one of the plan's datasets has just
  // reached its share of the threads, or has just fallen below this share.
  bool Begin(const FeedPlan& plan) { return Count(plan, 1); }
  bool End(const FeedPlan& plan) { return Count(plan, -1); }

  // Says which streams wait or fail. A verdict holds until the tasks change.
  class Verdict {
   public:
    explicit Verdict(std::map<const Dataset*, absl::Status> blocked)
        : blocked_(std::move(blocked)) {}

    // The verdict for streams of `plan`. Nullopt: the streams go on. OK: no task is taken for the
    // streams, because one of their datasets already has its full share. An error: one of their
    // datasets has its full share, and a read of this dataset has timed out. The streams fail with
    // this error, even new streams, which would only wait for the same storage.
    std::optional<absl::Status> Of(const FeedPlan& plan) const;

   private:
    std::map<const Dataset*, absl::Status> blocked_;
  };

  // `hung` are tasks that have begun and not ended. `budget_bytes` is the budget of all slices.
  Verdict Judge(absl::Span<const HungTask> hung, int64_t budget_bytes) const;

  // The error for the streams of the task's slice.
  absl::Status ReadHangs(const HungTask& task) const;

 private:
  bool Count(const FeedPlan& plan, int more);
  // How many threads may work for one dataset while `stuck_for_others` threads hang for other
  // datasets.
  int ShareOfThreads(int stuck_for_others) const;

  const int max_threads_;
  const absl::Duration read_timeout_;
  // The number of tasks that run for each dataset. A dataset without tasks has no entry.
  std::map<const Dataset*, int> threads_of_;
};

}  // namespace systole

#endif  // SYSTOLE_CORE_ENGINE_DATASET_SHARES_H_
