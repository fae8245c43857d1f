#include "server/access/call_credentials.h"

#include <memory>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/strip.h"
#include "grpcpp/security/auth_context.h"
#include "server/listener/tls_credentials.h"
#include "server/listener/user_credentials.h"

namespace systole {

absl::StatusOr<Credentials> CredentialsOf(const grpc::CallbackServerContext& context) {
  Credentials credentials;
  const auto [begin, end] = context.client_metadata().equal_range("authorization");
  for (auto it = begin; it != end; ++it) {
    absl::string_view value(it->second.data(), it->second.size());
    if (credentials.token.has_value() || !absl::ConsumePrefix(&value, "Bearer ") || value.empty()) {
      return absl::UnauthenticatedError(
          "the metadata `authorization` is not a single `Bearer TOKEN`; send that, or no "
          "`authorization`");
    }
    credentials.token = HashOfToken(value);
  }
  const std::shared_ptr<const grpc::AuthContext> connection = context.auth_context();
  if (connection != nullptr) {
    credentials.certificate_names = AuthenticatedNames(*connection);
    credentials.unix_user = UserOf(*connection);
  }
  return credentials;
}

std::string HostOfPeer(absl::string_view peer) {
  if (!absl::StartsWith(peer, "ipv4:") && !absl::StartsWith(peer, "ipv6:")) {
    return std::string(peer);
  }
  return std::string(peer.substr(0, peer.rfind(':')));
}

}  // namespace systole
