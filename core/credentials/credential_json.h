// Reads the JSON of key files, and of services that give credentials.
//
// Thread-safe: no state.
#ifndef SYSTOLE_CORE_CREDENTIALS_CREDENTIAL_JSON_H_
#define SYSTOLE_CORE_CREDENTIALS_CREDENTIAL_JSON_H_

#include <cstddef>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "google/protobuf/message.h"

namespace systole {

// The most bytes of an answer or of a key file. Usually they have a few KiB.
inline constexpr size_t kMaxJsonBytes = size_t{64} << 10;

// Reads `text` as a message of proto/systole/v1/credentials.proto. `source` says in messages what
// was read.
//   DataLoss           not a JSON object, or its fields have wrong types. The message does not
//                      quote the text, because it may be a secret.
//   ResourceExhausted  more than kMaxJsonBytes.
absl::Status ParseCredentialJson(absl::string_view text, absl::string_view source,
                                 google::protobuf::Message& message);

}  // namespace systole

#endif  // SYSTOLE_CORE_CREDENTIALS_CREDENTIAL_JSON_H_
