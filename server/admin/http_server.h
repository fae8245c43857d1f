// A small HTTP/1.1 server for pages: one request a connection, GET and HEAD, no bodies. It has one
// thread, which also makes the answers. Everything that a peer can make the server hold or wait for
// is bounded. An answer may be a stream of events that goes on for as long as the peer takes them.
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
  // is closed. Otherwise the new one is closed. A normal request ends within some milliseconds. So
  // a connection that is older than `patience` belongs to a slow peer, and slow peers cannot keep
  // probes out. A stream of events is never closed for a new connection: at most max_event_streams
  // are open.
  int max_connections = 16;
  absl::Duration patience = absl::Seconds(1);
  // The time from the connection to the last byte of the request's head, TLS's handshake included.
  absl::Duration request_time = absl::Seconds(5);
  // The time from the last byte of the head to the last byte of the answer. In a stream of events,
  // each event has this time.
  absl::Duration answer_time = absl::Seconds(10);
  // Most streams of events at once. REQUIRES: fewer than max_connections.
  int max_event_streams = 4;
  // The time from the last byte of an event to the next event.
  absl::Duration event_interval = absl::Seconds(2);
  // Null: plain text.
  std::unique_ptr<TlsFiles> tls;
  // Answers only requests whose `Host` is one of this machine's own names: 127.0.0.1, localhost,
  // [::1]. So a web page whose host name leads to this machine cannot read the answers through a
  // browser.
  bool only_loopback_names = false;
  MonotonicClock clock = SteadyClock();
};

struct HttpCounters {
  int64_t open = 0;
  int64_t event_streams = 0;  // A part of `open`.
  int64_t accepted = 0;
  int64_t refused = 0;    // Closed at once.
  int64_t displaced = 0;  // Closed because another one needed the place.
  int64_t late = 0;       // Request or answer took too long.
  int64_t bad = 0;        // Requests that HttpRequestReader refused, and handshakes that failed.
};

class HttpServer {
 public:
  // Called on the server's thread, one request at a time. PageAnswer::next_event is called on this
  // thread, too.
  using Handler = std::function<PageAnswer(const PageRequest& request)>;

  // Serves at once. InvalidArgument if OpenSSL does not take the files of TLS.
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
