#include "client/emulator/chip/all_reduce_model.h"

#include <algorithm>
#include <cmath>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "core/status/status_macros.h"

namespace systole::emulator {
namespace {

constexpr int64_t kMostChips = int64_t{1} << 20;

absl::Status CheckChips(absl::string_view field, int64_t value) {
  if (value >= 1 && value <= kMostChips) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("AllReduceShape.", field, " is ", value, ", want 1 to ", kMostChips, " chips"));
}

absl::Status CheckNumber(absl::string_view field, double value, bool zero_allowed) {
  if (std::isfinite(value) && (value > 0 || (zero_allowed && value == 0))) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("AllReduceShape.", field, " is ", value, ", want ",
                                                 zero_allowed ? "0 or more" : "more than 0"));
}

// Seconds of a reduce-scatter (or all-gather) of `bytes` over the `chips` of one dimension.
double Scatter(int64_t chips, double bytes, double bytes_per_s) {
  const auto n = static_cast<double>(chips);
  return (n - 1) / n * bytes / bytes_per_s;
}

}  // namespace

absl::StatusOr<double> AllReduceSeconds(const AllReduceShape& shape) {
  SYSTOLE_RETURN_IF_ERROR(CheckChips("x", shape.x));
  SYSTOLE_RETURN_IF_ERROR(CheckChips("y", shape.y));
  SYSTOLE_RETURN_IF_ERROR(CheckNumber("bytes", shape.bytes, /*zero_allowed=*/true));
  SYSTOLE_RETURN_IF_ERROR(
      CheckNumber("link_bytes_per_s", shape.link_bytes_per_s, /*zero_allowed=*/false));
  SYSTOLE_RETURN_IF_ERROR(CheckNumber("hop_s", shape.hop_s, /*zero_allowed=*/true));
  const double b = (shape.wraparound ? 2 : 1) * shape.link_bytes_per_s;
  const auto x = static_cast<double>(shape.x), y = static_cast<double>(shape.y);
  double one_way = 0;
  switch (shape.order) {
    case AllReduceOrder::kOneOrder:
      one_way = Scatter(shape.x, shape.bytes, b) + Scatter(shape.y, shape.bytes / x, b);
      break;
    case AllReduceOrder::kBothDimensions: {
      const double half = shape.bytes / 2;
      one_way = std::max(Scatter(shape.x, half, b), Scatter(shape.y, half, b)) +
                std::max(Scatter(shape.y, half / x, b), Scatter(shape.x, half / y, b));
      break;
    }
  }
  return 2 * one_way + 2 * (x - 1 + y - 1) * shape.hop_s;
}

}  // namespace systole::emulator
