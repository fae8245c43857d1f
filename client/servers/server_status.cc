#include "client/servers/server_status.h"

#include <chrono>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "client/servers/receive_meter.h"
#include "client/servers/server_answer.h"
#include "client/servers/server_link.h"
#include "core/status/status_macros.h"
#include "proto/framing/chunk.h"
#include "proto/framing/status_bridge.h"
#include "systole/v1/service.grpc.pb.h"

namespace systole {
namespace {

// What gRPC says when the time is over; a server that answers says something else.
constexpr char kDeadlineText[] = "Deadline Exceeded";

// `what` says in a message what was asked about.
template <typename Request, typename Response>
absl::StatusOr<Response> Ask(const std::string& address, absl::Duration timeout,
                             const ServerSecurity& security, const Request& request,
                             grpc::Status (v1::Systole::Stub::*call)(grpc::ClientContext*,
                                                                     const Request&, Response*),
                             absl::string_view what) {
  SYSTOLE_RETURN_IF_ERROR(CheckServerAddress(address));
  SYSTOLE_ASSIGN_OR_RETURN(std::shared_ptr<const ChannelSecurity> channel_security,
                           ChannelSecurity::Open(security, {address}));
  ReceiveWatch watch;
  ServerLink link(address, std::move(channel_security), watch);
  MeteredCall metered(link.meter(), kMaxChunkMessageBytes);
  grpc::ClientContext context;
  link.AddToken(context);
  context.set_wait_for_ready(true);  // A first attempt that fails is not the answer.
  context.set_deadline(std::chrono::system_clock::now() + absl::ToChronoMicroseconds(timeout));
  Response response;
  absl::Status status = FromGrpcStatus(
      (v1::Systole::NewStub(link.channel()).get()->*call)(&context, request, &response));
  status = metered.End(std::move(status));
  if (status.ok()) status = CleanAnswer(response);
  if (status.ok()) return response;
  if (status.message() == kDeadlineText) {
    status = absl::DeadlineExceededError(
        absl::StrCat("no answer within ", absl::FormatDuration(timeout),
                     "; does a Systole server listen there, ",
                     security.tls ? "and is its certificate one that we trust?" : "without TLS?"));
  }
  return absl::Status(status.code(), absl::StrCat("server ", address, ", asked for its ", what,
                                                  ": ", status.message()));
}

}  // namespace

absl::StatusOr<v1::ServerStatusResponse> AskServerStatus(const std::string& address,
                                                         absl::Duration timeout,
                                                         const ServerSecurity& security) {
  return Ask(address, timeout, security, v1::ServerStatusRequest(),
             &v1::Systole::Stub::ServerStatus, "status");
}

absl::StatusOr<v1::ListDatasetsResponse> AskDatasets(const std::string& address,
                                                     absl::Duration timeout,
                                                     const ServerSecurity& security) {
  return Ask(address, timeout, security, v1::ListDatasetsRequest(),
             &v1::Systole::Stub::ListDatasets, "datasets");
}

absl::StatusOr<v1::DescribeDatasetResponse> AskDataset(const std::string& address,
                                                       const std::string& dataset,
                                                       absl::Duration timeout,
                                                       const ServerSecurity& security) {
  v1::DescribeDatasetRequest request;
  request.set_dataset(dataset);
  return Ask(address, timeout, security, request, &v1::Systole::Stub::DescribeDataset,
             absl::StrCat("dataset '", dataset, "'"));
}

}  // namespace systole
