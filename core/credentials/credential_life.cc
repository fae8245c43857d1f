#include "core/credentials/credential_life.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace systole {
namespace {

constexpr absl::Duration kLongestLife = absl::Hours(24 * 365);

absl::StatusOr<absl::Duration> Bounded(absl::Duration life, absl::string_view source) {
  if (life <= absl::ZeroDuration()) {
    return absl::UnavailableError(absl::StrCat(
        source,
        " has credentials that have ended already; check this machine's clock, and what "
        "renews them"));
  }
  return std::min(life, kLongestLife);
}

}  // namespace

absl::StatusOr<absl::Duration> LifeUntil(absl::string_view date, absl::Time now,
                                         absl::string_view source) {
  absl::Time end;
  if (date.size() > 40 || !absl::ParseTime(absl::RFC3339_full, std::string(date), &end, nullptr) ||
      end == absl::InfiniteFuture() || end == absl::InfinitePast()) {
    return absl::DataLossError(
        absl::StrCat(source, " has an expiry date that cannot be read; want 2026-01-31T23:59:59Z"));
  }
  return Bounded(end - now, source);
}

absl::StatusOr<absl::Duration> LifeOfSeconds(double seconds, absl::string_view source) {
  if (!std::isfinite(seconds)) {
    return absl::DataLossError(absl::StrCat(
        source, " is valid for an infinite or undefined number of seconds; want a finite number"));
  }
  return Bounded(absl::Seconds(seconds), source);
}

}  // namespace systole
