// Sends spans to a collector of traces, by OTLP over HTTP in JSON. SpanExporter has a thread that
// sends the spans in batches. So a thread that adds a span never waits for the collector.
//
// Thread-safe.
#ifndef SYSTOLE_SERVER_OTLP_SPAN_EXPORTER_H_
#define SYSTOLE_SERVER_OTLP_SPAN_EXPORTER_H_

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "core/concurrency/monotonic_clock.h"
#include "core/concurrency/mutex.h"
#include "core/concurrency/worker_pool.h"
#include "core/http/http_client.h"
#include "core/interrupt/interrupt.h"
#include "core/log/event_log.h"
#include "server/otlp/otlp_options.h"
#include "server/otlp/span.h"

namespace systole {

// Counts since the start: of spans that were sent or dropped, and of calls that got no span.
// Thread-compatible.
struct SpanCounts {
  int64_t sent = 0;
  int64_t no_room = 0;      // Dropped: too many spans waited, or End() had been called.
  int64_t refused = 0;      // Dropped: the collector refused their batch.
  int64_t not_reached = 0;  // Dropped: the collector did not take their batch in time.
  int64_t too_many = 0;     // Calls without a span: they came faster than calls may be traced.
};

class SpanExporter {
 public:
  // Starts the thread. Does not contact the collector, which may start and stop at any time.
  // `events` gets a line when spans cannot be sent any more, and a line when they can be sent
  // again. `events` must outlive the exporter. Null: no log. Errors of HttpClient::Create().
  static absl::StatusOr<std::unique_ptr<SpanExporter>> Create(OtlpOptions options,
                                                              EventLog* events);
  // Calls End(0), and waits for the thread.
  ~SpanExporter();
  SpanExporter(const SpanExporter&) = delete;
  SpanExporter& operator=(const SpanExporter&) = delete;

  // Adds a span to the spans that wait to be sent. If too many wait, drops `span` and counts it.
  void Add(Span span) ABSL_LOCKS_EXCLUDED(mu_);
  // Counts a call that is not traced because too many calls came.
  void CountTooMany() { ++too_many_; }

  // Sends the spans that wait, for at most `patience`, and drops the rest. Spans that are added
  // later are dropped. Returns false if the thread still works 0.2 s after `patience`. The
  // destructor would then wait for the thread.
  bool End(absl::Duration patience) ABSL_LOCKS_EXCLUDED(mu_);

  SpanCounts counts() const;
  // The collector as messages name it: without path and query.
  const std::string& collector() const { return collector_; }

 private:
  SpanExporter(OtlpOptions options, std::string collector, EventLog* events,
               std::unique_ptr<HttpClient> client);

  void Run() ABSL_LOCKS_EXCLUDED(mu_);
  // Waits for the next batch. Empty: no further batch will come.
  std::vector<Span> NextBatch() ABSL_LOCKS_EXCLUDED(mu_);
  bool HasBatch() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void Send(const std::vector<Span>& batch) ABSL_LOCKS_EXCLUDED(mu_);
  // The moment at which the thread gives up a batch that it began to send at `begin`. End() may
  // bring this moment forward.
  absl::Duration DeadlineFrom(absl::Duration begin) const ABSL_LOCKS_EXCLUDED(mu_);
  // Logs that spans are lost, and why (`failure`), or that they are sent again (`failure` is
  // empty). Logs only a change, not every batch.
  void Tell(const std::string& failure);

  const OtlpOptions options_;
  const std::string collector_;
  EventLog* const events_;
  const MonotonicClock now_ = SteadyClock();
  const std::unique_ptr<HttpClient> client_;
  std::function<double()> draw_;  // Only the thread uses this field and the next one.
  bool fails_ = false;

  std::atomic<int64_t> sent_ = 0;
  std::atomic<int64_t> no_room_ = 0;
  std::atomic<int64_t> refused_ = 0;
  std::atomic<int64_t> not_reached_ = 0;
  std::atomic<int64_t> too_many_ = 0;

  InterruptFlag unwanted_;
  std::atomic<bool> ending_ = false;  // Written under mu_.
  mutable Mutex mu_;
  CondVar changed_;
  std::deque<Span> waiting_ ABSL_GUARDED_BY(mu_);
  absl::Duration end_at_ ABSL_GUARDED_BY(mu_) = absl::InfiniteDuration();
  bool finished_ ABSL_GUARDED_BY(mu_) = false;
  std::unique_ptr<WorkerPool> thread_;  // Last: it uses the fields above.
};

}  // namespace systole

#endif  // SYSTOLE_SERVER_OTLP_SPAN_EXPORTER_H_
