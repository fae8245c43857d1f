// gRPC's reflection. It tells a tool, such as grpcurl, which services this server has and what
// their messages look like. It is served under two names, grpc.reflection.v1 and v1alpha, whose
// messages are the same on the wire. We wrote our own, because gRPC's plug-in cannot refuse a
// caller, and does not bound the number of calls (README.md).
//
// Thread-safe.
#ifndef SYSTOLE_SERVER_INTROSPECTION_REFLECTION_SERVICE_H_
#define SYSTOLE_SERVER_INTROSPECTION_REFLECTION_SERVICE_H_

#include <memory>

#include "core/concurrency/monotonic_clock.h"
#include "grpc/reflection/v1/reflection.pb.h"
#include "grpcpp/impl/service_type.h"
#include "grpcpp/support/server_callback.h"
#include "server/access/access_control.h"
#include "server/introspection/guarded_calls.h"
#include "server/introspection/served_schema.h"
#include "server/streams/refusal_log.h"

namespace systole {

// The most calls at once. Peers share them like the places of streams. A tool has one call, which
// lasts a moment.
inline constexpr int kMaxReflectionCalls = 64;
// The most requests in one call. A tool that asks for everything sends some dozens.
inline constexpr int kMaxReflectionRequests = 1000;

class ReflectionService final : public grpc::Service {
 public:
  // For the parameters see GuardedCalls.
  ReflectionService(std::shared_ptr<AccessControl> access, RefusalLog& refusals,
                    MonotonicClock clock);

  // Call it about once a second.
  void Tick() { calls_.Tick(); }
  // Ends all calls, and refuses new ones.
  void StartDraining();

  const ServedSchema& schema() const { return schema_; }

 private:
  using Request = grpc::reflection::v1::ServerReflectionRequest;
  using Response = grpc::reflection::v1::ServerReflectionResponse;

  class Call;
  class RefusedCall;

  grpc::ServerBidiReactor<Request, Response>* Open(grpc::CallbackServerContext& context);

  const ServedSchema schema_;
  GuardedCalls calls_;
};

}  // namespace systole

#endif  // SYSTOLE_SERVER_INTROSPECTION_REFLECTION_SERVICE_H_
