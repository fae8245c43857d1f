#include "server/streams/stream_handle.h"

#include <grpc/grpc.h>

#include <algorithm>
#include <string>
#include <utility>

namespace systole {

StreamHandle::StreamHandle(grpc_call* call, MonotonicClock clock)
    : call_(call), clock_(std::move(clock)), begin_(clock_()) {
  grpc_call_ref(call_);
}

StreamHandle::~StreamHandle() { grpc_call_unref(call_); }

void StreamHandle::Offered() {
  MutexLock lock(mu_);
  offered_at_ = clock_();
}

absl::Duration StreamHandle::Taken() {
  MutexLock lock(mu_);
  const absl::Duration taken_at = clock_();
  return taken_at - std::exchange(offered_at_, std::nullopt).value_or(taken_at);
}

void StreamHandle::SharesThrough(std::shared_ptr<SlotSession> session) {
  MutexLock lock(mu_);
  session_ = std::move(session);
}

absl::Duration StreamHandle::stalled() const {
  MutexLock lock(mu_);
  const absl::Duration sent =
      offered_at_.has_value() ? clock_() - *offered_at_ : absl::ZeroDuration();
  return session_ == nullptr ? sent : std::max(sent, session_->stalled());
}

void StreamHandle::Stop(const absl::Status& status) {
  {
    MutexLock lock(mu_);
    if (!stopped_.ok()) return;
    stopped_ = status;
  }
  // Finish() would queue its status after everything that was written. While the client does not
  // read, the status would never be sent. This call sends the trailers now and drops the rest.
  grpc_call_cancel_with_status(call_, static_cast<grpc_status_code>(status.code()),
                               std::string(status.message()).c_str(), nullptr);
}

absl::Status StreamHandle::stopped() const {
  MutexLock lock(mu_);
  return stopped_;
}

}  // namespace systole
