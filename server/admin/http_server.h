// A small HTTP/1.1 server for pages: GET and HEAD without bodies, one request a connection. It has
// one thread, which also makes the answers. The number of connections, the bytes of a request and
// all times to wait for a client are bounded. An answer may be a stream of events, which goes on as
// long as its client reads them.
//
// Thread-compatible.
#ifndef SYSTOLE_SERVER_ADMIN_HTTP_SERVER_H_
#define SYSTOLE_SERVER_ADMIN_HTTP_SERVER_H_

#include <cstdint>
#include <functional>
#include <memory>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "core/concurrency/monotonic_clock.h"
#include "server/admin/http_messages.h"
#include "server/listener/listening_sockets.h"
#include "server/listener/tls_files.h"

namespace systole {

struct HttpServerOptions {
  // Most connections at once. If one more comes and the oldest is older than `patience`, the oldest
  // is closed. Otherwise the new one is closed. A normal request ends within some milliseconds, so
  // a connection older than `patience` belongs to a slow client. This rule keeps a place for probes
  // when slow clients hold all connections. A stream of events is never closed for a new
  // connection. It does not count as the oldest.
  int max_connections = 16;
  absl::Duration patience = absl::Seconds(1);
  // The most time from the connection to the last byte of the request's head (its first line and
  // its headers), including the TLS handshake.
  absl::Duration request_time = absl::Seconds(5);
  // The most time to send the answer. In a stream of events: the most time to send each event.
  absl::Duration answer_time = absl::Seconds(10);
  // Most streams of events at once. REQUIRES: fewer than max_connections.
  int max_event_streams = 4;
  // The time from the last byte of an event to the making of the next event.
  absl::Duration event_interval = absl::Seconds(2);
  // Null: the server does not use TLS.
  std::unique_ptr<TlsFiles> tls;
  // Answers only requests whose `Host` is 127.0.0.1, localhost or [::1]. Otherwise a web page whose
  // host name resolves to 127.0.0.1 could read the answers through a browser on this machine.
  bool only_loopback_names = false;
  MonotonicClock clock = SteadyClock();
};

struct HttpCounters {
  int64_t open = 0;
  int64_t event_streams = 0;  // A part of `open`.
  int64_t accepted = 0;
  int64_t refused = 0;    // Closed at once.
  int64_t displaced = 0;  // Closed because a new connection needed the place.
  int64_t late = 0;       // Ended because the request or the answer took too long.
  int64_t bad = 0;        // Requests that HttpRequestReader refused, and TLS errors.
};

class HttpServer {
 public:
  // Called on the server's thread, one request at a time. PageAnswer::next_event is called on this
  // thread, too.
  using Handler = std::function<PageAnswer(const PageRequest& request)>;

  // Begins to serve before it returns. InvalidArgument if OpenSSL rejects the TLS files.
  static absl::StatusOr<std::unique_ptr<HttpServer>> Start(ListeningSockets sockets,
                                                           HttpServerOptions options,
                                                           Handler handler);
  // Waits for a running handler, and closes all connections.
  ~HttpServer();
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  // Thread-safe.
  HttpCounters counters() const;

 private:
  class Connections;

  explicit HttpServer(std::unique_ptr<Connections> connections);

  const std::unique_ptr<Connections> connections_;
};

}  // namespace systole

#endif  // SYSTOLE_SERVER_ADMIN_HTTP_SERVER_H_
