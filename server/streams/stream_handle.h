// A running stream as threads see it that do not serve it: whether its client takes what it is
// sent, and how to end it.
//
// Thread-safe.
#ifndef SYSTOLE_SERVER_STREAMS_STREAM_HANDLE_H_
#define SYSTOLE_SERVER_STREAMS_STREAM_HANDLE_H_

#include <memory>
#include <optional>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/time/time.h"
#include "core/concurrency/monotonic_clock.h"
#include "core/concurrency/mutex.h"
#include "server/slots/slot_session.h"

struct grpc_call;

namespace systole {

class StreamHandle {
 public:
  // Keeps `call` alive. `clock` is the one that stalls are measured by.
  StreamHandle(grpc_call* call, MonotonicClock clock);
  ~StreamHandle();
  StreamHandle(const StreamHandle&) = delete;
  StreamHandle& operator=(const StreamHandle&) = delete;

  // Told by the stream: its client has something to take from now on, or has taken it.
  void Offered() ABSL_LOCKS_EXCLUDED(mu_);
  void Taken() ABSL_LOCKS_EXCLUDED(mu_);

  // Told once, if its client holds slices in shared memory.
  void SharesThrough(std::shared_ptr<SlotSession> session) ABSL_LOCKS_EXCLUDED(mu_);

  // How long the client has had something to take and has not, or has held slots and given none
  // back; zero if it has nothing.
  absl::Duration stalled() const ABSL_LOCKS_EXCLUDED(mu_);

  // Ends the call with `status`, at once: what gRPC still holds of it is dropped, so it needs no
  // client that reads. The first call counts. May run the stream's callbacks, so no lock of theirs
  // may be held.
  void Stop(const absl::Status& status) ABSL_LOCKS_EXCLUDED(mu_);
  // What it was stopped with, or OK.
  absl::Status stopped() const ABSL_LOCKS_EXCLUDED(mu_);

 private:
  grpc_call* const call_;
  const MonotonicClock clock_;
  mutable Mutex mu_;
  std::optional<absl::Duration> offered_at_ ABSL_GUARDED_BY(mu_);
  std::shared_ptr<SlotSession> session_ ABSL_GUARDED_BY(mu_);
  absl::Status stopped_ ABSL_GUARDED_BY(mu_);
};

}  // namespace systole

#endif  // SYSTOLE_SERVER_STREAMS_STREAM_HANDLE_H_
