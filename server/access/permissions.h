// The caller of a gRPC call and its permissions. The policy in force gives the permissions for the
// caller's credentials.
//
// Thread-compatible.
#ifndef SYSTOLE_SERVER_ACCESS_PERMISSIONS_H_
#define SYSTOLE_SERVER_ACCESS_PERMISSIONS_H_

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "grpcpp/server_context.h"
#include "server/access/access_control.h"
#include "server/access/access_policy.h"

namespace systole {

struct Permissions {
  // The policy in force when the call came. If null, every caller has every permission.
  std::shared_ptr<const AccessPolicy> policy;
  Credentials credentials;
  Caller caller;

  bool MayRead(absl::string_view dataset) const {
    return policy == nullptr || policy->MayRead(caller, dataset);
  }
  bool MayList(absl::string_view dataset) const {
    return policy == nullptr || policy->MayList(caller, dataset);
  }
  // MayRead() as a function. This object must outlive the function.
  auto Readable() const {
    return [this](absl::string_view dataset) { return MayRead(dataset); };
  }
  bool MayReadAny() const { return policy == nullptr || policy->MayReadAny(caller); }
  bool MayReflect() const { return policy == nullptr || policy->MayReflect(caller); }
  bool MaySeeHealth() const { return policy == nullptr || policy->MaySeeHealth(caller); }
  bool MaySeeStatus() const { return policy == nullptr || policy->MaySeeStatus(caller); }
};

// The caller's permissions. If `access` is null, every caller has every permission, and credentials
// are not looked at.
//   Unauthenticated  a credential is not valid.
absl::StatusOr<Permissions> PermissionsOf(const AccessControl* access,
                                          const grpc::CallbackServerContext& context);
absl::StatusOr<Permissions> PermissionsOf(const AccessControl* access, Credentials credentials);

// The error for a caller that may not do `what`, which needs the config's `permission`:
// Unauthenticated if the caller is anonymous, PermissionDenied if not.
absl::Status NotPermitted(const Caller& caller, absl::string_view what,
                          absl::string_view permission);

// The name under which a caller's open calls and streams are counted: the identity or, for an
// anonymous caller, the host of `address` (as grpc::ServerContext::peer() gives it).
std::string PeerOf(const Caller& caller, absl::string_view address);

// The caller's identity. Empty if `permissions` is an error, or if the caller is anonymous.
std::string IdentityOf(const absl::StatusOr<Permissions>& permissions);

}  // namespace systole

#endif  // SYSTOLE_SERVER_ACCESS_PERMISSIONS_H_
