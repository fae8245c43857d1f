// The one thread that moves the bytes of all transfers of a client, and the list of transfers that
// wait for a connection. Only http_client.cc uses this file.
#ifndef SYSTOLE_CORE_HTTP_CLIENT_LOOP_H_
#define SYSTOLE_CORE_HTTP_CLIENT_LOOP_H_

#include <curl/curl.h>

#include <deque>
#include <map>
#include <memory>
#include <set>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "core/concurrency/monotonic_clock.h"
#include "core/concurrency/mutex.h"
#include "core/concurrency/worker_pool.h"
#include "core/http/http_client_options.h"
#include "core/http/transfer.h"
#include "core/interrupt/interrupt.h"

namespace systole {

// How often the loop's thread checks whether work that other threads wait for is still wanted.
inline constexpr absl::Duration kInterruptLook = absl::Milliseconds(20);

// Thread-safe. Only the loop's thread uses libcurl's multi handle, except for the call that wakes
// this thread up.
class ClientLoop {
 public:
  // Prepares libcurl, once in the process, and starts the thread. Errors as HttpClient::Create().
  static absl::StatusOr<std::unique_ptr<ClientLoop>> Create(const HttpClientOptions& options);
  // Does what End() does, and waits until every Call is over.
  ~ClientLoop();
  ClientLoop(const ClientLoop&) = delete;
  ClientLoop& operator=(const ClientLoop&) = delete;

  // Ends the thread. All transfers and sleeps, also later ones, end with Cancelled. Must not be
  // called by several threads at a time.
  void End() ABSL_LOCKS_EXCLUDED(mu_);

  // A thread makes this object when it begins a call of the client, and destroys it at the end of
  // the call. When the thread has to wait during the call, it sleeps, and the loop's thread checks
  // the sleeping thread's InterruptFlag.
  class Call {
   public:
    explicit Call(ClientLoop& loop);
    ~Call();
    Call(const Call&) = delete;
    Call& operator=(const Call&) = delete;

   private:
    ClientLoop& loop_;
    const bool interruptible_;
  };

  // The next two functions require that the thread is in a Call.

  // Adds the transfer at the end of the list, whose length is bounded. Waits for room in the list
  // until `deadline`, a time of SteadyClock(). Returns false if there was no room. If the thread is
  // interrupted meanwhile, or if End() was called, ends the transfer and returns true.
  bool AddBefore(absl::Duration deadline, const std::shared_ptr<Transfer>& transfer)
      ABSL_LOCKS_EXCLUDED(mu_);
  // Sleeps for `time`, or until waits() is false, and returns OK. Returns Cancelled as soon as the
  // thread is interrupted or End() is called. waits() is called under a lock, now and after each
  // call of WakeSleepers().
  absl::Status SleepWhile(absl::FunctionRef<bool()> waits, absl::Duration time)
      ABSL_LOCKS_EXCLUDED(mu_);

  // Call this when waits() of a sleeper may return another value than before.
  void WakeSleepers() ABSL_LOCKS_EXCLUDED(mu_);
  // Soon frees the connection of a transfer that the caller has abandoned.
  void Drop(const std::shared_ptr<Transfer>& transfer) ABSL_LOCKS_EXCLUDED(mu_);

 private:
  // A thread that waits for something other than the end of a transfer.
  struct Sleeper {
    const InterruptFlag* const flag = HeededInterruptFlag();
    CondVar wake;  // Used with mu_.
  };

  ClientLoop(const HttpClientOptions& options, CURLM* multi);

  void Run() ABSL_LOCKS_EXCLUDED(mu_);
  // Starts waiting transfers while there are free connections. False once End() was called.
  bool StartWaiting() ABSL_LOCKS_EXCLUDED(mu_);
  void Start(std::shared_ptr<Transfer> transfer);
  // Each of the next three functions returns how many connections it has freed.
  int EndFinished();
  int EndAbandoned();
  // If it is time to look at the flags, ends the transfers of interrupted threads and wakes the
  // interrupted sleepers.
  int EndInterrupted() ABSL_LOCKS_EXCLUDED(mu_);
  int LongestPollMs() const ABSL_LOCKS_EXCLUDED(mu_);
  // Takes a transfer out of the multi handle. If the transfer is not over, its connection is
  // closed.
  std::shared_ptr<Transfer> Remove(CURL* handle);
  bool HasRoom() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);
  void TellOfRoom() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  const HttpClientOptions options_;
  const MonotonicClock now_ = SteadyClock();
  CURLM* const multi_;
  // Only the loop's thread uses these.
  std::map<CURL*, std::shared_ptr<Transfer>> active_;
  std::map<std::string, int> active_by_origin_;
  absl::Duration next_look_;  // When it is time to look at the flags again.

  mutable Mutex mu_;
  CondVar calls_changed_;
  std::deque<std::shared_ptr<Transfer>> waiting_ ABSL_GUARDED_BY(mu_);
  std::set<Sleeper*> wanting_room_ ABSL_GUARDED_BY(mu_);
  std::set<Sleeper*> wanting_time_ ABSL_GUARDED_BY(mu_);
  int calls_ ABSL_GUARDED_BY(mu_) = 0;
  int interruptible_calls_ ABSL_GUARDED_BY(mu_) = 0;
  bool ending_ ABSL_GUARDED_BY(mu_) = false;
  std::unique_ptr<WorkerPool> thread_;  // Last, because the thread uses the members above.
};

}  // namespace systole

#endif  // SYSTOLE_CORE_HTTP_CLIENT_LOOP_H_
