// Decides which calls and steps are traced. Puts slow steps into a list for people, and sends spans
// to a collector, if there is one.
//
// A call with a traceparent is traced if the traceparent says "sampled" (OpenTelemetry's "parent
// based"). A call without a traceparent is traced. If too many calls come, some of them are not
// traced (kCallsPerSecond). In a traced stream, each slow step has a span. Of the other steps, only
// some have a span (kStepSpansPerSecond).
//
// Thread-safe.
#ifndef SYSTOLE_SERVER_TRACES_TRACER_H_
#define SYSTOLE_SERVER_TRACES_TRACER_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "core/concurrency/monotonic_clock.h"
#include "core/concurrency/mutex.h"
#include "core/concurrency/wall_clock.h"
#include "core/trace/trace_context.h"
#include "server/otlp/span.h"
#include "server/otlp/span_exporter.h"
#include "server/traces/slow_steps.h"

namespace systole {

// The trace that a call belongs to. Thread-compatible.
struct CallTrace {
  TraceId trace = {};        // Not set: the call belongs to no trace.
  uint64_t span = 0;         // The call's own span. 0: no spans are made of this call.
  uint64_t parent_span = 0;  // The caller's span. 0: the caller has no span.
  bool is_stream = false;    // A stream began. False: the call ends with one answer or an error.
  std::string state = {};
  absl::Time begin = {};

  // The trace's id in a line of the log; empty if the call belongs to no trace.
  std::string id() const { return trace.is_set() ? HexOf(trace) : ""; }
};

struct TracerOptions {
  // Gets the spans. Null: no spans are made.
  std::shared_ptr<SpanExporter> spans = {};
  MonotonicClock clock = SteadyClock();
  WallClock time_of_day = SystemWallClock();
};

class Tracer {
 public:
  // How many calls may get spans: on average per second, and at once after a pause. The calls of
  // all clients count together. Refused calls have an allowance of their own, which has the same
  // size, so that they cannot use up the allowance of streams.
  static constexpr double kCallsPerSecond = 50;
  static constexpr double kCallsAtOnce = 200;
  // How many steps that are not slow have a span: on average per second, and at once after a pause.
  static constexpr double kStepSpansPerSecond = 10;
  static constexpr double kStepSpansAtOnce = 20;

  explicit Tracer(TracerOptions options);

  // The trace of a call that begins now. `parent` is what its client sent.
  CallTrace Begin(const std::optional<TraceContext>& parent) ABSL_LOCKS_EXCLUDED(mu_);
  // Makes the call's span. `method` is a method of Systole's service, such as "StreamSteps". Does
  // nothing for a call without spans.
  void End(const CallTrace& call, const char* method, const absl::Status& status,
           std::vector<SpanAttribute> attributes) ABSL_LOCKS_EXCLUDED(mu_);

  // A step of `call` was sent. The step's span begins `took` before `step.ended`. `dataset` and
  // `datasets` are those that SlowSteps::Add() takes.
  void AddStep(const CallTrace& call, absl::string_view dataset,
               const std::vector<std::string>& datasets, const TracedStep& step,
               absl::Duration took) ABSL_LOCKS_EXCLUDED(mu_);

  absl::Duration Now() const { return options_.clock(); }
  absl::Time TimeOfDay() const { return options_.time_of_day(); }

  const SlowSteps& slow_steps() const { return slow_steps_; }
  SpanCounts span_counts() const {
    return options_.spans == nullptr ? SpanCounts() : options_.spans->counts();
  }

 private:
  // Lets through `per_second` calls or steps a second, and up to `at_once` of them at once after a
  // pause.
  struct Rate {
    double per_second;
    double at_once;
    double left = at_once;
    absl::Duration since = -absl::InfiniteDuration();

    bool Take(absl::Duration now);
    void GiveBack() { left += 1; }  // Take() limits `left` to `at_once`.
  };

  uint64_t NewId();

  const TracerOptions options_;
  SlowSteps slow_steps_;
  const uint64_t seed_;
  std::atomic<uint64_t> ids_ = 0;
  Mutex mu_;
  Rate calls_ ABSL_GUARDED_BY(mu_) = {.per_second = kCallsPerSecond, .at_once = kCallsAtOnce};
  Rate refused_ ABSL_GUARDED_BY(mu_) = {.per_second = kCallsPerSecond, .at_once = kCallsAtOnce};
  Rate steps_ ABSL_GUARDED_BY(mu_) = {.per_second = kStepSpansPerSecond,
                                      .at_once = kStepSpansAtOnce};
};

}  // namespace systole

#endif  // SYSTOLE_SERVER_TRACES_TRACER_H_
