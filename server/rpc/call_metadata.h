// Reads what the client of a call sent: the request, and the trace context (core/trace) in the
// call's metadata.
//
// Thread-safe: no state.
#ifndef SYSTOLE_SERVER_RPC_CALL_METADATA_H_
#define SYSTOLE_SERVER_RPC_CALL_METADATA_H_

#include <optional>

#include "absl/status/status.h"
#include "core/trace/trace_context.h"
#include "google/protobuf/message_lite.h"
#include "grpcpp/support/byte_buffer.h"
#include "proto/framing/guarded_message.h"

namespace systole {

// Nullopt if the call has no `traceparent`, several, or a malformed one. A `tracestate` that is
// malformed is left out.
std::optional<TraceContext> TraceContextOf(const CallMetadata& metadata);

// Parses a client's request.
//   Aborted          the request was damaged on the way.
//   InvalidArgument  the bytes are no message of this type.
absl::Status ReadRequest(const CallMetadata& metadata, const grpc::ByteBuffer& bytes,
                         google::protobuf::MessageLite& request);

}  // namespace systole

#endif  // SYSTOLE_SERVER_RPC_CALL_METADATA_H_
