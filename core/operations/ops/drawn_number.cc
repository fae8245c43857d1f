#include "core/operations/ops/drawn_number.h"

#include <cmath>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace systole {

absl::StatusOr<DrawnNumber> DrawnNumber::Create(const Draws& draws, const NumberBounds& bounds) {
  // This form of the condition also refuses NaN.
  if (bounds.least <= bounds.min && bounds.min <= bounds.max && bounds.max <= bounds.most &&
      std::isfinite(bounds.max - bounds.min)) {
    return DrawnNumber(draws, bounds.min, bounds.max);
  }
  const bool has_least = bounds.least > std::numeric_limits<float>::lowest();
  const bool has_most = bounds.most < std::numeric_limits<float>::max();
  return absl::InvalidArgumentError(absl::StrCat(
      "has ", bounds.name, "_min: ", bounds.min, " and ", bounds.name, "_max: ", bounds.max,
      ", want finite numbers", has_least ? absl::StrCat(" of ", bounds.least, " or more") : "",
      has_most ? absl::StrCat(" and ", bounds.most, " or less") : "", ", the smaller one first"));
}

}  // namespace systole
