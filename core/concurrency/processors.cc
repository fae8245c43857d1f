#include "core/concurrency/processors.h"

#include <sched.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "core/concurrency/kernel_text.h"

namespace systole {
namespace {

// "max 100000" or "150000 100000": microseconds of processor time in each period, and the period.
std::optional<double> QuotaIn(absl::string_view cpu_max) {
  const std::vector<absl::string_view> fields =
      absl::StrSplit(absl::StripAsciiWhitespace(cpu_max), ' ');
  double quota_us = 0;
  double period_us = 0;
  if (fields.size() != 2 || !absl::SimpleAtod(fields[0], &quota_us) ||
      !absl::SimpleAtod(fields[1], &period_us)) {
    return std::nullopt;  // "max" is not a number.
  }
  if (!(quota_us > 0 && period_us > 0)) return std::nullopt;
  return quota_us / period_us;
}

}  // namespace

std::optional<double> ProcessorQuota(const std::string& cgroup_root, absl::string_view own_groups) {
  std::optional<double> least;
  for (absl::string_view line : absl::StrSplit(own_groups, '\n')) {
    // The line for version 2 of control groups is "0::/PATH". Lines for version 1 have names
    // between the colons.
    if (!absl::ConsumePrefix(&line, "0::/") || absl::StrContains(line, "..")) continue;
    while (true) {
      const std::optional<double> quota =
          QuotaIn(KernelText(absl::StrCat(cgroup_root, "/", line, "/cpu.max")));
      if (quota.has_value()) least = std::min(least.value_or(*quota), *quota);
      if (line.empty()) break;
      const size_t slash = line.rfind('/');
      line = line.substr(0, slash == absl::string_view::npos ? 0 : slash);
    }
  }
  return least;
}

int UsableProcessors() {
  cpu_set_t allowed;
  int processors = 1;
  if (sched_getaffinity(0, sizeof(allowed), &allowed) == 0) {
    processors = std::max(1, CPU_COUNT(&allowed));
  }
  const std::optional<double> quota =
      ProcessorQuota("/sys/fs/cgroup", KernelText("/proc/self/cgroup"));
  if (!quota.has_value()) return processors;
  return std::max(1, static_cast<int>(std::min<double>(processors, std::ceil(*quota))));
}

}  // namespace systole
