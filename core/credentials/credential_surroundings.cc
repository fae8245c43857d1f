#include "core/credentials/credential_surroundings.h"

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "core/credentials/credential_file.h"
#include "core/random/process_draws.h"

namespace systole {
namespace {

// Makes the random numbers of core/credentials differ from random numbers for other purposes.
constexpr uint32_t kPurpose = 0x6b657973;

}  // namespace

std::string VariableOfProcess(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? "" : value;
}

std::string FactOfMachine(const char* name) {
  constexpr size_t kMaxFactBytes = 4096;
  absl::StatusOr<std::string> fact = ReadCredentialFile(absl::StrCat("/sys/class/dmi/id/", name),
                                                        "the firmware's file", kMaxFactBytes);
  return fact.ok() ? *std::move(fact) : "";
}

bool IsMachineOfOther(const CredentialSurroundings& surroundings, absl::string_view maker) {
  // On an older machine of EC2 the vendor is "Xen", and the firmware's version is "4.11.amazon".
  bool is_known = false;
  for (const char* name : {"sys_vendor", "bios_vendor", "bios_version"}) {
    const std::string fact = absl::AsciiStrToLower(surroundings.machine_fact(name));
    if (absl::StrContains(fact, maker)) return false;
    is_known = is_known || !absl::StripAsciiWhitespace(fact).empty();
  }
  return is_known;
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
