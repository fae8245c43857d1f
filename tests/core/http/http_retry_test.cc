#include "core/http/http_retry.h"

#include <deque>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "core/interrupt/interrupt.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/status_matchers.h"

namespace systole {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::Field;
using ::testing::HasSubstr;

using Outcome = absl::StatusOr<HttpResponse>;

HttpResponse Answer(int status, const HttpHeaders& headers = {}) {
  return {.status = status, .headers = headers};
}

// A retrier whose attempts have the outcomes of a list. Its clock moves only by its sleeps and by
// `attempt_takes`.
class Scene {
 public:
  explicit Scene(const RetryOptions& options = {}, double draw = 0.5)
      : retrier_(options, {.now = [this] { return now_; },
                           .sleep = [this](absl::Duration time) { return Sleep(time); },
                           .draw = [draw] { return draw; }}) {}

  // Attempt i has outcome i of the list. All attempts after these have the list's last outcome.
  Outcome Fetch(std::vector<Outcome> outcomes, absl::Duration timeout = absl::Hours(1)) {
    size_t next = 0;
    return retrier_.Fetch({.url = "http://a", .timeout = timeout},
                          [&](const HttpRequest& request) -> Outcome {
                            ++attempts;
                            timeouts.push_back(request.timeout);
                            now_ += attempt_takes;
                            return outcomes[std::min(next++, outcomes.size() - 1)];
                          });
  }

  int attempts = 0;
  std::vector<absl::Duration> sleeps;
  std::vector<absl::Duration> timeouts;
  absl::Duration attempt_takes;
  InterruptFlag* raised_by_sleep = nullptr;
  absl::Status outcome_of_sleep;

 private:
  absl::Status Sleep(absl::Duration time) {
    sleeps.push_back(time);
    now_ += time;
    if (raised_by_sleep != nullptr) raised_by_sleep->Raise();
    return outcome_of_sleep;
  }

