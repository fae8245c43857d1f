#include "core/credentials/credential_surroundings.h"

#include <cstdint>
#include <cstdlib>

#include "absl/strings/str_cat.h"
#include "core/random/process_draws.h"

namespace systole {
namespace {

// Tells that a draw is for core/credentials.
constexpr uint32_t kPurpose = 0x6b657973;

}  // namespace

std::string VariableOfProcess(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? "" : value;
}

CredentialSurroundings WithDraws(CredentialSurroundings given) {
  if (given.draw == nullptr) {
    given.draw =
        DrawsOfProcess(static_cast<uint64_t>(absl::ToInt64Nanoseconds(given.now())), kPurpose);
  }
  return given;
}

absl::StatusOr<bool> IsSwitchedOn(const CredentialSurroundings& surroundings,
                                  const char* variable) {
  const std::string value = surroundings.variable(variable);
  if (value.empty() || value == "0") return false;
  if (value == "1") return true;
  return absl::FailedPreconditionError(
      absl::StrCat(variable, " is neither 1 nor 0; set it to 1, or unset it"));
}

}  // namespace systole
