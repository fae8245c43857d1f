#include "client/servers/server_status.h"

#include <chrono>
#include <memory>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "client/servers/known_server.h"
#include "client/servers/receive_meter.h"
#include "client/servers/server_answer.h"
#include "client/servers/server_link.h"
#include "core/status/status_macros.h"
#include "proto/framing/chunk.h"
#include "proto/framing/status_bridge.h"
#include "systole/v1/service.grpc.pb.h"

namespace systole {
namespace {

// gRPC's message for a call whose deadline has passed. An error that a server sends has another
// message.
constexpr char kDeadlineText[] = "Deadline Exceeded";

// Asks one server. With `wait_for_it` gRPC repeats failed attempts to connect until `deadline`.
// Without `wait_for_it`, AskOnce() returns the error of the first failed attempt.
template <typename Request, typename Response>
absl::Status AskOnce(ServerLink& link, const Request& request, bool wait_for_it,
                     std::chrono::system_clock::time_point deadline,
                     grpc::Status (v1::Systole::Stub::*call)(grpc::ClientContext*, const Request&,
                                                             Response*),
                     Response& response) {
  MeteredCall metered(link.meter(), kMaxChunkMessageBytes);
  grpc::ClientContext context;
  link.AddToken(context);
  context.set_wait_for_ready(wait_for_it);
  context.set_deadline(deadline);
  return metered.End(FromGrpcStatus(
      (v1::Systole::NewStub(link.channel()).get()->*call)(&context, request, &response)));
}

std::chrono::system_clock::time_point DeadlineAfter(absl::Duration timeout) {
  const absl::Time now = absl::FromChrono(std::chrono::system_clock::now());
  // An infinite timeout stays infinite, for gRPC, too.
  return absl::ToChronoTime(now + timeout);
}

// Whether no process listens at the address, so that waiting would not help.
bool IsRefused(const absl::Status& error) {
  return absl::StrContains(error.message(), "Connection refused") ||
         absl::StrContains(error.message(), "No such file or directory");
}

// `what`: a name, for messages, of what the server is asked for.
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
  const auto deadline = DeadlineAfter(timeout);
  Response response;
  absl::Status status = AskOnce(link, request, /*wait_for_it=*/false, deadline, call, response);
  if (absl::IsUnavailable(status) && !IsRefused(status)) {
    const absl::Status first = std::move(status);
    status = AskOnce(link, request, /*wait_for_it=*/true, deadline, call, response);
    // gRPC's error for a passed deadline does not say why no answer came. The first attempt's error
    // says why.
    if (absl::IsDeadlineExceeded(status)) status = first;
  }
  if (status.ok()) status = CleanAnswer(response);
  if (status.ok()) return response;
  if (absl::IsUnavailable(status)) {
    status = absl::UnavailableError(
        absl::StrCat(status.message(), ". ", WhatToLookAt(status, security.tls)));
  } else if (status.message() == kDeadlineText) {
    status =
        absl::DeadlineExceededError(absl::StrCat("no answer within ", absl::FormatDuration(timeout),
                                                 ". ", WhatToLookAt(status, security.tls)));
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
