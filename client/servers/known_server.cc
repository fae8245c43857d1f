#include "client/servers/known_server.h"

#include <cstddef>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace systole {
namespace {

// An error names at most this many servers.
constexpr int kMostNamed = 16;

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
  return absl::Status(status.code(), absl::StrCat(status.message(), " [server ", address, "]"));
}

std::string WhatToLookAt(const absl::Status& error, bool tls) {
  if (HungUp(error) && !tls) {
    return "The server closed the connection, as a server with TLS does (--tls). Or is another "
           "program than systole-server there?";
  }
  return absl::StrCat("Is systole-server running there, and is the address right?",
                      tls ? " Does it speak TLS, with a certificate that this client trusts?" : "");
}

absl::Status Unreachable(absl::string_view what, const std::map<int, KnownServer>& servers,
                         bool tls) {
  std::string message(what);
  absl::string_view separator = ": ";
  int named = 0;
  const KnownServer* shown = nullptr;
  for (const auto& [number, server] : servers) {
    if (server.link == nullptr && server.last_error.ok()) continue;  // The server was never asked.
    if (++named > kMostNamed) continue;
    absl::StrAppend(&message, separator, server.address, ": ",
                    server.last_error.ok() ? "no answer" : server.last_error.message());
    separator = "; ";
    if (shown == nullptr || (HungUp(server.last_error) && !HungUp(shown->last_error) && !tls)) {
      shown = &server;
    }
  }
  if (named > kMostNamed) absl::StrAppend(&message, "; and ", named - kMostNamed, " more");
  if (const size_t others = servers.size() - static_cast<size_t>(named); others > 0) {
    absl::StrAppend(&message, "; ", others, " more servers were not asked");
  }
  if (shown != nullptr) absl::StrAppend(&message, ". ", WhatToLookAt(shown->last_error, tls));
  return absl::UnavailableError(message);
}

}  // namespace systole
