// Converts absl::Status to grpc::Status and back. Their codes are the same numbers.
//
// Thread-safe: no state.
#ifndef SYSTOLE_PROTO_FRAMING_STATUS_BRIDGE_H_
#define SYSTOLE_PROTO_FRAMING_STATUS_BRIDGE_H_

#include "absl/status/status.h"
#include "grpcpp/support/status.h"

namespace systole {

// Messages longer than kMaxStatusMessageBytes are cut, because they travel in a header of limited
// size.
grpc::Status ToGrpcStatus(const absl::Status& status);
// The peer's message is escaped and cut (core/text/foreign_text.h), so that it is safe to print. If
// the message is empty, it becomes the name of the code.
absl::Status FromGrpcStatus(const grpc::Status& status);

inline constexpr int kMaxStatusMessageBytes = 2048;

}  // namespace systole

#endif  // SYSTOLE_PROTO_FRAMING_STATUS_BRIDGE_H_
