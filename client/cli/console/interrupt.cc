#include "client/cli/console/interrupt.h"

#include <signal.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <cerrno>
#include <initializer_list>
#include <utility>

#include "absl/status/status.h"
#include "core/descriptor/owned_fd.h"
#include "core/status/check.h"
#include "core/status/status_macros.h"

namespace systole {

void Interrupt::Request(int signal) {
  {
    MutexLock lock(mu_);
    if (!signal_.has_value() && on_request_ != nullptr) {
      signal_ = signal;
      // Called under the lock, so that the callback is not destroyed meanwhile.
      (*on_request_)();
      return;
    }
    signal_ = signal;
  }
  end_now_(signal);
}

std::optional<int> Interrupt::signal() const {
  MutexLock lock(mu_);
  return signal_;
}

InterruptCallback::InterruptCallback(Interrupt* interrupt, std::function<void()> on_request)
    : interrupt_(interrupt), on_request_(std::move(on_request)) {
  if (interrupt_ == nullptr) return;
  MutexLock lock(interrupt_->mu_);
  SYSTOLE_CHECK(interrupt_->on_request_ == nullptr);
  interrupt_->on_request_ = &on_request_;
  if (interrupt_->signal_.has_value()) on_request_();
}

InterruptCallback::~InterruptCallback() {
  if (interrupt_ == nullptr) return;
  MutexLock lock(interrupt_->mu_);
  interrupt_->on_request_ = nullptr;
}

absl::StatusOr<std::unique_ptr<DescriptorPoller>> WatchSignals(Interrupt& interrupt) {
  sigset_t watched;
  sigemptyset(&watched);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    struct sigaction action;
    // nohup and shells make a background program ignore some signals. The descriptor would receive
    // even ignored signals, so ignored signals are not watched.
    if (::sigaction(signal, nullptr, &action) == 0 && action.sa_handler != SIG_IGN) {
      sigaddset(&watched, signal);
    }
  }
  // Threads that are made from now on inherit the mask, so that only the descriptor gets the
  // signals.
  ::pthread_sigmask(SIG_BLOCK, &watched, nullptr);
  auto fd = std::make_shared<OwnedFd>(::signalfd(-1, &watched, SFD_CLOEXEC | SFD_NONBLOCK));
  if (!fd->ok()) return absl::ErrnoToStatus(errno, "cannot watch for signals");
  SYSTOLE_ASSIGN_OR_RETURN(std::unique_ptr<DescriptorPoller> poller, DescriptorPoller::Create());
  const int watched_fd = fd->get();
  SYSTOLE_RETURN_IF_ERROR(poller->Add(watched_fd, [fd = std::move(fd), &interrupt] {
    signalfd_siginfo info;
    if (::read(fd->get(), &info, sizeof(info)) == sizeof(info)) {
      interrupt.Request(static_cast<int>(info.ssi_signo));
    }
    return true;
  }));
  return poller;
}

}  // namespace systole
