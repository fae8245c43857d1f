#include "client/feed/known_server.h"

#include <string>

#include "absl/strings/str_cat.h"

namespace systole {
namespace {

// A server that failed is not preferred again before this time has passed.
constexpr absl::Duration kAvoidFor = absl::Seconds(30);

}  // namespace

void KnownServer::Failed(absl::Duration now, const absl::Status& error) {
  identity.reset();
  compact_identity.reset();
  failed_at = now;
  last_error = error;
}

bool KnownServer::IsAvoided(absl::Duration now) const {
  return failed_at.has_value() && now - *failed_at < kAvoidFor;
}

absl::Status KnownServer::Named(const absl::Status& status) const {
  return absl::Status(status.code(),
                      absl::StrCat(status.message(), " [server ", link->address(), "]"));
}

absl::Status Unreachable(absl::string_view what, absl::Span<const KnownServer> servers) {
  std::string message(what);
  for (size_t i = 0; i < servers.size(); ++i) {
    absl::StrAppend(&message, i == 0 ? ": " : "; ", servers[i].link->address(), ": ",
                    servers[i].last_error.ok() ? "no answer" : servers[i].last_error.message());
  }
  absl::StrAppend(&message, ". Is systole-server running there, and is the address right?");
  return absl::UnavailableError(message);
}

}  // namespace systole
