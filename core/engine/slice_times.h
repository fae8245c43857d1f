// When a slice was begun, when it was done, and how long all work on the slice waited for
// storage.
//
//   begun          records are read        examples are made        done       delivered
//   |--- only reads: read ---|-- a thread works, or could work: make --|--- wait ---|
//
// Reading and making may alternate. Only the sums are kept. Records in files of this machine are
// read by the threads that make the examples. These threads sleep while they wait for a file. So
// the part of their working time in which they slept counts as `read`, not as `make`.
//
// Thread-compatible.
#ifndef SYSTOLE_CORE_ENGINE_SLICE_TIMES_H_
#define SYSTOLE_CORE_ENGINE_SLICE_TIMES_H_

#include "absl/time/time.h"
#include "core/batch/stage_times.h"

namespace systole {

class SliceTimes {
 public:
  // All times count from a fixed moment.
  explicit SliceTimes(absl::Duration begun) : begun_(begun), since_(begun), done_(begun) {}

  // True: from `now` on, all work that is left waits for reads. False: from `now` on, some of this
  // work does not wait for reads.
  void SetReads(bool reads, absl::Duration now);
  // A thread worked at the slice for the time `worked`. It slept for `slept` of this time.
  void AddWork(absl::Duration worked, absl::Duration slept);
  // The slice is done.
  void Done(absl::Duration now);
  // When the slice was done. REQUIRES: Done() was called.
  absl::Duration done() const { return done_; }

  // The stages for a stream that has wanted the slice since `wanted` and gets it `now`. Time before
  // `wanted` does not count. If the slice was begun after `wanted`, the stream waited for this
  // beginning: for room to read if `reads_ahead`, otherwise for a thread. REQUIRES: Done() was
  // called.
  StageTimes For(absl::Duration wanted, bool reads_ahead, absl::Duration now) const;

 private:
  const absl::Duration begun_;
  absl::Duration since_;  // read_ is complete up to this time.
  absl::Duration done_;
  bool reads_ = false;
  absl::Duration read_;
  absl::Duration worked_;
  absl::Duration slept_;
};

}  // namespace systole

#endif  // SYSTOLE_CORE_ENGINE_SLICE_TIMES_H_
