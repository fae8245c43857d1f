#include "core/http/no_server.h"

#include "absl/strings/cord.h"

namespace systole {
namespace {

constexpr char kNoServerUrl[] = "systole/no-server";

}  // namespace

absl::Status NoServerError(absl::string_view message) {
  absl::Status error = absl::UnavailableError(message);
  error.SetPayload(kNoServerUrl, absl::Cord());
  return error;
}

bool IsNoServer(const absl::Status& error) { return error.GetPayload(kNoServerUrl).has_value(); }

}  // namespace systole
