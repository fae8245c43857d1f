// The threads and the memory with which this process makes the steps of all its LocalFeeds.
//
// Feeds get equal shares of threads and memory, even if the examples of one feed cost more. A feed
// that the trainer does not read keeps at most its share. If another feed waits for memory, the
// unread feed gives memory back. A feed does not disturb the others when it is closed, or when its
// storage does not answer.
//
// No thread runs before the first feed is read. From then on there are 7 * `threads` workers, and
// one thread that watches them. Only `threads` workers work at the same time. The other workers
// take the place of those that wait for storage (core/engine/README.md).
//
// Thread-safe.
#ifndef SYSTOLE_CLIENT_LOCAL_LOCAL_ENGINE_H_
#define SYSTOLE_CLIENT_LOCAL_LOCAL_ENGINE_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/cache/value_cache.h"
#include "core/concurrency/mutex.h"
#include "core/engine/step_engine.h"
#include "core/engine/step_range.h"
#include "core/plan/feed_plan.h"

namespace systole {

struct LocalEngineOptions {
  // How many threads read, decode and transform at the same time.
  int threads = 1;
  // Memory for all steps that are made before a trainer needs them, in bytes. A feed gets at most a
  // quarter of this memory, and less if there are other feeds. 0 means the larger of 1 GiB and four
  // times the `ahead_bytes` of the first Admit().
  int64_t memory_budget_bytes = 0;
  // Memory for records of buckets and web servers that are read ahead or kept for later, in bytes.
  // It comes on top of memory_budget_bytes. 0 means a quarter of memory_budget_bytes.
  int64_t read_budget_bytes = 0;
  // Folder on a local disk for bytes that were read from buckets and web servers. Later runs use
  // these bytes, too. The folder keeps at most block_cache_bytes. Only one process at a time may
  // use it. Empty: nothing is kept on disk.
  std::string block_cache = {};
  int64_t block_cache_bytes = int64_t{64} << 30;
};

class LocalEngine {
 public:
  // InvalidArgument if an option is out of range. The message names the option.
  static absl::StatusOr<std::shared_ptr<LocalEngine>> Create(const LocalEngineOptions& options);

  // Joins the threads, even those whose reads hang. The engine's streams must be destroyed before
  // the engine. Their slices may outlive the engine.
  ~LocalEngine() = default;
  LocalEngine(const LocalEngine&) = delete;
  LocalEngine& operator=(const LocalEngine&) = delete;

  int threads() const { return options_.threads; }
  // The options that the engine was made with.
  const LocalEngineOptions& options() const { return options_; }
  // The budget in use. 0 before the first Admit() if the option is 0.
  int64_t memory_budget_bytes() const ABSL_LOCKS_EXCLUDED(mu_);

  // Admits a feed whose steps made ahead may take up to `ahead_bytes`. Each of its slices takes
  // `slice_bytes` of the budget.
  //   ResourceExhausted  one slice is more than the whole budget.
  absl::Status Admit(int64_t slice_bytes, int64_t ahead_bytes) ABSL_LOCKS_EXCLUDED(mu_);

  // Starts the threads, if they do not run yet, and begins to make slices for an admitted feed.
  // Each slice leaves the budget when the feed gets it. `cache` as for StepEngine::Open(). Also
  // returns errors of DiskStore::Open() for the folder of `block_cache`.
  absl::StatusOr<std::unique_ptr<StepStream>> Open(std::shared_ptr<const FeedPlan> plan,
                                                   const StepRange& range, int64_t ahead_bytes,
                                                   std::shared_ptr<ValueCache> cache)
      ABSL_LOCKS_EXCLUDED(mu_);

 private:
  explicit LocalEngine(const LocalEngineOptions& options)
      : options_(options), memory_budget_bytes_(options.memory_budget_bytes) {}

  const LocalEngineOptions options_;
  mutable Mutex mu_;
  int64_t memory_budget_bytes_ ABSL_GUARDED_BY(mu_);
  int64_t feeds_opened_ ABSL_GUARDED_BY(mu_) = 0;
  std::unique_ptr<StepEngine> steps_ ABSL_GUARDED_BY(mu_);  // Null: no thread runs yet.
};

}  // namespace systole

#endif  // SYSTOLE_CLIENT_LOCAL_LOCAL_ENGINE_H_
