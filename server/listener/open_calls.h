// Counts each connection's open calls and served calls. The listener drops connections that have
// had no open call for too long. The more calls of a connection are served, the more bytes the
// connection may send (allowance.h). gRPC shows a call to our code only when the call's request is
// complete. So a connection whose requests never end has no open call here, though gRPC itself
// considers it busy.
//
// Thread-safe.
#ifndef SYSTOLE_SERVER_LISTENER_OPEN_CALLS_H_
#define SYSTOLE_SERVER_LISTENER_OPEN_CALLS_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "core/concurrency/monotonic_clock.h"
#include "core/concurrency/mutex.h"
#include "grpcpp/support/server_interceptor.h"

namespace systole {

class OpenCalls {
 public:
  // The calls of one connection.
  class Connection {
   public:
    explicit Connection(MonotonicClock clock) : clock_(std::move(clock)), since_(clock_()) {}

    void Begin() ABSL_LOCKS_EXCLUDED(mu_);
    // Call it once for an open call when the call is served (see CallCounter()).
    void Serve() ABSL_LOCKS_EXCLUDED(mu_);
    // `served`: whether Serve() was called for the call that ends.
    void End(bool served) ABSL_LOCKS_EXCLUDED(mu_);
    struct Counts {
      int64_t open = 0;
      int64_t unserved = 0;  // Open calls for which Serve() was not called.
      int64_t served = 0;    // All served calls since the connection came.
    };
    Counts counts() const ABSL_LOCKS_EXCLUDED(mu_);
    // For how long the connection has had no open call; zero while it has one.
    absl::Duration Quiet() const ABSL_LOCKS_EXCLUDED(mu_);

   private:
    const MonotonicClock clock_;
    mutable Mutex mu_;
    Counts counts_ ABSL_GUARDED_BY(mu_);
    // When there last was an open call. Before the first call: when the connection came.
    absl::Duration since_ ABSL_GUARDED_BY(mu_);
  };

  explicit OpenCalls(MonotonicClock clock) : clock_(std::move(clock)) {}

  // Adds a new connection. `peer` is what ServerContextBase::peer() returns in the connection's
  // calls: "ipv4:ADDRESS:PORT" or "ipv6:%5BADDRESS%5D:PORT".
  std::shared_ptr<Connection> Add(const std::string& peer) ABSL_LOCKS_EXCLUDED(mu_);
  // Removes `connection`, which has ended. Does nothing if `peer` has a newer connection already.
  void Remove(const std::string& peer, const std::shared_ptr<Connection>& connection)
      ABSL_LOCKS_EXCLUDED(mu_);
  // The connection of `peer`; null if there is none.
  std::shared_ptr<Connection> Find(absl::string_view peer) const ABSL_LOCKS_EXCLUDED(mu_);

 private:
  const MonotonicClock clock_;
  mutable Mutex mu_;
  std::map<std::string, std::shared_ptr<Connection>, std::less<>> connections_ ABSL_GUARDED_BY(mu_);
};

// For ServerBuilder: notes in `calls` when each call begins, is served, and ends. A stream is
// served when its answer begins. Any other call is served when its answer has gone. An error that
// anybody can cause does not count as such an answer: no good credential, an unknown method, or a
// request that cannot be read.
std::unique_ptr<grpc::experimental::ServerInterceptorFactoryInterface> CallCounter(
    std::shared_ptr<OpenCalls> calls);

}  // namespace systole

#endif  // SYSTOLE_SERVER_LISTENER_OPEN_CALLS_H_
