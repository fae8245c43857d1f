#include "client/server_status.h"

#include <chrono>

#include "absl/strings/str_cat.h"
#include "client/server_link.h"
#include "core/status/status_macros.h"
#include "proto/framing/status_bridge.h"

namespace systole {

absl::StatusOr<v1::ServerStatusResponse> AskServerStatus(const std::string& address,
                                                         absl::Duration timeout) {
  SYSTOLE_RETURN_IF_ERROR(CheckServerAddress(address));
  ServerLink link(address);
  grpc::ClientContext context;
  context.set_wait_for_ready(true);  // A first attempt that fails is not the answer.
  context.set_deadline(std::chrono::system_clock::now() + absl::ToChronoMicroseconds(timeout));
  v1::ServerStatusResponse response;
  const absl::Status status =
      FromGrpcStatus(link.stub().ServerStatus(&context, v1::ServerStatusRequest(), &response));
  if (status.ok()) return response;
  return absl::Status(status.code(), absl::StrCat("server ", address,
                                                  ", asked for its status: ", status.message()));
}

}  // namespace systole
