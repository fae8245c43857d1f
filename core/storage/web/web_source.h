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

// The code for an error that occurred before a server was asked for an object. PermissionDenied,
// NotFound and similar codes become FailedPrecondition, because they would mean that the object may
// not exist.
absl::StatusCode CodeBeforeRequest(const absl::Status& error);

struct WebStoreOptions {
  HttpClientOptions client = {};
  RetryOptions retry = {};
  // The time for a request with all of its retries. With a shorter time, failures of the network
  // become errors of the feed sooner.
  absl::Duration timeout = absl::Minutes(5);
  // As `timeout`, for the requests of Open() and Stat(). This time is shorter, because few shards
  // are opened at a time: if the server of one shard does not answer, other shards wait.
  absl::Duration open_timeout = absl::Minutes(1);
  // A server's answer about an object is used again until the answer is as old as `trust`. This
  // saves requests: the first calls for a shard follow each other within milliseconds. And a feed
  // calls CheckUnchanged() after each group of reads, but the answers to these reads already show
  // the state. 0: each call asks the server.
  absl::Duration trust = absl::Seconds(1);
  MonotonicClock now = SteadyClock();  // The clock for `trust`.
};

// Thread-safe. Sends the requests of a store, with retries.
class WebConnection {
 public:
  // Errors of HttpClient::Create(). Without a dialect, names are addresses and servers speak plain
  // HTTP. The dialect must outlive the connection.
  static absl::StatusOr<std::unique_ptr<WebConnection>> Create(const WebStoreOptions& options,
                                                               WebDialect* dialect = nullptr);

  // In these functions `called` is HttpRequest::called. `name` is the address of an object, or the
  // name that the dialect uses. If `called` is empty, an error may show only the address that the
  // dialect made of `name`, and not `name` itself.

  // Asks the server for the present state of the object. This takes up to two requests, or a few
  // more if an empty object is replaced meanwhile. Each request takes at most `timeout`. NotFound,
  // PermissionDenied, Unavailable, and others of HttpClient::Fetch() and of ObjectOfFirstByte().
  absl::StatusOr<SeenObject> Look(const std::string& name, const std::string& called,
                                  absl::Duration timeout);
  // Like Look(), with WebStoreOptions::open_timeout. Returns an answer that is younger than `trust`
  // without asking again.
  absl::StatusOr<SeenObject> LookIfNotSeen(const std::string& name, const std::string& called);

  // Fills `out` with the bytes of `object` at `offset`. Returns whether each answer has proven that
  // its bytes are those of `object` (ProvesSameObject). Errors of HttpClient::Fetch() and of
  // CheckPiece().
  absl::StatusOr<bool> Read(const std::string& name, const std::string& called,
                            const WebObject& object, uint64_t offset, absl::Span<char> out);

  // Checks an answer 2xx. An error becomes the outcome of the attempt.
  using AnswerCheck = absl::FunctionRef<absl::Status(const HttpResponse& response)>;

  // Sends a request for something other than the bytes of an object, with retries. The dialect
  // turns the request's url into an address.
  absl::StatusOr<HttpResponse> Fetch(
      const HttpRequest& request,
      AnswerCheck check = [](const HttpResponse&) { return absl::OkStatus(); });

  // After this call, LookIfNotSeen() asks the server again.
  void Forget(const std::string& name) { recent_.Forget(name); }

  // Like Forget(), but does nothing if the server has said before that the object has this
  // identity.
  void ForgetOther(const std::string& name, absl::string_view identity) {
    recent_.ForgetOther(name, identity);
  }

  // This process has written or removed the object. Earlier answers about the object no longer
  // count, not even for open sources.
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
  // The error of an attempt that the dialect could not prepare.
  absl::Status NotPrepared(const HttpRequest& request, const absl::Status& error) const;
  // Makes one attempt. The dialect turns a refusal into an error.
  absl::StatusOr<HttpResponse> Attempt(const HttpRequest& request);
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
  // learn the server and the folders of the address.
  const std::string called_;
  const WebObject object_;
  // The time of the last request whose answer said that the object is unchanged, by the clock
  // WebStoreOptions::now. Requests of reads count, too.
  mutable std::atomic<int64_t> confirmed_ns_;
  // The time when the last read ended whose answers left open whether the object is unchanged. An
  // answer to an earlier request does not prove anything about this read.
  mutable std::atomic<int64_t> unproven_ns_;
};

}  // namespace systole

#endif  // SYSTOLE_CORE_STORAGE_WEB_WEB_SOURCE_H_
