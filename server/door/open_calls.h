// Which connections have calls, so that the door can drop those that never have one, and how many
// were served, which pays for what came. gRPC hands a call over once its request is there. A
// connection whose requests never end is busy to gRPC; here it has no call.
//
// Thread-safe.
#ifndef SYSTOLE_SERVER_DOOR_OPEN_CALLS_H_
#define SYSTOLE_SERVER_DOOR_OPEN_CALLS_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>

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
    // An open call is being answered, or its answer has gone: see CallCounter().
    void Serve() ABSL_LOCKS_EXCLUDED(mu_);
    // `served`: Serve() was called for it.
    void End(bool served) ABSL_LOCKS_EXCLUDED(mu_);
    struct Counts {
      int64_t open = 0;
      int64_t unserved = 0;  // Of those.
      int64_t served = 0;    // Since the connection came.
    };
    Counts counts() const ABSL_LOCKS_EXCLUDED(mu_);
    // For how long there has been no call; zero while there is one.
    absl::Duration Quiet() const ABSL_LOCKS_EXCLUDED(mu_);

   private:
    const MonotonicClock clock_;
    mutable Mutex mu_;
    Counts counts_ ABSL_GUARDED_BY(mu_);
    absl::Duration since_ ABSL_GUARDED_BY(mu_);  // When there was none left.
  };

  explicit OpenCalls(MonotonicClock clock) : clock_(std::move(clock)) {}

  // A connection of `peer` has come: "ipv4:ADDRESS:PORT" or "ipv6:%5BADDRESS%5D:PORT", as calls
  // have it (ServerContextBase::peer()).
  std::shared_ptr<Connection> Add(const std::string& peer) ABSL_LOCKS_EXCLUDED(mu_);
  // It has gone. Another one of the same peer, which came since, stays.
  void Remove(const std::string& peer, const std::shared_ptr<Connection>& connection)
      ABSL_LOCKS_EXCLUDED(mu_);
  // Null if there is none.
  std::shared_ptr<Connection> Find(absl::string_view peer) const ABSL_LOCKS_EXCLUDED(mu_);

 private:
  const MonotonicClock clock_;
  mutable Mutex mu_;
  std::map<std::string, std::shared_ptr<Connection>, std::less<>> connections_ ABSL_GUARDED_BY(mu_);
};

// For ServerBuilder: tells `calls` when each call begins, is served, and ends. A stream is served
// when its answer begins; another call when its answer has gone, unless that tells of a request
// that anybody can send: one without a good credential, of no method, or that cannot be read.
std::unique_ptr<grpc::experimental::ServerInterceptorFactoryInterface> CallCounter(
    std::shared_ptr<OpenCalls> calls);

}  // namespace systole

#endif  // SYSTOLE_SERVER_DOOR_OPEN_CALLS_H_
