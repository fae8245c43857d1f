// Counts the bytes and streams that TCP connections send. Each read of gRPC is counted before gRPC
// gets the bytes. Decides which connections must be closed because they sent too much
// (allowance.h). All later reads of such a connection fail, and so does the read that was too much,
// if it was the connection's own.
//
// Thread-safe.
#ifndef SYSTOLE_SERVER_LISTENER_METER_H_
#define SYSTOLE_SERVER_LISTENER_METER_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "core/concurrency/monotonic_clock.h"
#include "core/concurrency/mutex.h"
#include "server/listener/allowance.h"
#include "server/listener/frame_scanner.h"
#include "server/listener/open_calls.h"
#include "server/listener/read_observer.h"

namespace systole {

class Meter : public std::enable_shared_from_this<Meter> {
 public:
  struct Excess {
    int fd = -1;
    // Why the connection is closed. True: it sent more than a single connection may. False: all
    // connections together cost too much, and this connection was chosen (allowance.h).
    bool alone = false;
    std::string what;  // What the connection has sent, for the log.
  };

  // `connection_cost`: kPlainConnectionCost or kTlsConnectionCost. `clock`: connections earn bytes
  // and streams as time passes (allowance.h), and this clock measures the time. `tell` is called
  // when TakeExcess() has something to return. It is called on any thread and must not call the
  // meter, whose lock is held.
  Meter(int64_t connection_cost, MonotonicClock clock, std::function<void()> tell)
      : connection_cost_(connection_cost), clock_(std::move(clock)), tell_(std::move(tell)) {}

  // Begins to count the connection `fd`. Call it before gRPC gets the connection. Returns the
  // observer that must see the connection's reads.
  std::shared_ptr<ReadObserver> Add(int fd, const std::string& peer,
                                    std::shared_ptr<OpenCalls::Connection> calls)
      ABSL_LOCKS_EXCLUDED(mu_);
  // Call it when the connection has ended. From now on, all reads that its observer sees fail. Does
  // nothing if the meter does not count `fd`.
  void Remove(int fd) ABSL_LOCKS_EXCLUDED(mu_);

  // The connections that were chosen to be closed since the last call. Their reads fail already.
  std::vector<Excess> TakeExcess() ABSL_LOCKS_EXCLUDED(mu_);

  // See Allowances::MayComeIn().
  bool MayComeIn(const std::string& peer) ABSL_LOCKS_EXCLUDED(mu_);

 private:
  class Observer;
  struct Connection {
    int fd = -1;
    std::string peer;
    std::shared_ptr<OpenCalls::Connection> calls;
    FrameScanner frames;
    Traffic traffic;
  };

  // Counts `bytes` and `frames` that were read from the connection `id`. Closes connections that
  // now must be closed. False: the read must fail, because `id` is closed or has ended.
  bool Take(int64_t id, size_t bytes, absl::Span<const uint8_t> frames) ABSL_LOCKS_EXCLUDED(mu_);
  // Brings the connection's traffic and allowance up to date.
  const Allowance& Count(int64_t id, Connection& connection, absl::Duration now)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  // Adds the connection to `excess_`, and forgets it.
  void Close(int64_t id, bool alone) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void Forget(int64_t id) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  const int64_t connection_cost_;
  const MonotonicClock clock_;
  const std::function<void()> tell_;
  Mutex mu_;
  // Each connection has a number of its own. Its descriptor would not do: an observer may see a
  // read after its connection has ended, when another connection may have the same descriptor.
  int64_t next_id_ ABSL_GUARDED_BY(mu_) = 0;
  std::map<int64_t, Connection> connections_ ABSL_GUARDED_BY(mu_);
  std::map<int, int64_t> ids_ ABSL_GUARDED_BY(mu_);  // The numbers, by descriptor.
  Allowances allowances_ ABSL_GUARDED_BY(mu_);
  std::vector<Excess> excess_ ABSL_GUARDED_BY(mu_);
};

}  // namespace systole

#endif  // SYSTOLE_SERVER_LISTENER_METER_H_
