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
  kReadable,   // Again and again, as long as there is something to read.
  kMoreComes,  // Once each time more data has come. If the handler leaves data unread, this data
               // causes no other call.
};

class DescriptorPoller {
 public:
  // Called when the descriptor is readable, or when its peer is gone; CallWhen says how often.
  // Returns true to be called again, and false to end the watch. All handlers of a poller run on
  // the poller's thread, one at a time, so handlers need no lock against each other. The thread
  // holds no lock meanwhile. Handlers must not wait. Descriptors take turns, so a busy descriptor
  // does not delay the others.
  using Handler = std::function<bool()>;

  // Starts the thread. Returns an error, such as ResourceExhausted, if the system gives no
  // descriptor. Throws std::system_error if the system gives no thread.
  static absl::StatusOr<std::unique_ptr<DescriptorPoller>> Create();
  // Ends the thread, and waits until it has ended. Until then handlers may still be called. Then
  // destroys the handlers that are left, on the caller's thread. Must not be called from a handler,
  // nor while another thread is in Add().
  ~DescriptorPoller();
  DescriptorPoller(const DescriptorPoller&) = delete;
  DescriptorPoller& operator=(const DescriptorPoller&) = delete;

  // Watches `fd` until `handler` returns false. The first call of `handler` may come before Add()
  // returns. After the last call the handler is destroyed, on the poller's thread. `fd` must stay
  // open until then, so let the handler own `fd`. If Add() fails, it destroys the handler without
  // having called it. Any thread may call Add(), and a handler may, too. REQUIRES: `fd` is not
  // watched yet.
  absl::Status Add(int fd, Handler handler, CallWhen when = CallWhen::kReadable)
      ABSL_LOCKS_EXCLUDED(mu_);

 private:
  DescriptorPoller(OwnedFd epoll, OwnedFd stop);
  void Run() ABSL_LOCKS_EXCLUDED(mu_);
  void Handle(int fd) ABSL_LOCKS_EXCLUDED(mu_);

  const OwnedFd epoll_;
  const OwnedFd stop_;  // Readable when the thread is to end.
  Mutex mu_;
  // By descriptor. Shared, because Handle() uses a handler without the lock.
  std::map<int, std::shared_ptr<Handler>> handlers_ ABSL_GUARDED_BY(mu_);
  std::thread thread_;  // Last: it uses the members above.
};

}  // namespace systole

#endif  // SYSTOLE_CORE_CONCURRENCY_DESCRIPTOR_POLLER_H_
