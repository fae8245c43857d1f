// Decides which feeds are warm. A feed is warm if its latest tasks have found all their records in
// memory, and these tasks together have at least as many records as an epoch. For a warm feed, the
// threads that compute look for the blocks in memory themselves.
//
// Fewer records would not be enough. A shuffle window has thousands of records. All of them are
// read before the first of them is needed, so later tasks of the window find all records in memory.
// If the feed counted as warm after one window, the thread that reads ahead would begin no slice of
// the next window. So the engine would notice too late that the next window is not in memory.
//
// Thread-compatible.
#ifndef SYSTOLE_CORE_ENGINE_WARM_FEEDS_H_
#define SYSTOLE_CORE_ENGINE_WARM_FEEDS_H_

#include <cstddef>
#include <cstdint>

#include "absl/container/flat_hash_map.h"
#include "core/plan/feed_plan.h"

namespace systole {

class WarmFeeds {
 public:
  // If there are more feeds than this, all are forgotten. Each feed is warm again after another
  // epoch.
  static constexpr size_t kMaxFeeds = 1024;

  // The feed has found a task's `records` in memory. Returns whether the feed is warm now.
  bool Found(const FeedPlan& plan, int64_t records) {
    if (found_.size() >= kMaxFeeds && !found_.contains(plan.fingerprint())) found_.clear();
    int64_t& found = found_[plan.fingerprint()];
    const int64_t epoch = plan.order().steps_per_epoch() * plan.order().spec().global_batch;
    if (found < epoch) found += records;
    return found >= epoch;
  }
  // The records of a task were not in memory.
  void Missed(const FeedPlan& plan) { found_.erase(plan.fingerprint()); }

 private:
  absl::flat_hash_map<uint64_t, int64_t> found_;  // By fingerprint: records since the last miss.
};

}  // namespace systole

#endif  // SYSTOLE_CORE_ENGINE_WARM_FEEDS_H_
