// Reads from an answer how long credentials are valid.
//
// Thread-safe: no state.
#ifndef SYSTOLE_CORE_CREDENTIALS_CREDENTIAL_LIFE_H_
#define SYSTOLE_CORE_CREDENTIALS_CREDENTIAL_LIFE_H_

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace systole {

// The time from `now` until `date`, such as 2026-05-17T15:09:54Z. It is more than 0 and at most a
// year. `source` says in messages what was read.
//   DataLoss     `date` is not a date.
//   Unavailable  the date has passed.
absl::StatusOr<absl::Duration> LifeUntil(absl::string_view date, absl::Time now,
                                         absl::string_view source);

// A life of `seconds` seconds, with the same bounds and errors.
absl::StatusOr<absl::Duration> LifeOfSeconds(double seconds, absl::string_view source);

}  // namespace systole

#endif  // SYSTOLE_CORE_CREDENTIALS_CREDENTIAL_LIFE_H_
