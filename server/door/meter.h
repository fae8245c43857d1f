// Counts what connections over TCP send as gRPC reads it, before gRPC has looked at it, and says
// which are to be closed because it is too much (allowance.h). What is too much never comes to
// gRPC.
//
// Thread-safe.
#ifndef SYSTOLE_SERVER_DOOR_METER_H_
#define SYSTOLE_SERVER_DOOR_METER_H_

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
#include "server/door/allowance.h"
#include "server/door/frame_scanner.h"
#include "server/door/open_calls.h"
#include "server/door/read_observer.h"

namespace systole {

class Meter : public std::enable_shared_from_this<Meter> {
 public:
  struct Excess {
    int fd = -1;
    bool alone = false;  // By itself; else it cost most when all together cost too much.
    std::string what;    // What it has sent.
  };

  // `connection_cost`: kPlainConnectionCost or kTlsConnectionCost. `clock` says what time has
  // earned. `tell` is called when there is an excess to be taken, on any thread, with the meter's
  // lock held.
  Meter(int64_t connection_cost, MonotonicClock clock, std::function<void()> tell)
      : connection_cost_(connection_cost), clock_(std::move(clock)), tell_(std::move(tell)) {}

  // Of the connection `fd`, to be called before gRPC gets it. Returns whom its reads are shown to.
  std::shared_ptr<ReadObserver> Add(int fd, const std::string& peer,
                                    std::shared_ptr<OpenCalls::Connection> calls)
      ABSL_LOCKS_EXCLUDED(mu_);
  // It has ended: nothing more of it is admitted. Nothing happens if it is not known.
  void Remove(int fd) ABSL_LOCKS_EXCLUDED(mu_);

  // Connections that are to be closed. Nothing more of them is admitted.
  std::vector<Excess> TakeExcess() ABSL_LOCKS_EXCLUDED(mu_);

  // Allowances::MayComeIn().
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

  // What was read next of a connection. False: it may go no further.
  bool Take(int64_t id, size_t bytes, absl::Span<const uint8_t> frames) ABSL_LOCKS_EXCLUDED(mu_);
  // What it has done so far.
  const Allowance& Count(int64_t id, Connection& connection, absl::Duration now)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void Close(int64_t id, bool alone) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void Forget(int64_t id) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  const int64_t connection_cost_;
  const MonotonicClock clock_;
  const std::function<void()> tell_;
  Mutex mu_;
  // Descriptors are used again, and what is shown of a connection may come after its end; so each
  // has a number of its own.
  int64_t next_id_ ABSL_GUARDED_BY(mu_) = 0;
  std::map<int64_t, Connection> connections_ ABSL_GUARDED_BY(mu_);
  std::map<int, int64_t> ids_ ABSL_GUARDED_BY(mu_);  // Theirs, by descriptor.
  Allowances allowances_ ABSL_GUARDED_BY(mu_);
  std::vector<Excess> excess_ ABSL_GUARDED_BY(mu_);
};

}  // namespace systole

#endif  // SYSTOLE_SERVER_DOOR_METER_H_
