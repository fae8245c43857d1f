#include "core/numeric/simd_target.h"

#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "hwy/highway.h"

namespace systole {
namespace {

constexpr int64_t kPortable = HWY_SCALAR | HWY_EMU128;

struct Target {
  std::string name;
  int64_t bits;  // For hwy::SetSupportedTargetsForTest().
};

// Best first. Lower bits are better targets. The portable target is always there. The installed
// Highway may call the portable target SCALAR or EMU128.
std::vector<Target> Targets(int64_t supported) {
  std::vector<Target> targets;
  for (int64_t rest = supported & HWY_TARGETS & ~kPortable; rest != 0; rest &= rest - 1) {
    const int64_t bit = rest & -rest;
    targets.push_back({hwy::TargetName(bit), bit});
  }
  if (const int64_t portable = HWY_TARGETS & kPortable; portable != 0) {
    targets.push_back({hwy::TargetName(portable), kPortable});
  }
  return targets;
}

// The targets that this CPU has, whatever target is forced now.
std::vector<Target> AllTargets() {
  const int64_t forced = hwy::SupportedTargets();
  hwy::SetSupportedTargetsForTest(0);
  const int64_t all = hwy::SupportedTargets();
  if (forced != all) hwy::SetSupportedTargetsForTest(forced);
  return Targets(all);
}

bool IsPortable(absl::string_view name) { return name == "SCALAR" || name == "EMU128"; }

}  // namespace

std::vector<std::string> SupportedSimdTargets() {
  std::vector<std::string> names;
  for (const Target& target : AllTargets()) names.push_back(target.name);
  return names;
}

std::string CurrentSimdTarget() { return Targets(hwy::SupportedTargets()).front().name; }

absl::Status ForceSimdTarget(absl::string_view name) {
  if (name.empty()) {
    hwy::SetSupportedTargetsForTest(0);
    return absl::OkStatus();
  }
  for (const Target& target : AllTargets()) {
    if (target.name == name || (IsPortable(target.name) && IsPortable(name))) {
      hwy::SetSupportedTargetsForTest(target.bits);
      return absl::OkStatus();
    }
  }
  return absl::InvalidArgumentError(
      absl::StrCat("SIMD target \"", name, "\" is not available; this program on this CPU has ",
                   absl::StrJoin(SupportedSimdTargets(), ", ")));
}

absl::Status ForceSimdTargetFromEnvironment() {
  const char* value = std::getenv(kSimdTargetVariable);
  if (value == nullptr || *value == '\0') return absl::OkStatus();
  const absl::Status status = ForceSimdTarget(value);
  if (status.ok()) return status;
  return absl::Status(status.code(), absl::StrCat("environment variable ", kSimdTargetVariable,
                                                  ": ", status.message()));
}

}  // namespace systole
