// Times as people write them on a command line.
//
// Thread-safe: no state.
#ifndef SYSTOLE_CORE_TEXT_DURATION_TEXT_H_
#define SYSTOLE_CORE_TEXT_DURATION_TEXT_H_

#include <optional>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace systole {

// A sentence for the help of options that take a time.
inline constexpr char kDurationText[] =
    "TIME is a time such as 3s, 500ms or 1m30s; a plain number is seconds.";

// The time that `text` means, in the form of kDurationText; nullopt for any other text. The time is
// finite, and may be 0 or negative.
std::optional<absl::Duration> ParseDurationText(absl::string_view text);

// InvalidArgument, with both bounds, unless least <= duration <= most. `option` is "--some-option".
absl::Status CheckDuration(absl::string_view option, absl::Duration duration, absl::Duration least,
                           absl::Duration most);

}  // namespace systole

#endif  // SYSTOLE_CORE_TEXT_DURATION_TEXT_H_