  absl::Duration now_ = absl::Hours(5);
  HttpRetrier retrier_;
};

TEST(HttpRetryTest, OnlyTransientFailuresMayBeTriedAgain) {
  for (const int status : {408, 429, 500, 502, 503, 504}) {
    EXPECT_TRUE(MayBeTriedAgain(Answer(status))) << status;
  }
  for (const int status : {200, 206, 301, 304, 400, 401, 403, 404, 405, 412, 416, 501, 505}) {
    EXPECT_FALSE(MayBeTriedAgain(Answer(status))) << status;
  }
  EXPECT_TRUE(MayBeTriedAgain(absl::UnavailableError("reset")));
  EXPECT_FALSE(MayBeTriedAgain(absl::DeadlineExceededError("late")));
  EXPECT_FALSE(MayBeTriedAgain(absl::FailedPreconditionError("certificate")));
  EXPECT_FALSE(MayBeTriedAgain(absl::CancelledError("unwanted")));
  EXPECT_FALSE(MayBeTriedAgain(absl::DataLossError("no HTTP")));
}

TEST(HttpRetryTest, BackoffDoublesUpToABoundAndItsJitterStartsAtZero) {
  const RetryOptions options = {.first_backoff = absl::Milliseconds(100),
                                .max_backoff = absl::Milliseconds(700)};
  const Outcome failed = absl::UnavailableError("");
  std::vector<absl::Duration> waits;
  for (int attempt = 1; attempt <= 5; ++attempt) {
    EXPECT_EQ(WaitBeforeRetry(options, attempt, failed, 0), absl::ZeroDuration());
    waits.push_back(2 * WaitBeforeRetry(options, attempt, failed, 0.5));
  }
  EXPECT_THAT(waits,
              ElementsAre(absl::Milliseconds(100), absl::Milliseconds(200), absl::Milliseconds(400),
                          absl::Milliseconds(700), absl::Milliseconds(700)));
  EXPECT_EQ(WaitBeforeRetry(options, 1000000, failed, 0.5), absl::Milliseconds(350));
}

TEST(HttpRetryTest, RetryAfterIsHonouredUpToABound) {
  const RetryOptions options = {.first_backoff = absl::Seconds(4),
                                .max_retry_after = absl::Seconds(9)};
  const auto wait = [&](const char* after) {
    return WaitBeforeRetry(options, 1, Answer(503, {{"retry-after", after}}), 0.5);
  };
  EXPECT_EQ(wait("1"), absl::Seconds(2));  // The backoff is longer.
  EXPECT_EQ(wait("5"), absl::Seconds(5));
  EXPECT_EQ(wait("3600"), absl::Seconds(9));
  EXPECT_EQ(wait("nonsense"), absl::Seconds(2));
}

TEST(HttpRetryTest, ARequestIsTriedUntilItSucceeds) {
  Scene scene;
  const Outcome outcome = scene.Fetch({absl::UnavailableError("reset"), Answer(503), Answer(206)});
  EXPECT_THAT(outcome, IsOkAndHolds(Field(&HttpResponse::status, 206)));
  EXPECT_EQ(scene.attempts, 3);
  EXPECT_THAT(scene.sleeps, ElementsAre(absl::Milliseconds(50), absl::Milliseconds(100)));
}

TEST(HttpRetryTest, APermanentFailureIsNotTriedAgain) {
  Scene scene;
  EXPECT_THAT(scene.Fetch({Answer(404)}), IsOkAndHolds(Field(&HttpResponse::status, 404)));
  EXPECT_THAT(scene.Fetch({absl::DataLossError("bad")}),
              StatusIs(absl::StatusCode::kDataLoss, "bad"));
  EXPECT_EQ(scene.attempts, 2);
  EXPECT_TRUE(scene.sleeps.empty());
}

TEST(HttpRetryTest, TheLastOutcomeIsReturnedWithTheNumberOfAttempts) {
  Scene scene({.max_attempts = 3});
  EXPECT_THAT(scene.Fetch({absl::UnavailableError("reset")}),
              StatusIs(absl::StatusCode::kUnavailable,
                       AllOf(HasSubstr("reset"), HasSubstr("attempts: 3; no more"))));
  EXPECT_THAT(scene.Fetch({Answer(503)}), IsOkAndHolds(Field(&HttpResponse::status, 503)));
  EXPECT_EQ(scene.attempts, 6);
}

TEST(HttpRetryTest, NoAttemptBeginsAfterTheTimeoutAndEachGetsTheTimeLeft) {
  Scene scene({.first_backoff = absl::Seconds(2)});
  scene.attempt_takes = absl::Seconds(3);
  EXPECT_THAT(scene.Fetch({absl::UnavailableError("reset")}, absl::Seconds(12)),
              StatusIs(absl::StatusCode::kUnavailable, HasSubstr("there is no time for more")));
  // Three attempts of 3 s, with waits of 1 s and 2 s between them, end at 12 s. So there is no time
  // for the wait of 4 s.
  EXPECT_THAT(scene.timeouts, ElementsAre(absl::Seconds(12), absl::Seconds(8), absl::Seconds(3)));
}

TEST(HttpRetryTest, RetriesAreLimitedToABurstAndAShareOfAllRequests) {
  Scene scene({.max_attempts = 4, .budget_share = 0.25, .budget_burst = 10});
  constexpr int kRequests = 1000;
  for (int i = 0; i < kRequests; ++i) {
    EXPECT_FALSE(scene.Fetch({absl::UnavailableError("down")}).ok());
  }
  EXPECT_LE(scene.attempts, kRequests + 10 + kRequests / 4);
  EXPECT_GE(scene.attempts, kRequests + kRequests / 4 - 10);
  EXPECT_THAT(scene.Fetch({absl::UnavailableError("down")}),
              StatusIs(absl::StatusCode::kUnavailable, HasSubstr("too many requests failed")));
}

TEST(HttpRetryTest, SuccessesFillTheBudgetUpToTheBurst) {
  Scene scene({.max_attempts = 100, .budget_share = 0.5, .budget_burst = 4});
  const auto retries = [&scene] {
    const int before = scene.attempts;
    EXPECT_FALSE(scene.Fetch({absl::UnavailableError("down")}).ok());
    return scene.attempts - before - 1;
  };
  EXPECT_EQ(retries(), 4);
  EXPECT_EQ(retries(), 0);
  for (int i = 0; i < 100; ++i) EXPECT_THAT(scene.Fetch({Answer(200)}), IsOk());
  EXPECT_EQ(retries(), 4);
}

TEST(HttpRetryTest, AnInterruptDuringTheWaitEndsTheRequestWithoutAnotherAttempt) {
  Scene scene;
  InterruptFlag unwanted;
  const InterruptScope scope(unwanted);
  scene.raised_by_sleep = &unwanted;
  EXPECT_THAT(scene.Fetch({Answer(503)}), StatusIs(absl::StatusCode::kCancelled, HasSubstr("")));
  EXPECT_EQ(scene.attempts, 1);
}

TEST(HttpRetryTest, AWaitThatFailsEndsTheRequest) {
  Scene scene;
  scene.outcome_of_sleep = absl::CancelledError("the client has ended");
  EXPECT_THAT(scene.Fetch({Answer(503)}),
              StatusIs(absl::StatusCode::kCancelled, "the client has ended"));
  EXPECT_EQ(scene.attempts, 1);
}

}  // namespace
}  // namespace systole
