// One ReportTrainer call to one server. It reports how long a trainer waits for its steps.
//
// Thread-compatible; Cancel() may be called while the call runs. Like a ServerLink, it must not be
// destroyed on one of gRPC's threads. Once the call has started, it does not need the link.
#ifndef SYSTOLE_CLIENT_SERVERS_REPORT_CALL_H_
#define SYSTOLE_CLIENT_SERVERS_REPORT_CALL_H_

#include <functional>
#include <memory>
#include <optional>

#include "absl/status/status.h"
#include "client/servers/receive_meter.h"
#include "client/servers/server_link.h"
#include "grpcpp/client_context.h"
#include "systole/v1/service.grpc.pb.h"
#include "systole/v1/service.pb.h"

namespace systole {

class ReportCall {
 public:
  // `done` gets the call's status on one of gRPC's threads, once, after Start(). The call may be
  // destroyed from then on, but not in `done` itself.
  ReportCall(v1::TrainerReport report, std::function<void(absl::Status)> done);

  // If the server does not answer within 5 s, the call ends with DeadlineExceeded.
  void Start(ServerLink& link);
  // Makes `done` run soon, with Cancelled.
  void Cancel() { context_.TryCancel(); }

 private:
  const std::function<void(absl::Status)> done_;
  grpc::ClientContext context_;
  std::optional<MeteredCall> metered_;  // Set while the call runs.
  std::unique_ptr<v1::Systole::Stub> stub_;
  v1::ReportTrainerRequest request_;
  v1::ReportTrainerResponse response_;
};

}  // namespace systole

#endif  // SYSTOLE_CLIENT_SERVERS_REPORT_CALL_H_
