// Takes the times of a stream's steps while it runs, and gives them to the tracer.
//
//   slice: | read | make | wait | arrives here | send |      a step is one slice for each core
//
// Single-thread.
#ifndef SYSTOLE_SERVER_TRACES_STREAM_TRACE_H_
#define SYSTOLE_SERVER_TRACES_STREAM_TRACE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "core/batch/stage_times.h"
#include "server/traces/slow_steps.h"
#include "server/traces/tracer.h"

namespace systole {

// What a stream sends.
struct TracedStream {
  std::string dataset;  // For a mixture its members, separated by commas. Foreign text.
  std::vector<std::string> datasets;
  uint64_t feed = 0;  // The fingerprint of the feed's spec.
  int64_t first_step = 0;
  int core_begin = 0;
  int core_end = 0;
};

class StreamTrace {
 public:
  // `tracer` must outlive this object.
  StreamTrace(Tracer& tracer, CallTrace call, TracedStream stream);

  // The stream got the slice of `core`, and begins to send it.
  void BeginSlice(int core, const StageTimes& stages);
  // The slice was sent.
  void EndSlice();
  // All slices of `step` were sent.
  void EndStep(int64_t step);

  // The stream has ended. Call once.
  void End(const absl::Status& status);

 private:
  Tracer& tracer_;
  const CallTrace call_;
  const TracedStream stream_;  // `dataset` is fit to print.
  int64_t steps_ = 0;          // How many steps were sent.

  // The fields below belong to the step that is being sent.
  bool has_slices_ = false;
  StepTimes times_;
  int slowest_core_ = 0;
  absl::Duration begin_;        // When the step's first slice was begun.
  absl::Duration slice_begin_;  // When the slice that is being sent arrived.
  absl::Duration slice_end_;    // When the latest slice was sent.
};

}  // namespace systole

#endif  // SYSTOLE_SERVER_TRACES_STREAM_TRACE_H_
