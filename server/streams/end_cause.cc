#include "server/streams/end_cause.h"

#include <string>

#include "absl/strings/cord.h"
#include "absl/types/optional.h"

namespace systole {
namespace {

constexpr char kMark[] = "systole/end_cause";

}  // namespace

absl::Status MarkedAs(EndCause cause, absl::Status status) {
  status.SetPayload(kMark, absl::Cord(std::string(1, static_cast<char>(cause))));
  return status;
}

EndCause EndCauseOf(const absl::Status& status) {
  const absl::optional<absl::Cord> mark = status.GetPayload(kMark);
  if (mark.has_value()) return static_cast<EndCause>((*mark)[0]);
  switch (status.code()) {
    case absl::StatusCode::kOk:
      return EndCause::kNone;
    case absl::StatusCode::kUnauthenticated:
      return EndCause::kUnauthenticated;
    case absl::StatusCode::kPermissionDenied:
      return EndCause::kNotPermitted;
    case absl::StatusCode::kCancelled:
      return EndCause::kClientGone;
    case absl::StatusCode::kInvalidArgument:
    case absl::StatusCode::kNotFound:
    case absl::StatusCode::kFailedPrecondition:
    case absl::StatusCode::kOutOfRange:
    case absl::StatusCode::kResourceExhausted:
    case absl::StatusCode::kAborted:  // The request was damaged on its way.
      return EndCause::kBadRequest;
    default:
      return EndCause::kFailed;
  }
}

}  // namespace systole
