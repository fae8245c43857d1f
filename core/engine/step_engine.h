// Makes the slices that streams ask for, on a fixed number of threads and under a byte budget.
// Slices are made in the order in which they are needed, and fairly between streams.
//
//   Open() -> StepStream --Next()--> slice, slice, .., end
//                 ^ looks ahead as far as its share of the budget goes
//   slice dropped -> its memory goes to the next slice of some stream
//
// Streams of one plan share slices (step_scheduler.h). If another stream is making or holding the
// slice that a stream needs, or the engine has kept it, both streams get the same memory.
//
// A read that hangs keeps its thread and its slice's memory until the read returns. The step that
// needs the read fails. The hanging reads of a dataset get no more than a share of the threads, so
// streams of other datasets go on.
//
// A slice is cut into tasks of a few examples. Each task is cut off when a thread takes it.
// Start-time fair queueing (fair_clock.h) decides among peers, and among the streams of each peer.
// Each peer and each stream has a virtual time, which advances by the time that threads spend on
// it. The least advanced one goes first. So neither another stream's look-ahead nor a slice of
// millions of examples holds up a stream that waits for its next slice.
//
// After each example a thread checks whether its work is still wanted. After 50 ms of work, the
// rest of its task waits for its stream's next turn. Loops within an example check only whether the
// work is still wanted (core/interrupt). So other streams wait for one example at most. The cost of
// an example is bounded (feed_plan.h). A stream that is cancelled frees its threads at once.
#ifndef SYSTOLE_CORE_ENGINE_STEP_ENGINE_H_
#define SYSTOLE_CORE_ENGINE_STEP_ENGINE_H_

#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <string>

#include "absl/functional/any_invocable.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "core/cache/disk_store.h"
#include "core/cache/value_cache.h"
#include "core/engine/core_slice.h"
#include "core/engine/step_range.h"
#include "core/fetch/block_reader.h"
#include "core/plan/feed_plan.h"

namespace systole {

struct StepEngineOptions {
  // Threads that read, decode and transform at a time. When some of them wait for storage, more
  // threads work, so that `threads` processors stay busy (worker_watch.h).
  int threads = 1;
  // All threads, including those that work while others wait or hang. 0: 7 * threads, of which one
  // dataset gets 4 * threads at most.
  int max_threads = 0;
  // A step fails if one of its reads takes longer.
  absl::Duration read_timeout = absl::Seconds(60);
  // Bound on the bytes of all slices in flight: those that are being made, that wait, or that are
  // on their way to the kernel. Each counts for 1 KiB more than its bytes (kSliceOverheadBytes).
  // The bound stops slow clients from filling the memory. A larger bound lets each stream look
  // further ahead.
  int64_t memory_budget_bytes = int64_t{1} << 30;
  // Bound on the memory that all threads together take for making examples and keep between tasks.
  // The memory of slices is not part of it. One thread's example may take more
  // (core/memory/scratch_budget.h). A larger bound lets more threads make large examples at a time.
  // 0: a third of memory_budget_bytes, but at least what `threads` need for ordinary images.
  int64_t scratch_budget_bytes = 0;
  // Reads ahead of records that are not on this machine: how many may be under way at a time. Each
  // takes a thread, which only waits.
  int reads = 64;
  // Bound on the memory of what was read ahead: bytes that are being read, that wait for threads or
  // are kept for later. With WINDOW it should hold a window. 0: a quarter of memory_budget_bytes.
  int64_t read_budget_bytes = 0;
  // Keeps what was read on this machine's disk, over restarts. Null: nothing is kept there.
  std::shared_ptr<DiskStore> block_cache = nullptr;
  // Bound on the number of slices in sealed memory: those that are made, lent or kept for reuse.
  // Each takes a file descriptor here and a mapping at every client that has had it. Other slices
  // are in private memory.
  int max_sealed_slices = std::numeric_limits<int>::max();
};

class EngineThreads;
class ScheduledStream;

// Delivers one consumer's slices in order: steps in the order of the StepRange, and in each step
// the cores in ascending order. Single-thread, except Cancel().
class StepStream {
 public:
  using Result = absl::StatusOr<std::optional<SlicePtr>>;
  using Done = absl::AnyInvocable<void(Result)>;

  // Calls `done` exactly once: on this thread if the next slice is ready, else on another thread.
  // `done` gets a slice, nullopt at the end, or the error that ended the stream. Later calls get
  // that error again. `done` must not wait, and may call Next() again. REQUIRES: no other Next()
  // under way.
  void Next(Done done);

  // Waits for the next slice and returns it. Do not call this from a task of the engine.
  Result Next();

  // Ends the stream: a Next() under way and every later one return Cancelled. Work not yet begun is
  // dropped. Thread-safe.
  void Cancel();

  // Cancels the stream.
  ~StepStream();
  StepStream(const StepStream&) = delete;
  StepStream& operator=(const StepStream&) = delete;

 private:
  friend class StepEngine;
  StepStream(std::shared_ptr<EngineThreads> engine, std::shared_ptr<ScheduledStream> stream);

  const std::shared_ptr<EngineThreads> engine_;
  const std::shared_ptr<ScheduledStream> stream_;
};

// Thread-safe.
class StepEngine {
 public:
  // REQUIRES: threads > 0.
  explicit StepEngine(const StepEngineOptions& options);
  // Cancels every stream and joins the threads, even those whose reads hang. Slices may outlive the
  // engine.
  ~StepEngine();
  StepEngine(const StepEngine&) = delete;
  StepEngine& operator=(const StepEngine&) = delete;

  // Begins to make slices. Peers share threads and memory evenly, and the streams of `peer` share
  // its part. `cache` keeps values of outputs with `cache`; null: nothing is kept. The cache is
  // held until the stream is gone and no thread works for the stream. Slices do not hold the cache.
  //   InvalidArgument    `range` is empty, negative or beyond the cores; names the field.
  //   ResourceExhausted  one slice is larger than the whole budget.
  absl::StatusOr<std::unique_ptr<StepStream>> Open(std::shared_ptr<const FeedPlan> plan,
                                                   const StepRange& range,
                                                   const StreamMemory& memory = {},
                                                   std::string peer = "",
                                                   std::shared_ptr<ValueCache> cache = nullptr);

  struct Stats {
    int64_t examples_made = 0;
    int64_t memory_budget_bytes = 0;
    int64_t memory_used_bytes = 0;
    // Memory that threads hold beside slices.
    int64_t scratch_used_bytes = 0;
    int64_t active_streams = 0;
    // Threads that may work at a time now.
    int threads = 0;
    // threads_stuck: threads whose read hangs now. reads_timed_out: steps that failed because of
    // such a read.
    int threads_stuck = 0;
    int64_t reads_timed_out = 0;
    // Of records that are read ahead.
    BlockReaderStats reads = {};
    // Slices that a stream got without making them, because another stream of the same plan had
    // them.
    int64_t slices_shared = 0;
  };
  Stats GetStats() const;

  // Cancels every stream, and waits for `patience` at most until no thread works. False: a thread
  // still works, most likely because its read hangs. The destructor would wait for it, so a program
  // that wants to end then calls _Exit.
  bool CancelAll(absl::Duration patience);

 private:
  std::shared_ptr<EngineThreads> engine_;
};

}  // namespace systole

#endif  // SYSTOLE_CORE_ENGINE_STEP_ENGINE_H_
