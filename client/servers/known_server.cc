#include "client/servers/known_server.h"

#include <algorithm>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace systole {
namespace {

// Whether a connection was accepted, and closed before any data came.
bool HungUp(const absl::Status& error) {
  return absl::StrContains(error.message(), "Socket closed") ||
         absl::StrContains(error.message(), "Connection reset by peer");
}

}  // namespace

void KnownServer::Failed(const absl::Status& error) {
  identity.reset();
  last_error = error;
}

absl::Status KnownServer::Named(const absl::Status& status) const {
  return absl::Status(status.code(),
                      absl::StrCat(status.message(), " [server ", link->address(), "]"));
}

std::string WhatToLookAt(const absl::Status& error, bool tls) {
  if (HungUp(error) && !tls) {
    return "It closed the connection, as a server with TLS does (--tls). Or is it no "
           "systole-server?";
  }
  return absl::StrCat("Is systole-server running there, and is the address right?",
                      tls ? " Does it speak TLS, with a certificate that this client trusts?" : "");
}

absl::Status Unreachable(absl::string_view what, const std::map<int, KnownServer>& servers) {
  std::string message(what);
  absl::string_view separator = ": ";
  for (const auto& [number, server] : servers) {
    absl::StrAppend(&message, separator, server.link->address(), ": ",
                    server.last_error.ok() ? "no answer" : server.last_error.message());
    separator = "; ";
  }
  const auto hung_up = std::find_if(servers.begin(), servers.end(), [](const auto& server) {
    return HungUp(server.second.last_error) && !server.second.link->tls();
  });
  const auto& shown = hung_up != servers.end() ? hung_up : servers.begin();
  if (shown != servers.end()) {
    absl::StrAppend(&message, ". ",
                    WhatToLookAt(shown->second.last_error, shown->second.link->tls()));
  }
  return absl::UnavailableError(message);
}

}  // namespace systole
