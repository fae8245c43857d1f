// A handle of a running stream, for threads that do not serve the stream. With the handle they can
// read how much was sent and how long the client has taken nothing, and can end the stream.
//
// Thread-safe.
#ifndef SYSTOLE_SERVER_STREAMS_STREAM_HANDLE_H_
#define SYSTOLE_SERVER_STREAMS_STREAM_HANDLE_H_

#include <atomic>
#include <cstdint>
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
  // Keeps `call` alive. `clock` measures stalls and how long the stream is open.
  StreamHandle(grpc_call* call, MonotonicClock clock);
  ~StreamHandle();
  StreamHandle(const StreamHandle&) = delete;
  StreamHandle& operator=(const StreamHandle&) = delete;

  // The stream calls Offered() when it has something for its client, and Taken() when the client
  // has taken it. Taken() returns how long this took.
  void Offered() ABSL_LOCKS_EXCLUDED(mu_);
  absl::Duration Taken() ABSL_LOCKS_EXCLUDED(mu_);

  // The stream calls SentBytes() or SentStep() when it has sent further bytes or a further step.
  void SentBytes(int64_t payload_bytes) { payload_bytes_ += payload_bytes; }
  void SentStep() { ++steps_; }
  int64_t payload_bytes() const { return payload_bytes_; }
  int64_t steps() const { return steps_; }
  // How long the stream has been open.
  absl::Duration open() const { return clock_() - begin_; }

  // Called once a stream has begun, with its number in the log.
  void Began(int64_t number) { number_ = number; }
  // 0: the stream has not begun.
  int64_t number() const { return number_; }

  // Called once by a stream whose client gets slices in shared memory.
  void SharesThrough(std::shared_ptr<SlotSession> session) ABSL_LOCKS_EXCLUDED(mu_);

  // How long the client has not taken what the stream offers, or has held slots and given none
  // back. Zero if neither is the case.
  absl::Duration stalled() const ABSL_LOCKS_EXCLUDED(mu_);

  // Ends the call with `status` at once, even if the client does not read: gRPC drops the data that
  // it still holds. Only the first Stop() counts. Stop() may run the stream's callbacks, so the
  // caller must hold no lock that these callbacks take.
  void Stop(const absl::Status& status) ABSL_LOCKS_EXCLUDED(mu_);
  // The status of the first Stop(), or OK.
  absl::Status stopped() const ABSL_LOCKS_EXCLUDED(mu_);

 private:
  grpc_call* const call_;
  const MonotonicClock clock_;
  const absl::Duration begin_;
  std::atomic<int64_t> number_ = 0;
  std::atomic<int64_t> steps_ = 0;
  std::atomic<int64_t> payload_bytes_ = 0;
  mutable Mutex mu_;
  std::optional<absl::Duration> offered_at_ ABSL_GUARDED_BY(mu_);
  std::shared_ptr<SlotSession> session_ ABSL_GUARDED_BY(mu_);
  absl::Status stopped_ ABSL_GUARDED_BY(mu_);
};

}  // namespace systole

#endif  // SYSTOLE_SERVER_STREAMS_STREAM_HANDLE_H_
