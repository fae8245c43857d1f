#include "proto/framing/status_bridge.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "core/text/foreign_text.h"

namespace systole {

grpc::Status ToGrpcStatus(const absl::Status& status) {
  if (status.ok()) return grpc::Status::OK;
  return grpc::Status(static_cast<grpc::StatusCode>(status.raw_code()),
                      std::string(status.message().substr(0, kMaxStatusMessageBytes)));
}

absl::Status FromGrpcStatus(const grpc::Status& status) {
  if (status.ok()) return absl::OkStatus();
  const auto code = static_cast<absl::StatusCode>(status.error_code());
  std::string message = ForeignText(status.error_message(), kMaxStatusMessageBytes);
  if (message.empty()) {
    message = absl::StrCat(absl::StatusCodeToString(code), ", without a message");
  }
  return absl::Status(code, message);
}

}  // namespace systole
