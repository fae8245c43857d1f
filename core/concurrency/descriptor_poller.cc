#include "core/concurrency/descriptor_poller.h"

#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <utility>

#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"
#include "core/status/check.h"
#include "core/status/status_macros.h"

namespace systole {
namespace {

absl::Status Watch(int epoll, int fd, CallWhen when) {
  epoll_event event = {};
  event.events = EPOLLIN;
  if (when == CallWhen::kMoreComes) event.events |= EPOLLET;
  event.data.fd = fd;
  if (::epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event) == 0) return absl::OkStatus();
  return absl::ErrnoToStatus(errno, absl::StrCat("cannot watch descriptor ", fd));
}

}  // namespace

absl::StatusOr<std::unique_ptr<DescriptorPoller>> DescriptorPoller::Create() {
  OwnedFd epoll(::epoll_create1(EPOLL_CLOEXEC));
  if (!epoll.ok()) return absl::ErrnoToStatus(errno, "epoll_create1");
  OwnedFd stop(::eventfd(0, EFD_CLOEXEC));
  if (!stop.ok()) return absl::ErrnoToStatus(errno, "eventfd");
  SYSTOLE_RETURN_IF_ERROR(Watch(epoll.get(), stop.get(), CallWhen::kReadable));
  return absl::WrapUnique(new DescriptorPoller(std::move(epoll), std::move(stop)));
}

DescriptorPoller::DescriptorPoller(OwnedFd epoll, OwnedFd stop)
    : epoll_(std::move(epoll)), stop_(std::move(stop)), thread_([this] { Run(); }) {}

DescriptorPoller::~DescriptorPoller() {
  const uint64_t one = 1;
  SYSTOLE_CHECK(::write(stop_.get(), &one, sizeof(one)) == sizeof(one));
  thread_.join();
}

absl::Status DescriptorPoller::Add(int fd, Handler handler, CallWhen when) {
  MutexLock lock(mu_);
  const bool added = handlers_.emplace(fd, std::make_shared<Handler>(std::move(handler))).second;
  SYSTOLE_CHECK(added);
  const absl::Status status = Watch(epoll_.get(), fd, when);
  if (!status.ok()) handlers_.erase(fd);
  return status;
}

void DescriptorPoller::Run() {
  // Takes one event at a time. Successive calls of epoll_wait() return the ready descriptors in
  // turn.
  epoll_event event = {};
  while (true) {
    const int ready = ::epoll_wait(epoll_.get(), &event, 1, -1);
    if (ready < 0 && errno == EINTR) continue;
    SYSTOLE_CHECK(ready == 1);
    if (event.data.fd == stop_.get()) return;
    Handle(event.data.fd);
  }
}

void DescriptorPoller::Handle(int fd) {
  std::shared_ptr<Handler> handler;
  {
    MutexLock lock(mu_);
    handler = handlers_.at(fd);
  }
  if ((*handler)()) return;
  // The descriptor is unwatched before the handler is destroyed. The handler may own and close the
  // descriptor, and the next descriptor to be opened may get the same number.
  SYSTOLE_CHECK(::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, fd, nullptr) == 0);
  MutexLock lock(mu_);
  handlers_.erase(fd);
}

}  // namespace systole
