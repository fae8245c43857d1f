#include "client/schedule/failure.h"

#include <algorithm>

namespace systole {
namespace {

FailureKind KindOf(absl::StatusCode code, bool has_pushback, bool running) {
  switch (code) {
    case absl::StatusCode::kUnavailable:
    case absl::StatusCode::kDeadlineExceeded:
      return FailureKind::kLost;
    // A full server says when it may have room. Without that a message was too large, as one is
    // whose length was damaged.
    case absl::StatusCode::kResourceExhausted:
      if (has_pushback) return FailureKind::kLost;
      return running ? FailureKind::kSuspect : FailureKind::kFinal;
    // So gRPC says that the path of a request was damaged; and a proxy in front of a server that is
    // about to come back. The token may have been damaged, or be on its way into its file.
    case absl::StatusCode::kUnimplemented:
    case absl::StatusCode::kUnauthenticated:
    case absl::StatusCode::kPermissionDenied:
      return running ? FailureKind::kSuspect : FailureKind::kFinal;
    case absl::StatusCode::kCancelled:  // RST_STREAM, whatever its reason.
    case absl::StatusCode::kInternal:
    case absl::StatusCode::kUnknown:
      return FailureKind::kSuspect;
    case absl::StatusCode::kAborted:  // So a server says that the request was (service.proto).
      return FailureKind::kDamaged;
    default:
      return FailureKind::kFinal;
  }
}

}  // namespace

Failure FailureOf(absl::StatusCode code, std::optional<absl::Duration> pushback, bool running) {
  return {.kind = KindOf(code, pushback.has_value(), running),
          .pushback = std::clamp(pushback.value_or(absl::ZeroDuration()), absl::ZeroDuration(),
                                 kMaxPushback)};
}

}  // namespace systole
