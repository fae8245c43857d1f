// What a call's metadata says of its trace (core/trace).
//
// Thread-safe: no state.
#ifndef SYSTOLE_SERVER_RPC_CALL_METADATA_H_
#define SYSTOLE_SERVER_RPC_CALL_METADATA_H_

#include <optional>

#include "core/trace/trace_context.h"
#include "proto/framing/guarded_message.h"

namespace systole {

// Nullopt if the call has no `traceparent`, several, or a malformed one. A `tracestate` that is
// malformed is left out.
std::optional<TraceContext> TraceContextOf(const CallMetadata& metadata);

}  // namespace systole

#endif  // SYSTOLE_SERVER_RPC_CALL_METADATA_H_
