// The virtual clock of chips that are fed over PCIe. From the times at which the cores' slices of a
// step arrived at the host, the clock computes when the step starts. Only Step() and Slip() move
// the clock.
//
// With room for D steps in each core's queue, for step i and core c:
//   enqueued(i,c) = max(arrived(i,c), start(i-D))        a place is free when step i-D is taken
//   ready(i,c)    = max(enqueued(i,c), link free) + transfer_time
//   start(i)      = max over c of max(ready(i,c), end(i-1))      all cores meet: the barrier
//   end(i)        = start(i) + step_time
// With one core per chip, "link free" is ready(i-1,c), and the formulas are the queue model of
// TensorFlow's infeed.
//
// The PCIe link belongs to a chip. The slices of the chip's cores cross the link one at a time,
// each at full speed. A host hands over whole steps, so all slices of a step cross before any slice
// of the next step. Within a step, slices cross in the order in which they were enqueued. If two
// slices were enqueued at the same time, the slice of the lower core crosses first.
//
// Per core c: infeed stall = max(0, ready(i,c) - end(i-1)), transfer included; barrier = the rest
// of the wait. So a core's infeed stall is only the wait for its own slice.
//
// Thread-compatible value type.
#ifndef SYSTOLE_CLIENT_EMULATOR_TIMING_INFEED_CLOCK_H_
#define SYSTOLE_CLIENT_EMULATOR_TIMING_INFEED_CLOCK_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "client/emulator/timing/step_record.h"

namespace systole::emulator {

struct InfeedOptions {
  // The number of cores, 1 to 65536.
  int num_cores = 1;
  // Cores that share a PCIe link, 1 to 65536. The last chip may have fewer cores.
  int cores_per_chip = 1;
  // Steps that can wait in front of a core, besides the step that the core works on: 1 to 65536. A
  // larger number hides longer interruptions of the feed.
  int64_t queue_depth = 2;
  // The chip's step time, all-reduce included; > 0 and at most an hour.
  absl::Duration step_time;
  // The time of one core's slice over a PCIe link that nothing else uses; >= 0 and at most an hour.
  absl::Duration transfer_time;
};

class InfeedClock {
 public:
  // InvalidArgument if an option is out of range.
  static absl::StatusOr<InfeedClock> Create(const InfeedOptions& options);

  // Runs the next step. `arrived[c]` is when core c's slice arrived, on the time scale of end().
  // REQUIRES: arrived.size() == num_cores.
  StepRecord Step(absl::Span<const absl::Duration> arrived);

  // Moves the clock forward by a time that the emulator lost, but that real chips would not have
  // lost. The next step records this time as its `overhead`.
  void Slip(absl::Duration overhead);

  // The end of the last step, plus any Slip() since then. It is 0 at the beginning.
  absl::Duration end() const { return end_; }
  const InfeedOptions& options() const { return options_; }

 private:
  explicit InfeedClock(const InfeedOptions& options);

  // Feeds the cores [begin, end) of one chip, and sets their ready_. Their queues have room for
  // this step from the time `room_at` on.
  void Transfer(int begin, int end, absl::Duration room_at,
                absl::Span<const absl::Duration> arrived);

  InfeedOptions options_;
  int64_t steps_ = 0;
  absl::Duration end_;
  absl::Duration overhead_;                // What Slip() added since the last step.
  std::vector<absl::Duration> starts_;     // A ring: the starts of the last queue_depth steps.
  std::vector<absl::Duration> link_free_;  // Per chip: when its link is free.
  std::vector<absl::Duration> ready_;      // Per core, of the current step.
  std::vector<int> order_;                 // Scratch.
};

}  // namespace systole::emulator

#endif  // SYSTOLE_CLIENT_EMULATOR_TIMING_INFEED_CLOCK_H_
