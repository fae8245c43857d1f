#include "client/feed/lane_retry.h"

#include <algorithm>

namespace systole {

FailureKind KindOf(absl::StatusCode code) {
  switch (code) {
    case absl::StatusCode::kUnavailable:
    case absl::StatusCode::kDeadlineExceeded:
      return FailureKind::kLost;
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

void LaneRetry::Progress() {
  failing_since_.reset();
  failures_ = 0;
  suspect_ = 0;
  damaged_ = 0;
}

std::optional<absl::Duration> LaneRetry::Failed(FailureKind kind, absl::Duration now,
                                                absl::Duration limit) {
  ++failures_;
  if (kind == FailureKind::kFinal) return std::nullopt;
  if (kind == FailureKind::kSuspect && ++suspect_ >= kMaxSuspectFailures) return std::nullopt;
  if (kind == FailureKind::kDamaged && ++damaged_ >= kMaxDamagedFailures) return std::nullopt;
  if (!failing_since_.has_value()) failing_since_ = now;
  const absl::Duration left = *failing_since_ + limit - now;
  if (left <= absl::ZeroDuration()) return std::nullopt;
  if (failures_ < options_.servers) return absl::ZeroDuration();
  // The doubling stops early enough not to overflow whatever the options say.
  const int doublings = std::min(failures_ - options_.servers, 20);
  return std::min({options_.backoff * (int64_t{1} << doublings), options_.max_backoff, left});
}

}  // namespace systole
