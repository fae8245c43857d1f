#include "client/emulator/array/numerics.h"

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace systole::emulator {

absl::string_view NumericsName(Numerics numerics) {
  return numerics == Numerics::kFast ? "fast" : "exact";
}

absl::StatusOr<Numerics> ParseNumerics(absl::string_view name) {
  for (const Numerics numerics : {Numerics::kExact, Numerics::kFast}) {
    if (name == NumericsName(numerics)) return numerics;
  }
  return absl::InvalidArgumentError(absl::StrCat("--numerics '", name, "': want exact or fast"));
}

}  // namespace systole::emulator
