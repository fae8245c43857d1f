// One core's slice of one step while it is being made, and its memory as long as somebody holds it.
// A cursor moves through its examples. Each task is cut off when a thread takes it, so a slice of
// many examples needs no more bookkeeping.
//
// Thread-compatible.
#ifndef SYSTOLE_CORE_PIPELINE_PENDING_SLICE_H_
#define SYSTOLE_CORE_PIPELINE_PENDING_SLICE_H_

#include <algorithm>
#include <cstdint>
#include <utility>

#include "absl/status/status.h"
#include "core/memory/aligned_buffer.h"
#include "core/pipeline/first_error.h"
#include "core/status/check.h"

namespace systole {

// Examples [begin, end) of a slice.
struct ExampleRange {
  int64_t begin = 0;
  int64_t end = 0;

  int64_t size() const { return end - begin; }
  friend bool operator==(const ExampleRange&, const ExampleRange&) = default;
};

// Most examples of a task: of those that have a record, or of padding.
struct TaskSize {
  int64_t records = 1;
  int64_t padding = 1;
};

class PendingSlice {
 public:
  // Of the `examples` the first `records` have a record, or share their group with one that has;
  // those behind are padding.
  PendingSlice(int64_t step, int core, int64_t examples, int64_t records, AlignedBuffer buffer)
      : step_(step),
        core_(core),
        records_(records),
        end_(examples),
        data_(buffer.data()),
        buffer_(std::move(buffer)) {}

  int64_t step() const { return step_; }
  int core() const { return core_; }
  // The memory that tasks write to, each to its own places.
  uint8_t* data() const { return data_; }

  // Whether Take() has something to give.
  bool has_more() const { return next_ < end_; }
  // The next examples: records or padding, never both. REQUIRES: has_more().
  ExampleRange Take(const TaskSize& size) {
    SYSTOLE_CHECK(has_more());
    const bool padding = next_ >= records_;
    const ExampleRange range = {.begin = next_,
                                .end = padding ? std::min(end_, next_ + size.padding)
                                               : std::min({end_, records_, next_ + size.records})};
    next_ = range.end;
    ++running_;
    return range;
  }
  // `range`, which Take() gave, is made or failed. After an error no more is handed out. All
  // examples before it have been, so the lowest error is known when those are done.
  void Finish(const ExampleRange& range, absl::Status status) {
    SYSTOLE_CHECK(running_ > 0);
    --running_;
    if (status.ok()) return;
    error_.Add(range.begin, std::move(status));
    end_ = next_;
  }

  // The slice is no longer wanted: hands out nothing from now on.
  void Drop() {
    dropped_ = true;
    end_ = next_;
  }
  bool is_dropped() const { return dropped_; }

  // Whether all that was handed out is done and nothing is left.
  bool is_done() const { return !has_more() && running_ == 0; }
  // The error of the lowest example; OK if there was none.
  const absl::Status& error() const { return error_.status(); }

  const AlignedBuffer& buffer() const { return buffer_; }
  // Gives the memory away. Call it once. REQUIRES: is_done().
  AlignedBuffer TakeBuffer() {
    SYSTOLE_CHECK(is_done());
    return std::move(buffer_);
  }

 private:
  const int64_t step_;
  const int core_;
  const int64_t records_;
  int64_t next_ = 0;
  int64_t end_;
  int64_t running_ = 0;  // Tasks handed out and not finished.
  bool dropped_ = false;
  FirstError error_;
  uint8_t* const data_;
  AlignedBuffer buffer_;
};

}  // namespace systole

#endif  // SYSTOLE_CORE_PIPELINE_PENDING_SLICE_H_
