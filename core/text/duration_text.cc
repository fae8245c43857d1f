#include "core/text/duration_text.h"

#include <string>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace systole {

std::optional<absl::Duration> ParseDurationText(absl::string_view text) {
  absl::Duration duration;
  if (double seconds; absl::SimpleAtod(text, &seconds)) {
    duration = absl::Seconds(seconds);  // NaN becomes infinite, so it is refused below.
  } else if (!absl::ParseDuration(text, &duration)) {
    return std::nullopt;
  }
  if (duration == absl::InfiniteDuration() || duration == -absl::InfiniteDuration()) {
    return std::nullopt;
  }
  return duration;
}

absl::Status CheckDuration(absl::string_view option, absl::Duration duration, absl::Duration least,
                           absl::Duration most) {
  if (least <= duration && duration <= most) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(option, " is ", absl::FormatDuration(duration),
                                                 ", want ", absl::FormatDuration(least), " to ",
                                                 absl::FormatDuration(most)));
}

}  // namespace systole
