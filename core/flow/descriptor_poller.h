// One thread that waits until file descriptors become readable and calls their handlers.
//
// Thread-safe.
#ifndef SYSTOLE_CORE_FLOW_DESCRIPTOR_POLLER_H_
#define SYSTOLE_CORE_FLOW_DESCRIPTOR_POLLER_H_

#include <functional>
#include <map>
#include <memory>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/flow/mutex.h"
#include "core/memory/owned_fd.h"

namespace systole {

class DescriptorPoller {
 public:
  // Called on the poller's thread when its descriptor is readable or its peer is gone, again and
  // again until it has read what there is. True: go on watching. It must not wait; descriptors take
  // turns, so that one on which much arrives does not hold up the others.
  using Handler = std::function<bool()>;

  // Starts the thread. ResourceExhausted or another code if the system refuses.
  static absl::StatusOr<std::unique_ptr<DescriptorPoller>> Create();
  // Waits for a handler under way, then destroys all handlers. Not from a handler.
  ~DescriptorPoller();
  DescriptorPoller(const DescriptorPoller&) = delete;
  DescriptorPoller& operator=(const DescriptorPoller&) = delete;

  // Watches `fd` until `handler` returns false; the handler is destroyed then, after the last look
  // at `fd`, which must stay open until that. May be called by a handler. REQUIRES: `fd` is not
  // watched already.
  absl::Status Add(int fd, Handler handler) ABSL_LOCKS_EXCLUDED(mu_);

 private:
  DescriptorPoller(OwnedFd epoll, OwnedFd stop);
  void Run() ABSL_LOCKS_EXCLUDED(mu_);
  void Handle(int fd) ABSL_LOCKS_EXCLUDED(mu_);

  const OwnedFd epoll_;
  const OwnedFd stop_;  // Readable when the thread is to end.
  Mutex mu_;
  // Shared, so that one that runs cannot be destroyed by its own Add() of another.
  std::map<int, std::shared_ptr<Handler>> handlers_ ABSL_GUARDED_BY(mu_);
  std::thread thread_;  // Last: it uses what is above.
};

}  // namespace systole

#endif  // SYSTOLE_CORE_FLOW_DESCRIPTOR_POLLER_H_
