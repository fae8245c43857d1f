#include "server/access/call_credentials.h"

#include <memory>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/strip.h"
#include "core/status/status_macros.h"
#include "grpcpp/security/auth_context.h"
#include "server/listener/tls_credentials.h"
#include "server/listener/user_credentials.h"

namespace systole {

absl::StatusOr<std::optional<TokenHash>> TokenOf(
    absl::Span<const absl::string_view> authorization) {
  if (authorization.empty()) return std::nullopt;
  absl::string_view value = authorization.front();
  if (authorization.size() > 1 || !absl::ConsumePrefix(&value, "Bearer ") || value.empty()) {
    return absl::UnauthenticatedError(
        "the metadata `authorization` is not a single `Bearer TOKEN`; send that, or no "
        "`authorization`");
  }
  return HashOfToken(value);
}

absl::StatusOr<Credentials> CredentialsOf(const grpc::CallbackServerContext& context) {
  Credentials credentials;
  std::vector<absl::string_view> authorization;
  const auto [begin, end] = context.client_metadata().equal_range("authorization");
  for (auto it = begin; it != end; ++it) {
    authorization.emplace_back(it->second.data(), it->second.size());
  }
  SYSTOLE_ASSIGN_OR_RETURN(credentials.token, TokenOf(authorization));
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
