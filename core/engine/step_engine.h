// Makes the slices that streams ask for, on a fixed number of threads and under a byte budget.
// Slices are made in the order in which they are needed, and fairly between streams.
//
//   Open() -> StepStream --Next()--> slice, slice, .., end
//                 ^ looks ahead as far as its share of the budget goes
//   slice dropped -> its memory goes to the next slice of some stream
//
// Streams of one plan share slices (step_scheduler.h). If a slice that a stream needs was begun for
// another stream, or is kept for streams that are behind, the stream gets this slice.
//
// A read that hangs keeps its thread and its slice's memory until the read returns. The step that
// needs the read fails after a time-out. The hanging reads of a dataset hold only a part of the
// threads, so streams of other datasets go on.
//
// A slice is cut into tasks of a few examples. A task is cut off the slice only when a thread takes
// it. Start-time fair queueing (fair_clock.h) decides which peer gets the next task, and which
// stream of this peer, by the time that threads have spent on them. So a stream that waits for its
// next slice is not delayed by slices that are made ahead for other streams, nor by a slice of
// millions of examples.
//
// After an example, a thread checks whether its turn of 50 ms is over. If so, the rest of the task
// waits for the stream's next turn. So a turn is too long by at most two examples, because two
// images are decoded together, or by the mixing of one group. The cost of an example is bounded
// (feed_plan.h). Within an example, loops check whether the work is still wanted (core/interrupt).
// So a stream that is cancelled frees its threads at once.
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
#include "core/cache/value_cache.h"
#include "core/engine/core_slice.h"
#include "core/engine/step_engine_options.h"
#include "core/engine/step_range.h"
#include "core/plan/feed_plan.h"

namespace systole {

class EngineThreads;
class ScheduledStream;

// Delivers one consumer's slices in order: steps in the order of the StepRange, and in each step
// the cores in ascending order. Single-thread, except Cancel() and CountReady().
class StepStream {
 public:
  using Result = SliceResult;
  using Done = SliceDone;

  // Calls `done` exactly once: on this thread if the next slice is ready, else on another thread.
  // `done` gets a slice, nullopt at the end, or the error that ended the stream. After an error,
  // later calls get the same error. `done` must not wait, and may call Next() again. REQUIRES: no
  // other Next() under way.
  void Next(Done done);

  // Waits for the next slice and returns it. Do not call this Next() on a thread of the engine, for
  // example in `done`.
  Result Next();

  // Ends the stream. A Next() under way and every later Next() return Cancelled. Work that has not
  // begun is dropped. Thread-safe.
  void Cancel();

  // How many slices Next() would return one after the other without waiting. Thread-safe.
  int64_t CountReady() const;

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

  // Opens a stream and begins to make its slices. Peers share threads and memory evenly, and the
  // streams of a peer share the peer's part. `cache` keeps values of outputs that set `cache` in
  // the spec; null: nothing is kept. The engine holds the cache until the stream is gone and no
  // thread works for the stream. Slices do not hold the cache.
  //   InvalidArgument    `range` is empty, negative or beyond the cores; names the field.
  //   ResourceExhausted  one slice is larger than the whole budget.
  absl::StatusOr<std::unique_ptr<StepStream>> Open(std::shared_ptr<const FeedPlan> plan,
                                                   const StepRange& range,
                                                   const StreamMemory& memory = {},
                                                   std::string peer = "",
                                                   std::shared_ptr<ValueCache> cache = nullptr);

  using Stats = StepEngineStats;
  Stats GetStats() const;
  // GetStats().busy. Costs less than GetStats().
  double busy() const;

  // Cancels every stream, and waits for `patience` at most until no thread works or reads. False: a
  // thread still does, most likely because its read hangs. The destructor would wait for this
  // thread, so a program that must not wait has to end with _Exit().
  bool CancelAll(absl::Duration patience);

 private:
  std::shared_ptr<EngineThreads> engine_;
};

}  // namespace systole

#endif  // SYSTOLE_CORE_ENGINE_STEP_ENGINE_H_
