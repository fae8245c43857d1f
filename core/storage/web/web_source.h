// An object of the web as a ByteSource.
#ifndef SYSTOLE_CORE_STORAGE_WEB_WEB_SOURCE_H_
#define SYSTOLE_CORE_STORAGE_WEB_WEB_SOURCE_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "core/concurrency/monotonic_clock.h"
#include "core/http/http_client.h"
#include "core/http/http_client_options.h"
#include "core/http/http_message.h"
#include "core/http/http_retry.h"
#include "core/storage/byte_source.h"
#include "core/storage/web/recent_objects.h"
#include "core/storage/web/web_answer.h"
#include "core/storage/web/web_dialect.h"

namespace systole {

// The code to report for `error`, which occurred before any request for an object was sent, for
// example while credentials were fetched. PermissionDenied, NotFound and similar codes become
// FailedPrecondition, because a caller would take them for an answer about the object.
absl::StatusCode CodeBeforeRequest(const absl::Status& error);

struct WebStoreOptions {
  HttpClientOptions client = {};
  RetryOptions retry = {};
  // The most time for a request with all of its retries. With a shorter time, a failure of the
  // network becomes an error of the feed sooner.
  absl::Duration timeout = absl::Minutes(5);
  // As `timeout`, for the requests of Open() and Stat(). This time is shorter, because few shards
  // are opened at a time: while the server of one shard does not answer, other shards wait to be
  // opened.
  absl::Duration open_timeout = absl::Minutes(1);
  // A server's answer about an object is used again until the answer is as old as `trust`. 0: each
  // call sends a request. `trust` saves two kinds of requests. The first calls for a shard, such as
  // Stat() and Open(), follow each other within milliseconds. And when a feed calls
  // CheckUnchanged() after a group of reads, the answers to these reads have already shown the
  // object's state.
  absl::Duration trust = absl::Seconds(1);
  MonotonicClock now = SteadyClock();  // The clock for `trust`.
};

// Thread-safe. Sends the requests of a store, with retries.
class WebConnection {
 public:
  // `dialect` says how the requests differ from plain HTTP (web_dialect.h), and must outlive the
  // connection. Without a dialect, the requests are plain HTTP, and the name of an object is its
  // address. Returns the errors of HttpClient::Create().
  static absl::StatusOr<std::unique_ptr<WebConnection>> Create(const WebStoreOptions& options,
                                                               WebDialect* dialect = nullptr);

  // In these functions `name` is the address of an object, or the name that the dialect uses.
  // `called` is the object's name in errors (HttpRequest::called). If `called` is empty, errors
  // show `name`. But with a dialect, errors of HttpClient::Fetch() show only the address that the
  // dialect made of `name`.

  // Asks the server for the present state of the object, with up to two requests. It takes a few
  // more if an empty object is replaced meanwhile. Each request takes at most `timeout`. Errors:
  // NotFound, PermissionDenied, Unavailable, and those of HttpClient::Fetch() and
  // ObjectOfFirstByte().
  absl::StatusOr<SeenObject> Look(const std::string& name, const std::string& called,
                                  absl::Duration timeout);
  // Like Look(), with WebStoreOptions::open_timeout. But if there is an answer that is younger than
  // WebStoreOptions::trust, returns this answer and sends no request.
  absl::StatusOr<SeenObject> LookIfNotSeen(const std::string& name, const std::string& called);

  // Fills `out` with the bytes of `object` from `offset` on. Returns whether each answer has proven
  // that its bytes are those of `object` (ProvesSameObject). Errors: those of HttpClient::Fetch()
  // and CheckPiece().
  absl::StatusOr<bool> Read(const std::string& name, const std::string& called,
                            const WebObject& object, uint64_t offset, absl::Span<char> out);

  // Checks an answer with a status of 2xx. If the check returns an error, this error is the outcome
  // of the attempt.
  using AnswerCheck = absl::FunctionRef<absl::Status(const HttpResponse& response)>;

