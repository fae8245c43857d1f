// Logs that a stream opened, and how it ended. Logs nothing in between.
//
// Single-thread.
#ifndef SYSTOLE_SERVER_STREAMS_STREAM_LOG_H_
#define SYSTOLE_SERVER_STREAMS_STREAM_LOG_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "core/concurrency/monotonic_clock.h"
#include "core/engine/step_engine.h"
#include "core/log/event_log.h"
#include "core/plan/feed_plan.h"

namespace systole {

// The name of a client in the log: the client's address, and its identity if it has one.
std::string ShownClient(const LogFields& about);

class StreamLog {
 public:
  // Logs that a stream of `plan` has opened. Uses the client, the identity and the trace of
  // `about`. `events` must outlive this object.
  StreamLog(EventLog& events, int64_t stream, LogFields about, const FeedPlan& plan,
            const StepRange& range, MonotonicClock clock = SteadyClock());

  void CountBytes(int64_t payload_bytes) { payload_bytes_ += payload_bytes; }
  void CountStep();

  // Logs how the stream ended. `why` is the reason in words. Call once.
  void End(LogLevel level, absl::string_view why);

 private:
  EventLog& events_;
  const std::string name_;  // "stream 12 of feed 0123456789abcdef".
  LogFields about_;
  const int64_t stride_;
  const MonotonicClock clock_;
  const absl::Duration begin_;
  int64_t steps_ = 0;
  int64_t payload_bytes_ = 0;
};

}  // namespace systole

#endif  // SYSTOLE_SERVER_STREAMS_STREAM_LOG_H_
