#include "server/access/permissions.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "core/status/status_macros.h"
#include "server/access/call_credentials.h"

namespace systole {

absl::StatusOr<Permissions> PermissionsOf(const AccessControl* access,
                                          const grpc::CallbackServerContext& context) {
  if (access == nullptr) return Permissions();
  SYSTOLE_ASSIGN_OR_RETURN(Credentials credentials, CredentialsOf(context));
  return PermissionsOf(access, std::move(credentials));
}

absl::StatusOr<Permissions> PermissionsOf(const AccessControl* access, Credentials credentials) {
  if (access == nullptr) return Permissions();
  Permissions permissions = {
      .policy = access->policy(), .credentials = std::move(credentials), .caller = {}};
  SYSTOLE_ASSIGN_OR_RETURN(permissions.caller,
                           permissions.policy->Identify(permissions.credentials, access->Now()));
  return permissions;
}

absl::Status NotPermitted(const Caller& caller, absl::string_view what,
                          absl::string_view permission) {
  if (caller.anonymous()) return CredentialWanted();
  return absl::PermissionDeniedError(absl::StrCat("identity '", caller.identity, "' may not call ",
                                                  what, "; the server's operator can grant it `",
                                                  permission, ": true`"));
}

std::string PeerOf(const Caller& caller, absl::string_view address) {
  return caller.anonymous() ? HostOfPeer(address)
                            : absl::StrCat("identity '", caller.identity, "'");
}

std::string IdentityOf(const absl::StatusOr<Permissions>& permissions) {
  return permissions.ok() ? permissions->caller.identity : "";
}

}  // namespace systole
