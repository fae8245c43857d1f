// When a slice was begun, when it was done, and how long all work on the slice waited for
// storage.
//
//   begun          records are read        examples are made        done       delivered
//   |--- only reads: read ---|-- a thread works, or could work: make --|--- wait ---|
//
// Reading and making may alternate. Only the sums are kept. Records in files of this machine are
// read by the threads that make the examples. These threads sleep while they wait for a file. So
// the part of the time in which they slept counts as `read`, not as `make`.
//
// Thread-compatible.
#ifndef SYSTOLE_CORE_ENGINE_SLICE_TIMES_H_
#define SYSTOLE_CORE_ENGINE_SLICE_TIMES_H_

#include "absl/time/time.h"
#include "core/batch/stage_times.h"

namespace systole {

class SliceTimes {
 public:
  // All moments are given as the time since one fixed moment.
  explicit SliceTimes(absl::Duration begun) : begun_(begun), since_(begun), done_(begun) {}

  // Says whether, from `now` on, all work that is left on the slice waits for reads.
  void SetReads(bool reads, absl::Duration now);
  // A thread worked at the slice for the time `worked`. It slept for `slept` of this time.
  void AddWork(absl::Duration worked, absl::Duration slept);
  // The slice is done.
  void Done(absl::Duration now);
  // When the slice was done. REQUIRES: Done() was called.
  absl::Duration done() const { return done_; }

  // The stages for a stream that has wanted the slice since `wanted` and gets it `now`. Time before
  // `wanted` does not count. If the slice was begun only after `wanted`, the time in between counts
  // as `read` if `reads_ahead`, because the stream waited for room to read. Otherwise it counts as
  // `make`, because the stream waited for a thread. REQUIRES: Done() was called.
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
