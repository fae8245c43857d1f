#include "client/schedule/failure.h"

#include <algorithm>

namespace systole {
namespace {

FailureKind KindOf(absl::StatusCode code, bool has_pushback) {
  switch (code) {
    case absl::StatusCode::kUnavailable:
    case absl::StatusCode::kDeadlineExceeded:
      return FailureKind::kLost;
    case absl::StatusCode::kResourceExhausted:  // A full server says when it may have room.
      return has_pushback ? FailureKind::kLost : FailureKind::kFinal;
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

Failure FailureOf(absl::StatusCode code, std::optional<absl::Duration> pushback) {
  return {.kind = KindOf(code, pushback.has_value()),
          .pushback = std::clamp(pushback.value_or(absl::ZeroDuration()), absl::ZeroDuration(),
                                 kMaxPushback)};
}

}  // namespace systole
