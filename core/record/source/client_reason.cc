#include "core/record/source/client_reason.h"

#include "absl/strings/cord.h"
#include "absl/strings/str_cat.h"
#include "absl/types/optional.h"

namespace systole {
namespace {

// The payload of an error that holds the reason.
constexpr char kReasonUrl[] = "systole/reason-for-clients";

}  // namespace

absl::Status WithClientReason(absl::Status error, absl::string_view reason) {
  error.SetPayload(kReasonUrl, absl::Cord(reason));
  return error;
}

absl::Status WithLogAsReason(const absl::Status& error, absl::string_view what_cannot_be_done) {
  return WithClientReason(
      error, absl::StrCat(what_cannot_be_done, " (", absl::StatusCodeToString(error.code()),
                          "); the server's log says why"));
}

bool HasClientReason(const absl::Status& error) { return error.GetPayload(kReasonUrl).has_value(); }

std::string ReasonForClients(const absl::Status& error) {
  const absl::optional<absl::Cord> reason = error.GetPayload(kReasonUrl);
  return reason.has_value() ? std::string(*reason) : std::string(error.message());
}

}  // namespace systole
