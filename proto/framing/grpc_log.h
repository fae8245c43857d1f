// gRPC's own log lines, which it writes to stderr: they stand before our error for the same thing,
// and hold header values of a peer as they came.
//
// Thread-safe.
#ifndef SYSTOLE_PROTO_FRAMING_GRPC_LOG_H_
#define SYSTOLE_PROTO_FRAMING_GRPC_LOG_H_

#include "absl/strings/string_view.h"

namespace systole {

// One message of gRPC's, in any thread. May hold anything.
using GrpcLogSink = void (*)(absl::string_view message);

// From now on gRPC's messages go to `sink`, which must not call gRPC.
void RedirectGrpcLog(GrpcLogSink sink);

// From now on nobody gets them, unless the environment asks for them by GRPC_VERBOSITY.
void SilenceGrpcLog();

}  // namespace systole

#endif  // SYSTOLE_PROTO_FRAMING_GRPC_LOG_H_
