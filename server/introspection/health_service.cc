#include "server/introspection/health_service.h"

#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "core/text/foreign_text.h"
#include "proto/framing/status_bridge.h"
#include "server/streams/stream_handle.h"
#include "systole/v1/service.grpc.pb.h"

namespace systole {
namespace {

using grpc::health::v1::HealthCheckRequest;
using grpc::health::v1::HealthCheckResponse;

constexpr GuardedMethod kHealth = {.name = "Health",
                                   .permission = "health",
                                   .may = &Permissions::MaySeeHealth,
                                   .max_calls = kMaxHealthWatches};

bool IsKnown(const HealthCheckRequest& request) {
  return request.service().empty() || request.service() == v1::Systole::service_full_name();
}

}  // namespace

// A call of Watch. Owned by gRPC: deletes itself when the call is over.
class HealthService::WatchCall final : public grpc::ServerWriteReactor<HealthCheckResponse> {
 public:
  WatchCall(HealthService& service, std::shared_ptr<StreamHandle> handle,
            HealthCheckResponse::ServingStatus status)
      : service_(service), handle_(std::move(handle)) {
    MutexLock lock(mu_);
    Send(status);
  }

  // Sends NOT_SERVING, the last status that the client gets.
  void TellNotServing() ABSL_LOCKS_EXCLUDED(mu_) {
    MutexLock lock(mu_);
    draining_ = true;
    if (!writing_ && !over_) Send(HealthCheckResponse::NOT_SERVING);
  }

  void OnWriteDone(bool ok) override {
    handle_->Taken();
    MutexLock lock(mu_);
    writing_ = false;
    if (!ok || cancelled_) return End(absl::CancelledError("the client is gone"));
    if (!draining_) return;
    if (response_.status() == HealthCheckResponse::SERVING) {
      return Send(HealthCheckResponse::NOT_SERVING);
    }
    End(absl::UnavailableError("this server is draining"));
  }

  void OnCancel() override {
    MutexLock lock(mu_);
    cancelled_ = true;
    // If a write is pending, OnWriteDone() follows and ends the call.
    if (!writing_) End(absl::CancelledError("the client is gone"));
  }

  void OnDone() override {
    {
      MutexLock lock(service_.mu_);
      service_.open_.erase(this);
    }
    service_.watches_.Remove(*handle_);
    delete this;
  }

 private:
  void Send(HealthCheckResponse::ServingStatus status) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    response_.set_status(status);
    writing_ = true;
    handle_->Offered();
    StartWrite(&response_);
  }
  void End(const absl::Status& status) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    if (std::exchange(over_, true)) return;
    Finish(ToGrpcStatus(status));
  }

  HealthService& service_;
  const std::shared_ptr<StreamHandle> handle_;
  Mutex mu_;
  bool writing_ ABSL_GUARDED_BY(mu_) = false;
  bool draining_ ABSL_GUARDED_BY(mu_) = false;
  bool cancelled_ ABSL_GUARDED_BY(mu_) = false;
  bool over_ ABSL_GUARDED_BY(mu_) = false;
  HealthCheckResponse response_;  // The message of the pending or the last write.
};

class HealthService::RefusedWatch final : public grpc::ServerWriteReactor<HealthCheckResponse> {
 public:
  explicit RefusedWatch(const absl::Status& status) { Finish(ToGrpcStatus(status)); }
  void OnDone() override { delete this; }
};

HealthService::HealthService(std::shared_ptr<AccessControl> access, RefusalLog& refusals,
                             MonotonicClock clock)
    : watches_(kHealth, std::move(access), refusals, std::move(clock)) {}

void HealthService::StartDraining() {
  watches_.StartDraining();
  MutexLock lock(mu_);
  draining_ = true;
  for (WatchCall* const call : open_) call->TellNotServing();
}

grpc::ServerUnaryReactor* HealthService::Check(grpc::CallbackServerContext* context,
                                               const HealthCheckRequest* request,
                                               HealthCheckResponse* response) {
  absl::Status status = watches_.Check(*context);
  if (status.ok() && !IsKnown(*request)) {
    status = absl::NotFoundError(absl::StrCat("no service '", ForeignName(request->service()),
                                              "' here; want '", v1::Systole::service_full_name(),
                                              "', or no name for the whole server"));
  }
  MutexLock lock(mu_);
  response->set_status(draining_ ? HealthCheckResponse::NOT_SERVING : HealthCheckResponse::SERVING);
  grpc::ServerUnaryReactor* const reactor = context->DefaultReactor();
  reactor->Finish(ToGrpcStatus(status));
  return reactor;
}

grpc::ServerWriteReactor<HealthCheckResponse>* HealthService::Watch(
    grpc::CallbackServerContext* context, const HealthCheckRequest* request) {
  absl::StatusOr<std::shared_ptr<StreamHandle>> handle = watches_.Admit(*context);
  if (!handle.ok()) return new RefusedWatch(handle.status());
  MutexLock lock(mu_);
  auto* const call = new WatchCall(
      *this, *std::move(handle),
      IsKnown(*request) ? HealthCheckResponse::SERVING : HealthCheckResponse::SERVICE_UNKNOWN);
  open_.insert(call);
  // If StartDraining() ran before the call was in `open_`, it did not tell this call.
  if (draining_) call->TellNotServing();
  return call;
}

}  // namespace systole
