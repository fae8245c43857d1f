#include "server/otlp/span_exporter.h"

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "core/concurrency/mutex.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "server/otlp/otlp_json.h"
#include "tests/core/http/stub_http_server.h"
#include "tests/status_matchers.h"
#include "tests/wait_until.h"

namespace systole {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::SizeIs;

// Longer than any of these tests takes on any machine. No test waits until this time is over.
constexpr absl::Duration kPlenty = absl::Hours(10);

Span SpanNumber(int number) {
  return {.trace = {.high = 0, .low = 1},
          .span = static_cast<uint64_t>(number) + 1,
          .name = absl::StrCat("span ", number)};
}

// A collector, and an exporter that sends spans to it.
class SpanExporterTest : public testing::Test {
 protected:
  explicit SpanExporterTest() : collector_([this](const StubRequest&) { return Answer(); }) {}

  void Start(OtlpOptions options) {
    options.url = collector_.Url("/v1/traces");
    options.version = "1";
    options.timeout = kPlenty;
    options.batch_timeout = kPlenty;
    options.retry.first_backoff = absl::Milliseconds(1);
    absl::StatusOr<std::unique_ptr<SpanExporter>> exporter =
        SpanExporter::Create(std::move(options), &events_);
    ASSERT_THAT(exporter, IsOk());
    exporter_ = *std::move(exporter);
  }
  // The collector gives these answers in turn. It repeats the last answer for all later requests.
  void Answers(std::vector<StubAnswer> answers) {
    MutexLock lock(mu_);
    answers_ = std::move(answers);
  }
  StubAnswer Answer() {
    MutexLock lock(mu_);
    StubAnswer answer = answers_.front();
    if (answers_.size() > 1) answers_.erase(answers_.begin());
    return answer;
  }
  std::string log() const {
    MutexLock lock(mu_);
    return log_;
  }

