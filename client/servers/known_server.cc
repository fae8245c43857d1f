#include "client/servers/known_server.h"

#include <string>

#include "absl/strings/str_cat.h"

namespace systole {

void KnownServer::Failed(const absl::Status& error) {
  identity.reset();
  compact_identity.reset();
  last_error = error;
}

absl::Status KnownServer::Named(const absl::Status& status) const {
  return absl::Status(status.code(),
                      absl::StrCat(status.message(), " [server ", link->address(), "]"));
}

absl::Status Unreachable(absl::string_view what, const std::map<int, KnownServer>& servers) {
  std::string message(what);
  absl::string_view separator = ": ";
  for (const auto& [number, server] : servers) {
    absl::StrAppend(&message, separator, server.link->address(), ": ",
                    server.last_error.ok() ? "no answer" : server.last_error.message());
    separator = "; ";
  }
  absl::StrAppend(&message, ". Is systole-server running there, and is the address right?");
  return absl::UnavailableError(message);
}

}  // namespace systole
