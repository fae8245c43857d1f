// One thread that waits until file descriptors become readable and calls their handlers.
//
// Thread-safe.
#ifndef SYSTOLE_CORE_CONCURRENCY_DESCRIPTOR_POLLER_H_
#define SYSTOLE_CORE_CONCURRENCY_DESCRIPTOR_POLLER_H_

#include <functional>
#include <map>
#include <memory>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/concurrency/mutex.h"
#include "core/descriptor/owned_fd.h"

namespace systole {

// When a handler is called.
enum class CallWhen {
  kReadable,   // Again and again while there is something to read.
  kMoreComes,  // Once each time more data has come. Data that is left unread causes no further
               // call.
};

class DescriptorPoller {
 public:
  // Called when its descriptor is readable or the descriptor's peer is gone (CallWhen). Returns
  // true to go on watching. After false there is no further call. All handlers of a poller run on
  // its one thread, one at a time and without a lock held. So handlers need no lock against each
  // other. Handlers must not wait. Descriptors take turns, so a busy descriptor does not delay the
  // others.
  using Handler = std::function<bool()>;

  // Starts the thread. If the system refuses: ResourceExhausted or another code.
  static absl::StatusOr<std::unique_ptr<DescriptorPoller>> Create();
  // Waits for a running handler, and ends the thread. Other handlers may still be called before the
  // thread ends. Then destroys the remaining handlers on the caller's thread. Must not be called
  // from a handler, nor while another thread is in Add().
  ~DescriptorPoller();
  DescriptorPoller(const DescriptorPoller&) = delete;
  DescriptorPoller& operator=(const DescriptorPoller&) = delete;

  // Watches `fd` until `handler` returns false. Nothing else ends the watch. The first call of
  // `handler` may come before Add() returns. After the last call the handler is destroyed, on the
  // poller's thread. `fd` must stay open until then, so let the handler own it. If Add() fails, it
  // destroys the handler without having called it. Call this on any thread, even from a handler.
  // REQUIRES: `fd` is not watched yet.
  absl::Status Add(int fd, Handler handler, CallWhen when = CallWhen::kReadable)
      ABSL_LOCKS_EXCLUDED(mu_);

 private:
  DescriptorPoller(OwnedFd epoll, OwnedFd stop);
  void Run() ABSL_LOCKS_EXCLUDED(mu_);
  void Handle(int fd) ABSL_LOCKS_EXCLUDED(mu_);

  const OwnedFd epoll_;
  const OwnedFd stop_;  // Readable when the thread is to end.
  Mutex mu_;
  // Shared, because Handle() uses a handler without the lock.
  std::map<int, std::shared_ptr<Handler>> handlers_ ABSL_GUARDED_BY(mu_);
  std::thread thread_;  // Last: it uses the members above.
};

}  // namespace systole

#endif  // SYSTOLE_CORE_CONCURRENCY_DESCRIPTOR_POLLER_H_
