// The trace that a feed's calls belong to, as it is sent to servers (core/trace).
//
// Thread-compatible value type.
#ifndef SYSTOLE_CLIENT_SERVERS_TRACE_HEADERS_H_
#define SYSTOLE_CLIENT_SERVERS_TRACE_HEADERS_H_

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "grpcpp/client_context.h"

namespace systole {

struct TraceHeaders {
  std::string parent;  // Empty: the calls belong to no trace.
  std::string state;

  // Adds the trace to a call that has not begun.
  void AddTo(grpc::ClientContext& context) const;
};

// OK if `traceparent` is empty or W3C's rules allow it. Otherwise InvalidArgument. The message says
// what is wanted.
absl::Status CheckTraceParent(absl::string_view traceparent);

// `traceparent` if it is not empty. Otherwise $TRACEPARENT and $TRACESTATE, as OpenTelemetry's
// tools set them for programs that they start. If one of these variables has a malformed value, the
// value is left out.
// REQUIRES: CheckTraceParent(traceparent) is OK.
TraceHeaders TraceHeadersOf(absl::string_view traceparent);

}  // namespace systole

#endif  // SYSTOLE_CLIENT_SERVERS_TRACE_HEADERS_H_
