#include "server/streams/trouble.h"

#include <string>

#include "absl/strings/cord.h"
#include "absl/types/optional.h"

namespace systole {
namespace {

constexpr char kMark[] = "systole/trouble";

}  // namespace

absl::Status MarkedAs(Trouble trouble, absl::Status status) {
  status.SetPayload(kMark, absl::Cord(std::string(1, static_cast<char>(trouble))));
  return status;
}

Trouble TroubleOf(const absl::Status& status) {
  const absl::optional<absl::Cord> mark = status.GetPayload(kMark);
  if (mark.has_value()) return static_cast<Trouble>((*mark)[0]);
  switch (status.code()) {
    case absl::StatusCode::kOk:
      return Trouble::kNone;
    case absl::StatusCode::kUnauthenticated:
      return Trouble::kUnauthenticated;
    case absl::StatusCode::kPermissionDenied:
      return Trouble::kNotPermitted;
    case absl::StatusCode::kCancelled:
      return Trouble::kClientGone;
    case absl::StatusCode::kInvalidArgument:
    case absl::StatusCode::kNotFound:
    case absl::StatusCode::kFailedPrecondition:
    case absl::StatusCode::kOutOfRange:
    case absl::StatusCode::kResourceExhausted:
    case absl::StatusCode::kAborted:  // Damaged on the way.
      return Trouble::kBadRequest;
    default:
      return Trouble::kFailed;
  }
}

}  // namespace systole
