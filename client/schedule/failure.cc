#include "client/schedule/failure.h"

#include <algorithm>

namespace systole {
namespace {

FailureKind KindOf(absl::StatusCode code, bool has_pushback, bool running) {
  switch (code) {
    case absl::StatusCode::kUnavailable:
    case absl::StatusCode::kDeadlineExceeded:
      return FailureKind::kLost;
    // A full server gives a pushback: when to try again. If there is no pushback, a message was too
    // large, or its length was damaged on the way.
    case absl::StatusCode::kResourceExhausted:
      if (has_pushback) return FailureKind::kLost;
      return running ? FailureKind::kSuspect : FailureKind::kFinal;
    // gRPC answers kUnimplemented if the path of a request was damaged, and a proxy answers it if
    // its server is about to come back. kUnauthenticated and kPermissionDenied may mean that the
    // token was damaged on the way, or that the token's file is half written.
    case absl::StatusCode::kUnimplemented:
    case absl::StatusCode::kUnauthenticated:
    case absl::StatusCode::kPermissionDenied:
      return running ? FailureKind::kSuspect : FailureKind::kFinal;
    case absl::StatusCode::kCancelled:  // The stream was reset (RST_STREAM), for any reason.
    case absl::StatusCode::kInternal:
    case absl::StatusCode::kUnknown:
      return FailureKind::kSuspect;
    case absl::StatusCode::kAborted:  // The request was damaged (service.proto).
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
