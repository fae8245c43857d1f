#include "server/otlp/span_exporter.h"

#include <algorithm>
#include <utility>

#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "core/http/http_retry.h"
#include "core/http/http_url.h"
#include "core/random/process_draws.h"
#include "core/status/status_macros.h"
#include "server/otlp/otlp_json.h"

namespace systole {
namespace {

// Marks random draws as those of server/otlp.
constexpr uint32_t kPurpose = 0x6f746c70;

// The most bytes of a collector's answer that are received. The answer's body is ignored.
constexpr uint64_t kMaxAnswerBytes = 64 << 10;

// How long End() waits for the thread after it has interrupted the thread's request. The request
// looks every 20 ms whether it is interrupted (kInterruptLook).
constexpr absl::Duration kEndGrace = absl::Milliseconds(200);

// Whether OTLP allows another attempt. Unlike MayBeTriedAgain(), OTLP allows none after an answer
// 408 or 500.
bool MayBeSentAgain(const absl::StatusOr<HttpResponse>& outcome) {
  if (!outcome.ok()) {
    return absl::IsUnavailable(outcome.status()) || absl::IsDeadlineExceeded(outcome.status());
  }
  const int status = outcome->status;
  return status == 429 || status == 502 || status == 503 || status == 504;
}

bool IsTaken(const absl::StatusOr<HttpResponse>& outcome) {
  return outcome.ok() && outcome->status >= 200 && outcome->status < 300;
}

// Why a batch is lost. The text begins with the collector's name. HttpClient's messages have this
// name already (HttpRequest::called).
std::string ReasonOf(absl::string_view collector, const absl::StatusOr<HttpResponse>& outcome) {
  if (!outcome.ok()) return std::string(outcome.status().message());
  return absl::StrCat(collector, " answers with status ", outcome->status);
}

}  // namespace

absl::StatusOr<std::unique_ptr<SpanExporter>> SpanExporter::Create(OtlpOptions options,
                                                                   EventLog* events) {
  SYSTOLE_ASSIGN_OR_RETURN(const HttpUrl url, ParseHttpUrl(options.url));
  SYSTOLE_ASSIGN_OR_RETURN(std::unique_ptr<HttpClient> client, HttpClient::Create(options.http));
  std::string collector = absl::StrCat("the collector of traces at ", url.Origin());
  auto exporter = absl::WrapUnique(
      new SpanExporter(std::move(options), std::move(collector), events, std::move(client)));
  SYSTOLE_ASSIGN_OR_RETURN(exporter->thread_, WorkerPool::Create(1));
  exporter->thread_->Submit([self = exporter.get()] { self->Run(); });
  return exporter;
}

SpanExporter::SpanExporter(OtlpOptions options, std::string collector, EventLog* events,
                           std::unique_ptr<HttpClient> client)
    : options_(std::move(options)),
      collector_(std::move(collector)),
      events_(events),
      client_(std::move(client)),
      draw_(DrawsOfProcess(static_cast<uint64_t>(absl::ToInt64Nanoseconds(now_())), kPurpose)) {}

SpanExporter::~SpanExporter() {
  if (thread_ != nullptr) End(absl::ZeroDuration());
}

void SpanExporter::Add(Span span) {
  MutexLock lock(mu_);
  if (ending_ || waiting_.size() >= options_.max_waiting) {
    ++no_room_;
    return;
  }
  waiting_.push_back(std::move(span));
  if (waiting_.size() == options_.max_batch) changed_.SignalAll();
}

bool SpanExporter::End(absl::Duration patience) {
  const absl::Duration end_at = now_() + patience;
  {
    MutexLock lock(mu_);
    ending_ = true;
    end_at_ = std::min(end_at_, end_at);
    changed_.SignalAll();
  }
  client_->WakeSleepers();  // A batch that waits for its next attempt is sent now.
  MutexLock lock(mu_);
  while (!finished_ && now_() < end_at) changed_.WaitFor(mu_, end_at - now_());
  unwanted_.Raise();
  const absl::Duration last = now_() + kEndGrace;
  while (!finished_ && now_() < last) changed_.WaitFor(mu_, last - now_());
  return finished_;
}

SpanCounts SpanExporter::counts() const {
  return {.sent = sent_,
          .no_room = no_room_,
          .refused = refused_,
          .not_reached = not_reached_,
          .too_many = too_many_};
}

void SpanExporter::Run() {
  const InterruptScope scope(unwanted_);
  for (std::vector<Span> batch = NextBatch(); !batch.empty(); batch = NextBatch()) Send(batch);
  MutexLock lock(mu_);
  finished_ = true;
  changed_.SignalAll();
}

bool SpanExporter::HasBatch() const { return ending_ || waiting_.size() >= options_.max_batch; }

std::vector<Span> SpanExporter::NextBatch() {
  MutexLock lock(mu_);
  do {
    // The thread looks for spans once per interval. So Add() wakes it only when a batch is full.
    const absl::Duration due = now_() + options_.interval;
    for (absl::Duration left = options_.interval; !HasBatch() && left > absl::ZeroDuration();
         left = due - now_()) {
      changed_.WaitFor(mu_, left);
    }
  } while (waiting_.empty() && !ending_);
  std::vector<Span> batch;
  while (!waiting_.empty() && batch.size() < options_.max_batch) {
    batch.push_back(std::move(waiting_.front()));
    waiting_.pop_front();
  }
  return batch;
}

absl::Duration SpanExporter::DeadlineFrom(absl::Duration begin) const {
  MutexLock lock(mu_);
  return std::min(begin + options_.batch_timeout, end_at_);
}

void SpanExporter::Send(const std::vector<Span>& batch) {
  const auto count = static_cast<int64_t>(batch.size());
  const absl::Duration begin = now_();
  HttpRequest request = {.method = HttpMethod::kPost,
                         .url = options_.url,
                         .headers = options_.headers,
                         .body = HttpBody(OtlpJsonOf(batch, options_.resource, options_.version)),
                         .max_body_bytes = kMaxAnswerBytes,
                         .redirects = Redirects::kRefuse,
                         .called = collector_};
  request.headers.emplace_back("content-type", "application/json");
  for (int attempt = 1;; ++attempt) {
    request.timeout = std::min(options_.timeout, DeadlineFrom(begin) - now_());
    absl::StatusOr<HttpResponse> outcome =
        request.timeout > absl::ZeroDuration()
            ? client_->Fetch(request)
            : absl::DeadlineExceededError(absl::StrCat(collector_, ": no time is left"));
    if (IsTaken(outcome)) {
      sent_ += count;
      Tell("");
      return;
    }
    if (!MayBeSentAgain(outcome)) {
      // Cancelled: the collector did not refuse the batch, but the server ends.
      (absl::IsCancelled(outcome.status()) ? not_reached_ : refused_) += count;
      Tell(ReasonOf(collector_, outcome));
      return;
    }
    const absl::Duration wait = absl::IsDeadlineExceeded(outcome.status())
                                    ? absl::ZeroDuration()
                                    : WaitBeforeRetry(options_.retry, attempt, outcome, draw_());
    // After End() was called, the thread begins no wait. If End() cuts a wait short, one more
    // attempt follows.
    const bool may_wait =
        !ending_ && attempt < options_.retry.max_attempts && wait < DeadlineFrom(begin) - now_();
    if (!may_wait || !client_->SleepWhile([this] { return !ending_.load(); }, wait).ok()) {
      not_reached_ += count;
      Tell(ReasonOf(collector_, outcome));
      return;
    }
  }
}

void SpanExporter::Tell(const std::string& failure) {
  const bool fails = !failure.empty();
  if (fails == fails_) return;
  fails_ = fails;
  if (events_ == nullptr) return;
  if (fails) {
    events_->Add(LogCause::kSpans, LogLevel::kWarn,
                 absl::StrCat("spans are lost: ", failure,
                              "; systole_server_spans_dropped_total counts them"));
  } else {
    events_->Add(LogCause::kSpans, LogLevel::kInfo, absl::StrCat(collector_, " takes spans again"));
  }
}

}  // namespace systole
