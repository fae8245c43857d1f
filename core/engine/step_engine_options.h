// The limits of an engine, and the numbers that it counts.
//
// Thread-compatible value types.
#ifndef SYSTOLE_CORE_ENGINE_STEP_ENGINE_OPTIONS_H_
#define SYSTOLE_CORE_ENGINE_STEP_ENGINE_OPTIONS_H_

#include <cstdint>
#include <limits>
#include <memory>

#include "absl/time/time.h"
#include "core/batch/stage_times.h"
#include "core/cache/disk_store.h"
#include "core/fetch/block_reader_stats.h"
#include "core/metrics/histogram.h"

namespace systole {

struct StepEngineOptions {
  // Threads that read, decode and transform at a time. When some of them wait for storage, more
  // threads work, so that `threads` processors stay busy (worker_watch.h).
  int threads = 1;
  // All threads, including those that work while others wait or hang. 0: 7 * threads. One dataset
  // gets at most four sevenths of all threads.
  int max_threads = 0;
  // A step fails if one of its reads takes longer than this.
  absl::Duration read_timeout = absl::Seconds(60);
  // Bound on the bytes of all slices: slices that are being made, that lie ready, that are kept for
  // streams that are behind, or that a consumer holds (except with StreamMemory::gives_away). 1 KiB
  // is added to the bytes of each slice (kSliceOverheadBytes). Without the bound, slow clients
  // could fill the memory. A larger bound lets each stream look further ahead.
  int64_t memory_budget_bytes = int64_t{1} << 30;
  // Bound on the memory, besides slices, that all threads together take to make examples, or keep
  // between tasks. One thread may exceed the bound for its example (core/memory/scratch_budget.h).
  // A larger bound lets more threads make large examples at a time.
  // 0: a third of memory_budget_bytes, but at least as much as `threads` threads need for ordinary
  // images.
  int64_t scratch_budget_bytes = 0;
  // The most reads that may run at a time to read records ahead from other machines. Each read
  // takes a thread, which only waits.
  int reads = 64;
  // Bound on the memory for reading ahead: for bytes that are being read, that wait for threads, or
  // that are kept for later. For a feed with the shuffle WINDOW, the bound should be enough for a
  // whole window. 0: a quarter of memory_budget_bytes.
  int64_t read_budget_bytes = 0;
  // A store on this machine's disk that keeps the bytes that were read ahead, also over restarts.
  // Null: nothing is kept on disk.
  std::shared_ptr<DiskStore> block_cache = nullptr;
  // Bound on the number of slices in sealed memory, which other processes can map (BufferKind).
  // Memory that is kept for later slices counts, too. Each of these slices takes a file descriptor
  // here, and a mapping in every client that got the slice. All other slices are in private memory.
  int max_sealed_slices = std::numeric_limits<int>::max();
};

struct StepEngineStats {
  int64_t examples_made = 0;
  int64_t memory_budget_bytes = 0;
  int64_t memory_used_bytes = 0;
  // Memory that threads hold beside slices.
  int64_t scratch_used_bytes = 0;
  int64_t active_streams = 0;
  // How busy the threads were lately, 0 to 1 (BusyShare). Threads that storage holds up count as
  // working.
  double busy = 0;
  // How many threads may now work at a time.
  int threads = 0;
  // threads_stuck: threads whose read hangs now. reads_timed_out: steps that failed because of
  // such a read.
  int threads_stuck = 0;
  int64_t reads_timed_out = 0;
  // The counts of the reader that reads records ahead.
  BlockReaderStats reads = {};
  // How often a stream got a slice that had been begun for another stream of the same plan.
  int64_t slices_shared = 0;
  // slices_ready: the sum of StepStream::CountReady() over all streams. slices_kept: done slices
  // that no stream has now, but some stream will reach.
  int64_t slices_ready = 0;
  int64_t slices_kept = 0;
  // stages: the times of all delivered slices, added up. step_waits: how many seconds streams
  // waited for each of their steps.
  StageTimes stages = {};
  HistogramReading step_waits = {};
};

}  // namespace systole

#endif  // SYSTOLE_CORE_ENGINE_STEP_ENGINE_OPTIONS_H_
