// gRPC's health service, grpc.health.v1: SERVING until the server drains, then NOT_SERVING. The
// code is our own. gRPC's own service cannot refuse a caller, and its open Watch calls delay a
// draining server.
//
// Thread-safe.
#ifndef SYSTOLE_SERVER_INTROSPECTION_HEALTH_SERVICE_H_
#define SYSTOLE_SERVER_INTROSPECTION_HEALTH_SERVICE_H_

#include <memory>
#include <set>

#include "absl/base/thread_annotations.h"
#include "core/concurrency/monotonic_clock.h"
#include "core/concurrency/mutex.h"
#include "grpc/health/v1/health.grpc.pb.h"
#include "server/access/access_control.h"
#include "server/introspection/guarded_calls.h"
#include "server/streams/refusal_log.h"

namespace systole {

// The most Watch calls at once. Peers share them like the places of streams
// (server/streams/running_streams.h). A load balancer has one or two.
inline constexpr int kMaxHealthWatches = 256;

class HealthService final : public grpc::health::v1::Health::CallbackService {
 public:
  // For the parameters see GuardedCalls.
  HealthService(std::shared_ptr<AccessControl> access, RefusalLog& refusals, MonotonicClock clock);

  // Call it about once a second.
  void Tick() { watches_.Tick(); }
  // From now on the server is NOT_SERVING. Clients that watch get this status, and their calls end.
  void StartDraining() ABSL_LOCKS_EXCLUDED(mu_);

  // Check and Watch know two services: the empty name, which is the server, and systole.v1.Systole.
  //   Unauthenticated, PermissionDenied  the caller may not ask.
  //   NotFound                           Check of another service.
  grpc::ServerUnaryReactor* Check(grpc::CallbackServerContext* context,
                                  const grpc::health::v1::HealthCheckRequest* request,
                                  grpc::health::v1::HealthCheckResponse* response) override;
  grpc::ServerWriteReactor<grpc::health::v1::HealthCheckResponse>* Watch(
      grpc::CallbackServerContext* context,
      const grpc::health::v1::HealthCheckRequest* request) override;

 private:
  class WatchCall;
  class RefusedWatch;

  GuardedCalls watches_;
  Mutex mu_;
  bool draining_ ABSL_GUARDED_BY(mu_) = false;
  std::set<WatchCall*> open_ ABSL_GUARDED_BY(mu_);
};

}  // namespace systole

#endif  // SYSTOLE_SERVER_INTROSPECTION_HEALTH_SERVICE_H_
