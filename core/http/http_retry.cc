#include "core/http/http_retry.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/http/http_headers.h"
#include "core/interrupt/interrupt.h"
#include "core/random/process_draws.h"
#include "core/status/check.h"
#include "core/status/status_macros.h"

namespace systole {
namespace {

// Makes the random draws of core/http differ from draws for other purposes.
constexpr uint32_t kPurpose = 0x68747470;

RetrySurroundings Complete(RetrySurroundings given) {
  SYSTOLE_CHECK(given.sleep != nullptr);
  if (given.draw == nullptr) {
    given.draw =
        DrawsOfProcess(static_cast<uint64_t>(absl::ToInt64Nanoseconds(given.now())), kPurpose);
  }
  return given;
}

}  // namespace

bool MayBeTriedAgain(const absl::StatusOr<HttpResponse>& outcome) {
  if (!outcome.ok()) return absl::IsUnavailable(outcome.status());
  switch (outcome->status) {
    case 408:
    case 429:
    case 500:
    case 502:
    case 503:
    case 504:
      return true;
    default:
      return false;
  }
}

absl::Duration WaitBeforeRetry(const RetryOptions& options, int attempt,
                               const absl::StatusOr<HttpResponse>& outcome, double draw) {
  SYSTOLE_CHECK(attempt > 0);
  // The exponent is bounded, because a shift by 63 or more would overflow.
  const absl::Duration longest = std::min(
      options.max_backoff, options.first_backoff * (int64_t{1} << std::min(attempt - 1, 30)));
  const absl::Duration backoff = longest * draw;
  if (!outcome.ok()) return backoff;
  const absl::Duration asked = ParseRetryAfter(FindHeader(outcome->headers, "retry-after"),
                                               FindHeader(outcome->headers, "date"))
                                   .value_or(absl::ZeroDuration());
  return std::max(backoff, std::min(asked, options.max_retry_after));
}

HttpRetrier::HttpRetrier(const RetryOptions& options, RetrySurroundings surroundings)
    : options_(options),
      surroundings_(Complete(std::move(surroundings))),
      budget_(options.budget_burst) {}

void HttpRetrier::CountRequest() {
  MutexLock lock(mu_);
  budget_ = std::min(options_.budget_burst, budget_ + options_.budget_share);
}

bool HttpRetrier::TakeRetry() {
  MutexLock lock(mu_);
  if (budget_ < 1) return false;
  budget_ -= 1;
  return true;
}

double HttpRetrier::Draw() {
  MutexLock lock(mu_);
  return surroundings_.draw();
}

absl::StatusOr<HttpResponse> HttpRetrier::Fetch(const HttpRequest& request, Attempt attempt) {
  CountRequest();
  const absl::Duration deadline = surroundings_.now() + request.timeout;
  HttpRequest bounded = request;
  std::string why_no_more;
  for (int attempts = 1;; ++attempts) {
    absl::StatusOr<HttpResponse> outcome = attempt(bounded);
    if (!MayBeTriedAgain(outcome)) return outcome;
    const absl::Duration wait = WaitBeforeRetry(options_, attempts, outcome, Draw());
    if (attempts >= options_.max_attempts) {
      why_no_more = "no more are allowed";
    } else if (wait >= deadline - surroundings_.now()) {
      why_no_more = "there is no time for more";
    } else if (!TakeRetry()) {
      why_no_more = "too many requests failed recently, so no more retries are made";
    }
    if (!why_no_more.empty()) {
      if (outcome.ok()) return outcome;
      return absl::Status(outcome.status().code(),
                          absl::StrCat(outcome.status().message(), " (attempts: ", attempts, "; ",
                                       why_no_more, ")"));
    }
    SYSTOLE_RETURN_IF_ERROR(surroundings_.sleep(wait));
    if (InterruptRequested()) return InterruptedError();
    bounded.timeout = deadline - surroundings_.now();
    if (bounded.timeout <= absl::ZeroDuration()) {
      return outcome;  // The sleep took so long that no time is left.
    }
  }
}

}  // namespace systole
