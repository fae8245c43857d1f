// Fetches objects of the web by HTTP/1.1. Many threads may send requests. One thread moves all
// bytes, over a bounded number of connections that stay open.
#ifndef SYSTOLE_CORE_HTTP_HTTP_CLIENT_H_
#define SYSTOLE_CORE_HTTP_HTTP_CLIENT_H_

#include <sys/types.h>

#include <memory>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "core/concurrency/monotonic_clock.h"
#include "core/http/http_client_options.h"
#include "core/http/http_headers.h"
#include "core/http/http_message.h"
#include "core/http/http_url.h"

namespace systole {

class ClientLoop;
class HttpNames;

// Thread-safe. A child of fork() has no thread for its parent's client, so Fetch() fails there.
class HttpClient {
 public:
  // Starts the thread.
  //   InvalidArgument    an option is out of range.
  //   ResourceExhausted  the system gives no thread or no memory.
  static absl::StatusOr<std::unique_ptr<HttpClient>> Create(const HttpClientOptions& options);
  // Ends all calls of Fetch() and SleepFor() with Cancelled, waits until they have returned, and
  // closes all connections.
  ~HttpClient();
  // Ends the thread. All calls, also later ones, end with Cancelled. Does nothing in a child of
  // fork(). For a client that is never destroyed, End() must be called at exit before OpenSSL
  // cleans up. To this end, first call Create(), which makes OpenSSL register its exit handler, and
  // then register an exit handler that calls End(). Exit handlers run in reverse order.
  void End();
  HttpClient(const HttpClient&) = delete;
  HttpClient& operator=(const HttpClient&) = delete;

  // Sends a request, follows at most 5 redirects, and waits for the whole answer, whatever its
  // status. An authorization (headers `authorization`, `cookie`, `proxy-authorization`;
  // HttpRequest::sign) is not sent on to another origin.
  //   InvalidArgument     the request is malformed.
  //   Unavailable         no connection (IsNoServer()), no answer, or a body that ended early: a
  //                       retry may help.
  //   DeadlineExceeded    the timeout ran out.
  //   ResourceExhausted   a body over its limit, or headers of more than 64 KiB.
  //   FailedPrecondition  a certificate that is not trusted; a redirect from https to http, a sixth
  //                       redirect, or a redirect that must not be followed (Redirects); a server
  //                       that ignores `range`; a libcurl that cannot sign; a child of fork().
  //   DataLoss            an answer that is not HTTP, or a redirect without a valid address.
  //   Cancelled           InterruptRequested(), or the client has ended.
  // Messages name the object by HttpRequest::called. The calling thread sleeps during the call, so
  // that a watchdog sees that the thread waits. As the bytes of the body of a 2xx answer come, they
  // are added to the calling thread's CurrentReadProgress().
  absl::StatusOr<HttpResponse> Fetch(const HttpRequest& request);

  // Sleeps for `time`. Returns early, with Cancelled, when Fetch() would return Cancelled.
  absl::Status SleepFor(absl::Duration time);
  // Like SleepFor(), but returns OK as soon as waits() is false. waits() is called under a lock:
  // now, and after each call of WakeSleepers(). waits() must not call this client.
  // FailedPrecondition in a child of fork(), because the awaited event may never come there.
  absl::Status SleepWhile(absl::FunctionRef<bool()> waits, absl::Duration time);
  void WakeSleepers();

 private:
  HttpClient(const HttpClientOptions& options, std::unique_ptr<ClientLoop> loop);

  absl::StatusOr<HttpResponse> FetchOnce(const HttpRequest& request, const HttpNames& names,
                                         const HttpUrl& url, const HttpHeaders& headers,
                                         const AwsSigning* sign, absl::Duration deadline);

  const HttpClientOptions options_;
  const MonotonicClock now_ = SteadyClock();
  const pid_t process_;
  std::unique_ptr<ClientLoop> loop_;
};

}  // namespace systole

#endif  // SYSTOLE_CORE_HTTP_HTTP_CLIENT_H_
