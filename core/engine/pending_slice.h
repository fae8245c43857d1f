// One core's slice of one step. Keeps track of which examples are still to be made, and owns the
// slice's memory. A thread takes the next examples as a *run*, and a cursor moves past them. So a
// slice of many examples needs no more bookkeeping than a slice of few. If a thread's turn ends
// before its run is done, the thread gives back the rest of the run.
//
// If records are read ahead, a run is first taken to be read, and given back when its bytes are
// there. Threads that compute get only runs whose bytes are there, and runs of padding. Warm feeds
// (WarmFeeds) are the exception: the bytes of their runs are expected in memory, so a thread that
// computes takes such a run without a read. If the bytes are not in memory, the thread calls
// ReadFirst(), and the run is read.
//
// Thread-compatible, but any thread may use unwanted().
#ifndef SYSTOLE_CORE_ENGINE_PENDING_SLICE_H_
#define SYSTOLE_CORE_ENGINE_PENDING_SLICE_H_

#include <algorithm>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "core/engine/first_error.h"
#include "core/interrupt/interrupt.h"
#include "core/memory/aligned_buffer.h"
#include "core/status/check.h"

namespace systole {

class RunBlocks;  // run_blocks.h

// Examples [begin, end) of a slice.
struct ExampleRange {
  int64_t begin = 0;
  int64_t end = 0;

  int64_t size() const { return end - begin; }
  friend bool operator==(const ExampleRange&, const ExampleRange&) = default;
};

// Examples that a thread gets together, and how much of the work on them is done.
struct ExampleRun {
  ExampleRange examples;
  // How many pieces of the work are done. ExampleMaker does the pieces in a fixed order.
  int64_t done = 0;
  // The error of the lowest slot.
  FirstError error;
  // The bytes of the run's records. Null: these records were not read ahead.
  std::shared_ptr<const RunBlocks> blocks;

  // How many examples are left to do, at least 1. These are the units of work of a FairClock.
  int64_t units_left() const { return std::max<int64_t>(1, examples.size() - done); }
};

// The most examples of a run: one number for runs with records, and one for runs of padding.
struct TaskSize {
  int64_t records = 1;
  int64_t padding = 1;
};

class PendingSlice {
 public:
  // The first `records` of the `examples` have a record, or share their group (v1::Mix) with an
  // example that has a record. The other examples are padding.
  PendingSlice(int64_t step, int core, int64_t examples, int64_t records, bool reads_ahead,
               AlignedBuffer buffer)
      : step_(step),
        core_(core),
        records_(records),
        reads_ahead_(reads_ahead),
        end_(examples),
        data_(buffer.data()),
        buffer_(std::move(buffer)) {}

  int64_t step() const { return step_; }
  int core() const { return core_; }
  // The slice's memory. Each thread writes only to the places of its own examples.
  uint8_t* data() const { return data_; }

  // Whether Take() has a run to give.
  bool has_more() const { return !returned_.empty() || (!has_unread() && has_untaken()); }
  // Whether some examples were not taken yet, either to be read or to be made.
  bool has_untaken() const { return next_ < end_; }
  // How many runs were given back and not taken again.
  int64_t num_returned() const { return static_cast<int64_t>(returned_.size()); }
  // If runs were given back, returns the one with the lowest examples. Otherwise returns the next
  // examples: either only examples with records, or only padding. REQUIRES: has_more().
  ExampleRun Take(const TaskSize& size) {
    SYSTOLE_CHECK(has_more());
    ++running_;
    if (!returned_.empty()) {
      const auto first = std::min_element(
          returned_.begin(), returned_.end(),
          [](const auto& a, const auto& b) { return a.examples.begin < b.examples.begin; });
      ExampleRun run = std::move(*first);
      returned_.erase(first);
      return run;
    }
    const bool padding = next_ >= records_;
    return {.examples =
                padding ? Cut(end_, size.padding) : Cut(std::min(end_, records_), size.records)};
  }
  // Whether TakeToRead() has a run to give. Always false if records are not read ahead.
  bool has_unread() const { return reads_ahead_ && next_ < std::min(end_, records_); }
  // Returns the next examples with records, so that the caller reads these records. The run comes
  // back with ReturnRead() once its bytes are there. REQUIRES: has_unread().
  ExampleRun TakeToRead(const TaskSize& size) {
    SYSTOLE_CHECK(has_unread());
    ++running_;
    ++reading_;
    return {.examples = Cut(std::min(end_, records_), size.records)};
  }
  // Says that a run from Take() is made or has failed. After an error, only examples before the
  // failed one are still handed out. So when the slice is done, the error of its lowest failed
  // example is known.
  void Finish(const ExampleRun& run) {
    Stop();
    if (run.error.status().ok()) return;
    error_.Add(run.examples.begin, run.error.status());
    end_ = next_;
    std::erase_if(returned_, [&](const ExampleRun& other) { return IsBehindError(other); });
  }
  // Gives back a run from Take() that is not done.
  void Return(ExampleRun run) {
    Stop();
    if (!is_dropped() && !IsBehindError(run)) returned_.push_back(std::move(run));
  }
  // Says that a run from Take() must be read before it is made.
  void ReadFirst() { ++reading_; }
  // Gives back a run from TakeToRead(), or from Take() and ReadFirst().
  void ReturnRead(ExampleRun run) {
    --reading_;
    Return(std::move(run));
  }

  // No stream wants the slice any more. From now on no run is handed out.
  void Drop() {
    unwanted_.Raise();
    end_ = next_;
    returned_.clear();
  }
  bool is_dropped() const { return unwanted_.is_raised(); }
  // Raised by Drop(), so that threads that work at the slice stop. Any thread may read the flag.
  const InterruptFlag& unwanted() const { return unwanted_; }

  // Whether runs are being read, and no thread works or could work at the slice.
  bool only_reads() const { return reading_ > 0 && reading_ == running_ && !has_more(); }
  // Whether all runs that were handed out are done, and no run is left.
  bool is_done() const { return !has_untaken() && returned_.empty() && running_ == 0; }
  // The error of the lowest failed example; OK if none failed.
  const absl::Status& error() const { return error_.status(); }

  const AlignedBuffer& buffer() const { return buffer_; }
  // Gives the memory to the caller. Call TakeBuffer() once. REQUIRES: is_done().
  AlignedBuffer TakeBuffer() {
    SYSTOLE_CHECK(is_done());
    return std::move(buffer_);
  }

 private:
  // The next `size` examples before `end`.
  ExampleRange Cut(int64_t end, int64_t size) {
    const ExampleRange range = {.begin = next_, .end = std::min(end, next_ + size)};
    next_ = range.end;
    return range;
  }
  void Stop() {
    SYSTOLE_CHECK(running_ > 0);
    --running_;
  }
  // Whether no error of the run can change error() any more.
  bool IsBehindError(const ExampleRun& run) const {
    return !error().ok() && run.examples.begin > error_.slot();
  }

  const int64_t step_;
  const int core_;
  const int64_t records_;
  const bool reads_ahead_;
  int64_t next_ = 0;
  int64_t end_;
  int64_t running_ = 0;  // Runs that were handed out, and neither finished nor given back.
  int64_t reading_ = 0;  // Runs of running_ that are being read now.
  std::vector<ExampleRun> returned_;
  InterruptFlag unwanted_;
  FirstError error_;
  uint8_t* const data_;
  AlignedBuffer buffer_;
};

}  // namespace systole

#endif  // SYSTOLE_CORE_ENGINE_PENDING_SLICE_H_
