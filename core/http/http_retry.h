// Decides whether a failed request is tried again, after how long a wait, and how often in all.
// Retries let a feed survive a lost answer. The bounds on retries keep an overloaded store from
// getting more and more requests.
#ifndef SYSTOLE_CORE_HTTP_HTTP_RETRY_H_
#define SYSTOLE_CORE_HTTP_HTTP_RETRY_H_

#include <cstdint>
#include <functional>
#include <optional>

#include "absl/base/thread_annotations.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "core/concurrency/monotonic_clock.h"
#include "core/concurrency/mutex.h"
#include "core/http/http_message.h"

namespace systole {

struct RetryOptions {
  // The most attempts for one request, the first one included. More attempts outlast longer
  // failures, but the caller waits longer for the error.
  int max_attempts = 8;
  // The wait before attempt n + 1 is drawn from 0 to first_backoff * 2^(n-1), or to max_backoff if
  // this is less. The wait may be any time in this range, so that clients whose requests failed
  // together do not retry together.
  absl::Duration first_backoff = absl::Milliseconds(100);
  absl::Duration max_backoff = absl::Seconds(10);
  // A server may ask for a longer wait than was drawn (header Retry-After). Then the wait is as
  // long as the server asks, up to this time.
  absl::Duration max_retry_after = absl::Seconds(30);
  // Each request adds `budget_share` to a budget that holds at most `budget_burst`. Each retry
  // takes 1 from this budget. If the budget holds less than 1, the retry is not made. So n requests
  // cause at most budget_burst + n * budget_share retries, even if every answer is an error.
  double budget_share = 0.2;
  double budget_burst = 100;
};

// Whether another attempt may help: after Unavailable, or after an answer 408, 429, 500, 502, 503
// or 504.
bool MayBeTriedAgain(const absl::StatusOr<HttpResponse>& outcome);

// The wait after the failed attempt number `attempt`, which is 1 for the first. `draw` is uniform
// in [0, 1). REQUIRES: MayBeTriedAgain(outcome), attempt > 0.
absl::Duration WaitBeforeRetry(const RetryOptions& options, int attempt,
                               const absl::StatusOr<HttpResponse>& outcome, double draw);

// Functions that a test can replace, so that the test needs no clock and no random numbers.
struct RetrySurroundings {
  MonotonicClock now = SteadyClock();
  // Waits for the given time, like HttpClient::SleepFor(). An error ends the request.
  std::function<absl::Status(absl::Duration)> sleep = {};
  // Uniform in [0, 1). Null: each process draws numbers of its own. Called by one thread at a time.
  std::function<double()> draw = {};
};

// Thread-safe. All requests of a client use one HttpRetrier and share its budget.
class HttpRetrier {
 public:
  // Makes one attempt. MayBeTriedAgain() says for which results another attempt is made.
  using Attempt = absl::FunctionRef<absl::StatusOr<HttpResponse>(const HttpRequest& request)>;

  // REQUIRES: surroundings.sleep.
  HttpRetrier(const RetryOptions& options, RetrySurroundings surroundings);

  // Calls `attempt` until an attempt succeeds, until another attempt cannot help
  // (MayBeTriedAgain()), or until no more attempts are allowed. Each attempt gets the time that is
  // left of request.timeout. No attempt begins after the timeout. Returns the last outcome. If no
  // more attempts are allowed after an error, the error's message says how many there were.
  // Cancelled if InterruptRequested().
  absl::StatusOr<HttpResponse> Fetch(const HttpRequest& request, Attempt attempt)
      ABSL_LOCKS_EXCLUDED(mu_);

 private:
  void CountRequest() ABSL_LOCKS_EXCLUDED(mu_);
  bool TakeRetry() ABSL_LOCKS_EXCLUDED(mu_);
  double Draw() ABSL_LOCKS_EXCLUDED(mu_);

  const RetryOptions options_;
  const RetrySurroundings surroundings_;  // No function is null.
  Mutex mu_;
  double budget_ ABSL_GUARDED_BY(mu_);
};

}  // namespace systole

#endif  // SYSTOLE_CORE_HTTP_HTTP_RETRY_H_
