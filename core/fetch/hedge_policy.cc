#include "core/fetch/hedge_policy.h"

#include <algorithm>
#include <bit>

namespace systole {
namespace {

int SizeClass(uint64_t size) { return static_cast<int>(std::bit_width(size)); }

}  // namespace

void HedgePolicy::Add(uint64_t size, absl::Duration took) {
  ++reads_;
  Recent& recent = by_size_[SizeClass(size)];
  if (recent.took.size() < kRemembered) {
    recent.took.push_back(took);
    return;
  }
  recent.took[recent.next] = took;
  recent.next = (recent.next + 1) % kRemembered;
}

bool HedgePolicy::IsSlow(uint64_t size, absl::Duration taken) const {
  if (taken < kLeast) return false;
  const auto recent = by_size_.find(SizeClass(size));
  if (recent == by_size_.end() || recent->second.took.size() < kFewest) return false;
  std::vector<absl::Duration> took = recent->second.took;
  const auto nearly_all = took.begin() + static_cast<std::ptrdiff_t>(took.size() * 95 / 100);
  std::nth_element(took.begin(), nearly_all, took.end());
  return taken > 2 * *nearly_all;
}

}  // namespace systole
