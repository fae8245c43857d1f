// An object of the web as a ByteSource.
#ifndef SYSTOLE_CORE_STORAGE_WEB_WEB_SOURCE_H_
#define SYSTOLE_CORE_STORAGE_WEB_WEB_SOURCE_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

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
#include "core/storage/web/web_answer.h"

namespace systole {

struct WebStoreOptions {
  HttpClientOptions client = {};
  RetryOptions retry = {};
  // For each request with all of its retries. A shorter one turns failures of the network into
  // errors of the feed sooner.
  absl::Duration timeout = absl::Minutes(5);
  // CheckUnchanged() asks the server only if its last answer is older than this. A feed calls it
  // after each group of reads, and each read with an identity is checked by itself.
  absl::Duration trust = absl::Seconds(1);
};

// Thread-safe. Sends the requests of a store, with retries.
class WebConnection {
 public:
  // Errors of HttpClient::Create().
  static absl::StatusOr<std::unique_ptr<WebConnection>> Create(const WebStoreOptions& options);

  // What the server says of the object now. NotFound, PermissionDenied, Unavailable, and others of
  // HttpClient::Fetch() and of ObjectOfFirstByte().
  absl::StatusOr<WebObject> Look(const std::string& name);

  // Fills `out` with the bytes of `object` at `offset`. Errors of HttpClient::Fetch() and of
  // CheckPiece().
  absl::Status Read(const std::string& name, const WebObject& object, uint64_t offset,
                    absl::Span<char> out);

  const WebStoreOptions& options() const { return options_; }

 private:
  WebConnection(const WebStoreOptions& options, std::unique_ptr<HttpClient> client)
      : options_(options), client_(std::move(client)), retrier_(options.retry) {}

  HttpRequest RequestFor(const std::string& name) const;
  absl::StatusOr<HttpResponse> Fetch(const HttpRequest& request);

  const WebStoreOptions options_;
  const std::unique_ptr<HttpClient> client_;
  HttpRetrier retrier_;
};

// Thread-safe. Borrows the connection, which must outlive it.
class WebSource final : public ByteSource {
 public:
  WebSource(WebConnection& connection, std::string name, WebObject object)
      : connection_(connection), name_(std::move(name)), object_(std::move(object)) {
    Confirm(now_());
  }

  absl::StatusOr<size_t> ReadAt(uint64_t offset, absl::Span<char> out) const override;
  absl::StatusOr<uint64_t> Size() const override { return object_.size_bytes; }
  std::string identity() const override { return object_.Identity(); }
  absl::Status CheckUnchanged() const override;
  absl::string_view name() const override { return name_; }

 private:
  // An error as clients may see it: without the server and the folders of the address.
  absl::Status Shown(const absl::Status& status) const;
  // The server has said at `time` that the object is still there and the same.
  void Confirm(absl::Duration time) const;

  WebConnection& connection_;
  const std::string name_;
  const WebObject object_;
  const MonotonicClock now_ = SteadyClock();
  mutable std::atomic<int64_t> confirmed_ns_ = 0;  // On now_.
};

}  // namespace systole

#endif  // SYSTOLE_CORE_STORAGE_WEB_WEB_SOURCE_H_
