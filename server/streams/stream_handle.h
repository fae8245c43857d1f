// A running stream, for threads that do not serve it. They ask whether its client takes what is
// sent, and can end the stream.
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
  // Keeps `call` alive. `clock` measures stalls.
  StreamHandle(grpc_call* call, MonotonicClock clock);
  ~StreamHandle();
  StreamHandle(const StreamHandle&) = delete;
  StreamHandle& operator=(const StreamHandle&) = delete;

  // The stream calls Offered() when its client has something to take, and Taken() when the client
  // has taken it.
  void Offered() ABSL_LOCKS_EXCLUDED(mu_);
  void Taken() ABSL_LOCKS_EXCLUDED(mu_);

  // Called once by a stream whose client gets slices in shared memory.
  void SharesThrough(std::shared_ptr<SlotSession> session) ABSL_LOCKS_EXCLUDED(mu_);

  // How long the client has not taken what the stream offers, or has held slots and given none
  // back. Zero if the client does neither.
  absl::Duration stalled() const ABSL_LOCKS_EXCLUDED(mu_);

  // Ends the call with `status` at once. gRPC drops the data that it still holds, so the client
  // need not read. Only the first Stop() counts. May run the stream's callbacks, so the caller must
  // hold no lock that these callbacks take.
  void Stop(const absl::Status& status) ABSL_LOCKS_EXCLUDED(mu_);
  // The status of the first Stop(), or OK.
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
