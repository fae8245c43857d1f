#include "server/traces/stream_trace.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_format.h"
#include "core/text/foreign_text.h"

namespace systole {

namespace {

TracedStream Shown(TracedStream stream) {
  stream.dataset = ForeignName(stream.dataset);
  return stream;
}

CallTrace OfStream(CallTrace call) {
  call.is_stream = true;
  return call;
}

}  // namespace

StreamTrace::StreamTrace(Tracer& tracer, CallTrace call, TracedStream stream)
    : tracer_(tracer), call_(OfStream(std::move(call))), stream_(Shown(std::move(stream))) {}

void StreamTrace::BeginSlice(int core, const StageTimes& stages) {
  slice_begin_ = tracer_.Now();
  const absl::Duration begin = slice_begin_ - stages.read - stages.make - stages.wait;
  if (!has_slices_ || stages.read + stages.make > times_.read + times_.make) {
    times_.read = stages.read;
    times_.make = stages.make;
    times_.wait = stages.wait;
    slowest_core_ = core;
  }
  begin_ = has_slices_ ? std::min(begin_, begin) : begin;
  has_slices_ = true;
}

void StreamTrace::EndSlice() {
  slice_end_ = tracer_.Now();
  times_.send += slice_end_ - slice_begin_;
}

void StreamTrace::EndStep(int64_t step) {
  ++steps_;
  tracer_.AddStep(call_, stream_.dataset, stream_.datasets,
                  {.step = step,
                   .core_begin = stream_.core_begin,
                   .core_end = stream_.core_end,
                   .slowest_core = slowest_core_,
                   .times = times_,
                   .ended = tracer_.TimeOfDay(),
                   .trace = call_.trace},
                  slice_end_ - begin_);
  has_slices_ = false;
  times_ = StepTimes();
}

void StreamTrace::End(const absl::Status& status) {
  if (call_.span == 0) return;
  tracer_.End(call_, "StreamSteps", status,
              {{"systole.dataset", stream_.dataset},
               {"systole.feed", absl::StrFormat("%016x", stream_.feed)},
               {"systole.first_step", stream_.first_step},
               {"systole.steps", steps_},
               {"systole.core_begin", int64_t{stream_.core_begin}},
               {"systole.core_end", int64_t{stream_.core_end}}});
}

}  // namespace systole
