// The text of an error that clients may see. The error's message is for the person who named the
// files, and may name folders of this machine and servers of shards.
//
// Thread-safe: no state.
#ifndef SYSTOLE_CORE_RECORD_SOURCE_CLIENT_REASON_H_
#define SYSTOLE_CORE_RECORD_SOURCE_CLIENT_REASON_H_

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace systole {

// `error`, with `reason` as the text that clients see instead of the error's message.
absl::Status WithClientReason(absl::Status error, absl::string_view reason);

// `error`, with a text for clients. The text says what cannot be done, and gives the error's code,
// as in `the image "rose/1.jpg" cannot be read (NOT_FOUND); the server's log says why`.
absl::Status WithLogAsReason(const absl::Status& error, absl::string_view what_cannot_be_done);

bool HasClientReason(const absl::Status& error);

// The text of `error` that clients may see: its reason for clients or, without one, its message.
std::string ReasonForClients(const absl::Status& error);

}  // namespace systole

#endif  // SYSTOLE_CORE_RECORD_SOURCE_CLIENT_REASON_H_
