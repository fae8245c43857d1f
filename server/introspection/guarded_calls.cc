#include "server/introspection/guarded_calls.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "core/status/status_macros.h"
#include "server/streams/end_cause.h"

namespace systole {
namespace {

// A call ends if its client takes no message for this long.
constexpr absl::Duration kStalled = absl::Minutes(2);

}  // namespace

absl::StatusOr<Permissions> GuardedCalls::Permitted(absl::StatusOr<Permissions> permissions) const {
  if (permissions.ok() && !((*permissions).*method_.may)()) {
    return NotPermitted(permissions->caller, method_.name, method_.permission);
  }
  return permissions;
}

absl::Status GuardedCalls::Check(const grpc::CallbackServerContext& context) const {
  const absl::StatusOr<Permissions> permissions = PermissionsOf(access_.get(), context);
  absl::Status status = Permitted(permissions).status();
  if (!status.ok()) {
    refusals_.Add(context, method_.name, status, {.identity = IdentityOf(permissions)});
  }
  return status;
}

absl::StatusOr<std::shared_ptr<StreamHandle>> GuardedCalls::Admit(
    grpc::CallbackServerContext& context) {
  SYSTOLE_RETURN_IF_ERROR(Check(context));
  SYSTOLE_ASSIGN_OR_RETURN(Permissions permissions, PermissionsOf(access_.get(), context));
  const std::string identity = permissions.caller.identity;
  absl::StatusOr<std::shared_ptr<StreamHandle>> handle = TakePlace(context, std::move(permissions));
  if (!handle.ok()) {
    refusals_.Add(context, method_.name, handle.status(), {.identity = identity});
  }
  return handle;
}

absl::StatusOr<std::shared_ptr<StreamHandle>> GuardedCalls::TakePlace(
    grpc::CallbackServerContext& context, Permissions permissions) {
  auto handle = std::make_shared<StreamHandle>(context.c_call(), clock_);
  if (!calls_.Add({.peer = PeerOf(permissions.caller, context.peer()),
                   .credentials = std::move(permissions.credentials),
                   .datasets = {},
                   .handle = handle})) {
    return MarkedAs(EndCause::kNoPlace, absl::ResourceExhaustedError(absl::StrCat(
                                            method_.max_calls, " calls of ", method_.name,
                                            " are open, which is the limit; ask later")));
  }
  // Checked after the call was added to `calls_`: either `draining_` is seen here, or End() finds
  // the call.
  if (draining_) {
    calls_.Remove(*handle);
    return MarkedAs(EndCause::kDraining, absl::UnavailableError("this server is draining"));
  }
  return handle;
}

void GuardedCalls::Tick() {
  calls_.StopUnless([this](const RunningStream& call) {
    return Permitted(PermissionsOf(access_.get(), call.credentials)).status();
  });
  calls_.StopStalled(kStalled);
}

void GuardedCalls::End() {
  calls_.StopUnless(
      [](const RunningStream&) { return absl::UnavailableError("this server is draining"); });
}

}  // namespace systole
