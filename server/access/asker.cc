#include "server/access/asker.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "core/status/status_macros.h"
#include "server/access/call_credentials.h"

namespace systole {

absl::StatusOr<Asker> WhoAsks(const AccessControl* access,
                              const grpc::CallbackServerContext& context) {
  if (access == nullptr) return Asker();
  SYSTOLE_ASSIGN_OR_RETURN(Credentials credentials, CredentialsOf(context));
  return WhoAsks(access, std::move(credentials));
}

absl::StatusOr<Asker> WhoAsks(const AccessControl* access, Credentials credentials) {
  if (access == nullptr) return Asker();
  Asker asker = {.policy = access->policy(), .credentials = std::move(credentials), .caller = {}};
  SYSTOLE_ASSIGN_OR_RETURN(asker.caller, asker.policy->Identify(asker.credentials, access->Now()));
  return asker;
}

absl::Status NotPermitted(const Caller& caller, absl::string_view what,
                          absl::string_view permission) {
  if (caller.anonymous()) return CredentialWanted();
  return absl::PermissionDeniedError(absl::StrCat("identity '", caller.identity, "' may not call ",
                                                  what, "; the server's operator can grant it `",
                                                  permission, ": true`"));
}

std::string IdentityOf(const absl::StatusOr<Asker>& asker) {
  return asker.ok() ? asker->caller.identity : "";
}

}  // namespace systole
