// When a slice was begun and done, and for how long all that was left of it waited for storage.
//
//   begun          records are read        examples are made        done       delivered
//   |--- only reads: read ---|-- a thread works, or could work: make --|--- wait ---|
//
// Reading and making may alternate. Only the sums are kept. Records that threads read by themselves
// (files of this machine) count, too: a thread's sleep is a read, and the part of the working time
// that threads slept is taken from `make`.
//
// Thread-compatible.
#ifndef SYSTOLE_CORE_ENGINE_SLICE_TIMES_H_
#define SYSTOLE_CORE_ENGINE_SLICE_TIMES_H_

#include "absl/time/time.h"
#include "core/batch/stage_times.h"

namespace systole {

class SliceTimes {
 public:
  // Times are since a fixed moment.
  explicit SliceTimes(absl::Duration begun) : begun_(begun), since_(begun), done_(begun) {}

  // From `now` on all that is left to do waits for reads, or it no longer does.
  void SetReads(bool reads, absl::Duration now);
  // A thread worked at the slice for `worked`. For `slept` of it, it slept.
  void AddWork(absl::Duration worked, absl::Duration slept);
  // The slice is done.
  void Done(absl::Duration now);
  // When it was done. REQUIRES: Done() was called.
  absl::Duration done() const { return done_; }

  // The stages for a stream that wants the slice since `wanted` and gets it `now`. What was done
  // before `wanted` does not count. If the slice was begun later, the stream waited for its begin:
  // for room to read if `reads_ahead`, else for a thread. REQUIRES: Done() was called.
  StageTimes For(absl::Duration wanted, bool reads_ahead, absl::Duration now) const;

 private:
  const absl::Duration begun_;
  absl::Duration since_;  // Up to here read_ is complete.
  absl::Duration done_;
  bool reads_ = false;
  absl::Duration read_;
  absl::Duration worked_;
  absl::Duration slept_;
};

}  // namespace systole

#endif  // SYSTOLE_CORE_ENGINE_SLICE_TIMES_H_
