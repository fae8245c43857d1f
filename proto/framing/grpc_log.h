// Redirects gRPC's own log lines. By default, gRPC writes these lines to stderr, in addition to our
// own error for the same event, and does not escape a peer's header values.
//
// Thread-safe.
#ifndef SYSTOLE_PROTO_FRAMING_GRPC_LOG_H_
#define SYSTOLE_PROTO_FRAMING_GRPC_LOG_H_

#include "absl/strings/string_view.h"

namespace systole {

// Called with one log message of gRPC, on any thread. The message may hold any text.
using GrpcLogSink = void (*)(absl::string_view message);

// From now on gRPC's log messages go to `sink`, which must not call gRPC.
void RedirectGrpcLog(GrpcLogSink sink);

// From now on gRPC's log messages are dropped, except if the environment variable GRPC_VERBOSITY is
// set and not empty.
void SilenceGrpcLog();

}  // namespace systole

#endif  // SYSTOLE_PROTO_FRAMING_GRPC_LOG_H_