  // Sends a request for something other than the bytes of an object, with retries. The dialect
  // turns the request's url into an address.
  absl::StatusOr<HttpResponse> Fetch(
      const HttpRequest& request,
      AnswerCheck check = [](const HttpResponse&) { return absl::OkStatus(); });

  // After this call, LookIfNotSeen() asks the server again.
  void Forget(const std::string& name) { recent_.Forget(name); }

  // Like Forget(), but keeps an answer that gives the object this identity.
  void ForgetOther(const std::string& name, absl::string_view identity) {
    recent_.ForgetOther(name, identity);
  }

  // Call this when this process has written or removed the object. Earlier answers about the object
  // are then no longer used, not even by a WebSource that is already open.
  void NoteWrite(const std::string& name) { recent_.NoteWrite(name, options_.now()); }
  absl::Duration LastWrite(const std::string& name) const { return recent_.LastWrite(name); }

  // See HttpClient.
  absl::Status SleepWhile(absl::FunctionRef<bool()> waits, absl::Duration time) {
    return client_->SleepWhile(waits, time);
  }
  void WakeSleepers() { client_->WakeSleepers(); }
  void End() { client_->End(); }

  const WebStoreOptions& options() const { return options_; }

 private:
  WebConnection(const WebStoreOptions& options, WebDialect* dialect,
                std::unique_ptr<HttpClient> client)
      : options_(options),
        dialect_(dialect),
        client_(std::move(client)),
        retrier_(options.retry,
                 {.sleep = [client = client_.get()](
                               absl::Duration time) { return client->SleepFor(time); }}),
        recent_(options.trust) {}

  HttpRequest RequestFor(const std::string& name, const std::string& called) const;
  // The name of the request's object in messages.
  std::string ShownIn(const HttpRequest& request) const;
  // The error to return for an attempt whose request could not be sent because of `error`:
  // WebDialect::Prepare() failed or took all of the time.
  absl::Status NotPrepared(const HttpRequest& request, const absl::Status& error) const;
  // Makes one attempt, and returns the answer even if it is a refusal. The dialect prepares the
  // request. If the dialect learns from a refusal, the attempt includes another request, and at
  // most kMostCorrections of them.
  absl::StatusOr<HttpResponse> Attempt(const HttpRequest& request);
  // The error for an answer that is a refusal.
  absl::Status Refusal(absl::string_view called, const HttpResponse& response) const;
  absl::StatusOr<WebObject> Ask(const std::string& name, const std::string& called,
                                absl::Duration timeout);

  const WebStoreOptions options_;
  WebDialect* const dialect_;  // Null: plain HTTP.
  const std::unique_ptr<HttpClient> client_;
  HttpRetrier retrier_;
  RecentObjects recent_;
};

// Thread-safe. Borrows the connection, which must outlive it.
class WebSource final : public ByteSource {
 public:
  // REQUIRES: `name` is the address of an object.
  WebSource(WebConnection& connection, std::string name, SeenObject seen);

  absl::StatusOr<size_t> ReadAt(uint64_t offset, absl::Span<char> out) const override;
  absl::StatusOr<uint64_t> Size() const override { return object_.size_bytes; }
  std::string identity() const override { return object_.Identity(); }
  absl::Status CheckUnchanged() const override;
  absl::string_view name() const override { return name_; }

 private:
  WebConnection& connection_;
  const std::string name_;
  // The name of the object in errors of reads and checks. Clients see these errors, and must not
  // learn the address's server and folders.
  const std::string called_;
  const WebObject object_;
  // When the last request was sent whose answer showed that the object is unchanged, by the clock
  // WebStoreOptions::now. Such a request may belong to the opening, a read or a check.
  mutable std::atomic<int64_t> confirmed_ns_;
  // When the last read ended whose answers did not show whether the object is unchanged, by the
  // same clock. Answers to requests that were sent before this time prove nothing about this read.
  mutable std::atomic<int64_t> unproven_ns_;
};

}  // namespace systole

#endif  // SYSTOLE_CORE_STORAGE_WEB_WEB_SOURCE_H_
