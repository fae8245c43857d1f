// Which stage held up a step, and when: spans of time that do not overlap.
//
//   | storage | decode | wire | client |        | decode | wire | client |  complete
//   \________ slice of core 0 ________/  (gap)  \____ slice of core 1 ___/
//
// The server says only how long each stage of a slice took (StageTimes). So the spans of a slice
// are counted back from the moment when its first chunk arrives, and no clock of a server is
// needed. A step waits for its last slice. So where stages of two slices overlap in time, the
// stages of the later slice count. But a slice may be done before the slice ahead of it has arrived
// in full. In this case the stages of the finished slice held up nothing, and do not count. A
// moment that lies in no span belongs to no stage. For example, there is no span for the time in
// which the request is on its way.
//
// All times are since one fixed moment. Thread-compatible.
#ifndef SYSTOLE_CLIENT_VERDICT_STEP_SPANS_H_
#define SYSTOLE_CLIENT_VERDICT_STEP_SPANS_H_

#include <optional>

#include "absl/container/inlined_vector.h"
#include "absl/time/time.h"
#include "client/verdict/feed_verdict.h"
#include "core/batch/stage_times.h"

namespace systole {

struct StageSpan {
  WaitCause cause = WaitCause::kUnknown;
  // For kDecode: StageTimes::costliest and its operation.
  int output = -1;
  int operation = -1;
  absl::Duration begin;
  absl::Duration end;
};

class StepSpans {
 public:
  // The first chunk of a slice came at `arrived`, and this process was done with the chunk at
  // `handled`. `stages` is nullopt if the server sent no stages. The time before the slice arrived
  // then counts as kUnknown.
  void BeginSlice(const std::optional<StageTimes>& stages, absl::Duration arrived,
                  absl::Duration handled);
  // A further chunk of the slice. The time from the end of one chunk's handling to the next chunk's
  // arrival counts as kWire.
  void AddChunk(absl::Duration arrived, absl::Duration handled);
  // Forgets everything, for another step.
  void Clear();
  // The step's last chunk was handled. Called once.
  void Complete() { EndSlice(); }
  // `other` has the spans of another copy of the same step, which came too late. Up to the first
  // span of this object, the late copy held up the step. So its spans before this moment are added.
  // REQUIRES: Complete() was called on this object, and not on `other`.
  void AddBefore(StepSpans other);

  using Spans = absl::InlinedVector<StageSpan, 6>;
  // In time order. REQUIRES: Complete() was called, as for complete_at().
  const Spans& spans() const { return spans_; }
  // When the step was complete. -InfiniteDuration if it had no chunk.
  absl::Duration complete_at() const { return end_; }

 private:
  void Append(WaitCause cause, absl::Duration begin, absl::Duration end, int output = -1,
              int operation = -1);
  // Ends the slice with two spans: one of kWire and one of kClient. They have the sums of the times
  // of all chunks of the slice. The order in which these times alternated does not matter.
  void EndSlice();

  Spans spans_;
  bool in_slice_ = false;
  absl::Duration arrived_;                          // When the slice's first chunk arrived.
  absl::Duration handled_;                          // Time that this process spent on the chunks.
  absl::Duration end_ = -absl::InfiniteDuration();  // When the last chunk was handled.
};

}  // namespace systole

#endif  // SYSTOLE_CLIENT_VERDICT_STEP_SPANS_H_