  mutable Mutex mu_;
  std::vector<StubAnswer> answers_ = {Reply(200, "{}")};
  std::string log_;
  EventLog events_{[this](LogLevel, const std::string& line) {
    MutexLock lock(mu_);
    absl::StrAppend(&log_, line, "\n");
  }};
  StubHttpServer collector_;
  std::unique_ptr<SpanExporter> exporter_;
};

TEST_F(SpanExporterTest, ABatchIsPostedAsJsonWithTheHeaders) {
  Start({.headers = {{"x-api-key", "hidden"}},
         .resource = {{"service.name", "s"}},
         .max_batch = 2,
         .interval = kPlenty});
  exporter_->Add(SpanNumber(0));
  exporter_->Add(SpanNumber(1));
  ASSERT_TRUE(WaitUntil([this] { return exporter_->counts().sent == 2; }));
  ASSERT_THAT(collector_.requests(), SizeIs(1));
  const StubRequest request = collector_.requests()[0];
  EXPECT_EQ(request.method, "POST");
  EXPECT_EQ(request.target, "/v1/traces");
  EXPECT_EQ(FindHeader(request.headers, "content-type"), "application/json");
  EXPECT_EQ(FindHeader(request.headers, "x-api-key"), "hidden");
  EXPECT_EQ(request.body, OtlpJsonOf({SpanNumber(0), SpanNumber(1)}, {{"service.name", "s"}}, "1"));
  EXPECT_EQ(log(), "");
}

TEST_F(SpanExporterTest, AnIncompleteBatchIsSentAfterTheInterval) {
  Start({.interval = absl::Milliseconds(1)});
  exporter_->Add(SpanNumber(0));
  EXPECT_TRUE(WaitUntil([this] { return exporter_->counts().sent == 1; }));
  exporter_->Add(SpanNumber(1));
  EXPECT_TRUE(WaitUntil([this] { return exporter_->counts().sent == 2; }));
}

TEST_F(SpanExporterTest, EndSendsWaitingSpansAndLaterSpansAreDropped) {
  Start({.max_batch = 2, .interval = kPlenty});
  for (int i = 0; i < 5; ++i) exporter_->Add(SpanNumber(i));
  EXPECT_TRUE(exporter_->End(kPlenty));
  EXPECT_EQ(exporter_->counts().sent, 5);
  exporter_->Add(SpanNumber(5));
  EXPECT_EQ(exporter_->counts().no_room, 1);
  EXPECT_TRUE(exporter_->End(kPlenty));
}

TEST_F(SpanExporterTest, ABatchIsRetriedAfterStatusesThatOtlpCallsRetryable) {
  for (const int status : {429, 502, 503, 504}) {
    Answers({Reply(status, ""), Reply(status, "", {{"Retry-After", "0"}}), Reply(200, "{}")});
    Start({.max_batch = 1});
    const size_t before = collector_.requests().size();
    exporter_->Add(SpanNumber(0));
    EXPECT_TRUE(WaitUntil([this] { return exporter_->counts().sent == 1; }));
    EXPECT_EQ(collector_.requests().size(), before + 3) << status;
    exporter_.reset();
  }
  EXPECT_EQ(log(), "");
}

TEST_F(SpanExporterTest, ABatchThatTheCollectorRefusesIsNotRetried) {
  for (const int status : {400, 401, 404, 408, 413, 500, 501}) {
    Answers({Reply(status, "nothing that is shown")});
    Start({.headers = {{"authorization", "Bearer hidden"}}, .max_batch = 1});
    const size_t before = collector_.requests().size();
    exporter_->Add(SpanNumber(0));
    EXPECT_TRUE(WaitUntil([this] { return exporter_->counts().refused == 1; })) << status;
    exporter_->End(kPlenty);
    EXPECT_EQ(collector_.requests().size(), before + 1) << status;
    EXPECT_THAT(log(), AllOf(HasSubstr(absl::StrCat("with status ", status)),
                             HasSubstr(absl::StrCat("http://127.0.0.1:", collector_.port(), " ")),
                             Not(HasSubstr("hidden")), Not(HasSubstr("/v1"))));
    exporter_.reset();
  }
}

TEST_F(SpanExporterTest, ARedirectOfTheCollectorIsNotFollowed) {
  StubHttpServer elsewhere([](const StubRequest&) { return Reply(200, "{}"); });
  Answers({Reply(307, "", {{"Location", elsewhere.Url("/hidden")}})});
  Start({.headers = {{"x-api-key", "hidden"}}, .max_batch = 1});
  exporter_->Add(SpanNumber(0));
  EXPECT_TRUE(WaitUntil([this] { return exporter_->counts().refused == 1; }));
  EXPECT_THAT(elsewhere.requests(), SizeIs(0));
  EXPECT_TRUE(WaitUntil([this] { return !log().empty(); }));
  EXPECT_THAT(log(), Not(HasSubstr("hidden")));
}

TEST_F(SpanExporterTest, TheLogReportsTheFirstFailureAndTheRecovery) {
  Answers({Reply(400, ""), Reply(400, ""), Reply(200, "{}")});
  Start({.max_batch = 1});
  for (int i = 0; i < 4; ++i) {
    exporter_->Add(SpanNumber(i));
    ASSERT_TRUE(WaitUntil([&] {
      const SpanCounts counts = exporter_->counts();
      return counts.refused + counts.sent == i + 1;
    }));
  }
  exporter_->End(kPlenty);
  const std::vector<std::string> lines = absl::StrSplit(log(), '\n', absl::SkipEmpty());
  ASSERT_THAT(lines, SizeIs(2));
  EXPECT_THAT(lines[0], HasSubstr("spans are lost: the collector of traces at http://127.0.0.1:"));
  EXPECT_THAT(lines[1], HasSubstr("takes spans again"));
}

TEST_F(SpanExporterTest, AHangingCollectorNeverBlocksAndExcessSpansAreDropped) {
  Answers({{.bytes = "", .hangs = true}});
  Start({.max_batch = 2, .max_waiting = 10});
  exporter_->Add(SpanNumber(0));
  exporter_->Add(SpanNumber(1));
  ASSERT_TRUE(WaitUntil([this] { return collector_.requests().size() == 1; }));
  // The request times out after hours. If Add() waited for the request, this loop would take hours,
  // too.
  for (int i = 0; i < 1000; ++i) exporter_->Add(SpanNumber(i));
  EXPECT_EQ(exporter_->counts().no_room, 990);
  EXPECT_TRUE(exporter_->End(absl::Milliseconds(1)));
  EXPECT_EQ(exporter_->counts().not_reached, 12);
  EXPECT_EQ(exporter_->counts().sent, 0);
}

TEST_F(SpanExporterTest, ABatchIsDroppedAfterTheMaximumOfAttempts) {
  Answers({Reply(503, "")});
  Start({.max_batch = 1, .retry = {.max_attempts = 3}});
  exporter_->Add(SpanNumber(0));
  EXPECT_TRUE(WaitUntil([this] { return exporter_->counts().not_reached == 1; }));
  EXPECT_THAT(collector_.requests(), SizeIs(3));
}

TEST_F(SpanExporterTest, EndSendsABatchThatWaitsForItsRetryAtOnce) {
  bool sent = false;
  // If End() comes before the wait for the retry has begun, the batch is dropped. So End() comes
  // later in each round, until it comes during the wait.
  for (int pause_ms = 0; !sent && pause_ms < 60'000; pause_ms = 2 * pause_ms + 1) {
    // The test would take hours if End() let the wait run out.
    Answers({Reply(503, "", {{"Retry-After", "7200"}}), Reply(200, "{}")});
    Start({.max_batch = 1, .retry = {.max_retry_after = kPlenty}});
    const size_t before = collector_.requests().size();
    exporter_->Add(SpanNumber(0));
    ASSERT_TRUE(WaitUntil([&] { return collector_.requests().size() == before + 1; }));
    std::this_thread::sleep_for(std::chrono::milliseconds(pause_ms));
    EXPECT_TRUE(exporter_->End(kPlenty));
    const SpanCounts counts = exporter_->counts();
    EXPECT_EQ(counts.sent + counts.not_reached, 1);
    sent = counts.sent == 1;
    EXPECT_EQ(collector_.requests().size(), before + (sent ? 2 : 1));
  }
  EXPECT_TRUE(sent);
}

TEST_F(SpanExporterTest, AnEndlessResponseIsCutOffAndCountsAsRefused) {
  Answers({{.bytes = Head(200, {{"Content-Type", "application/json"}}),
            .endless = std::string(1 << 16, 'x')}});
  Start({.max_batch = 1});
  exporter_->Add(SpanNumber(0));
  EXPECT_TRUE(WaitUntil([this] { return exporter_->counts().refused == 1; }));
}

TEST(SpanExporterAloneTest, AnUnreachableCollectorDoesNotPreventTheStart) {
  OtlpOptions options;
  options.url = absl::StrCat("http://", kImpossibleHost, "/v1/traces");
  options.http = HttpOptionsOfEnvironment();
  options.http.no_proxy = "*";
  options.retry = {.max_attempts = 2, .first_backoff = absl::Milliseconds(1)};
  options.max_batch = 1;
  const auto exporter = SpanExporter::Create(options, nullptr);
  ASSERT_THAT(exporter, IsOk());
  (*exporter)->Add(SpanNumber(0));
  EXPECT_TRUE(WaitUntil([&] {
    const SpanCounts counts = (*exporter)->counts();
    return counts.not_reached + counts.refused == 1;
  }));
}

}  // namespace
}  // namespace systole
