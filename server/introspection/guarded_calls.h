// Guards one method of gRPC whose callers need a permission. Admits its calls, limits the number of
// open calls, and ends calls that must not go on.
//
// Thread-safe.
#ifndef SYSTOLE_SERVER_INTROSPECTION_GUARDED_CALLS_H_
#define SYSTOLE_SERVER_INTROSPECTION_GUARDED_CALLS_H_

#include <atomic>
#include <memory>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/concurrency/monotonic_clock.h"
#include "grpcpp/server_context.h"
#include "server/access/access_control.h"
#include "server/access/permissions.h"
#include "server/streams/refusal_log.h"
#include "server/streams/running_streams.h"
#include "server/streams/stream_handle.h"

namespace systole {

struct GuardedMethod {
  const char* name;
  // The permission's name in the config, for errors.
  const char* permission;
  bool (Permissions::*may)() const;
  // How many calls may be open at once. Peers share these places as they share the places for
  // streams (server/streams/running_streams.h).
  int max_calls;
};

class GuardedCalls {
 public:
  // `access` is null if everybody may do everything. `clock` measures stalls. `refusals` must
  // outlive this object.
  GuardedCalls(const GuardedMethod& method, std::shared_ptr<AccessControl> access,
               RefusalLog& refusals, MonotonicClock clock)
      : method_(method),
        access_(std::move(access)),
        refusals_(refusals),
        clock_(std::move(clock)),
        calls_(method.max_calls) {}

  // OK if the call may be answered at all. Refusals are logged and counted.
  //   Unauthenticated, PermissionDenied  the call is not permitted.
  absl::Status Check(const grpc::CallbackServerContext& context) const;
  // For a call that stays open. Does what Check() does, and gives the call a place, which the call
  // keeps until Remove(). Errors of Check(), and:
  //   Unavailable        the server is draining.
  //   ResourceExhausted  all places are taken.
  absl::StatusOr<std::shared_ptr<StreamHandle>> Admit(grpc::CallbackServerContext& context);
  void Remove(const StreamHandle& handle) { calls_.Remove(handle); }

  // Ends calls that are not permitted any more, or whose clients have left a message untaken for
  // two minutes. Call it about once a second.
  void Tick();
  // From now on no call is admitted.
  void StartDraining() { draining_ = true; }
  // Ends all calls.
  void End();

 private:
  absl::StatusOr<Permissions> Permitted(absl::StatusOr<Permissions> permissions) const;
  absl::StatusOr<std::shared_ptr<StreamHandle>> TakePlace(grpc::CallbackServerContext& context,
                                                          Permissions permissions);

  const GuardedMethod method_;
  const std::shared_ptr<AccessControl> access_;
  RefusalLog& refusals_;
  const MonotonicClock clock_;
  std::atomic<bool> draining_ = false;
  RunningStreams calls_;
};

}  // namespace systole

#endif  // SYSTOLE_SERVER_INTROSPECTION_GUARDED_CALLS_H_
