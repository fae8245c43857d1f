#include "client/emulator/chip/all_reduce_model.h"

#include <algorithm>
#include <cmath>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "core/status/status_macros.h"

namespace systole::emulator {
namespace {

constexpr int64_t kMostChipsOfAxis = int64_t{1} << 20;
constexpr size_t kMostAxes = 3;

absl::Status CheckAxes(const std::vector<TorusAxis>& axes) {
  if (axes.empty() || axes.size() > kMostAxes) {
    return absl::InvalidArgumentError(
        absl::StrCat("AllReduceShape.axes has ", axes.size(), " axes, want 1 to ", kMostAxes));
  }
  for (size_t i = 0; i < axes.size(); ++i) {
    if (axes[i].chips >= 1 && axes[i].chips <= kMostChipsOfAxis) continue;
    return absl::InvalidArgumentError(absl::StrCat(
        "AllReduceShape.axes[", i, "].chips is ", axes[i].chips, ", want 1 to ", kMostChipsOfAxis));
  }
  return absl::OkStatus();
}

absl::Status CheckNumber(absl::string_view field, double value, bool zero_allowed) {
  if (std::isfinite(value) && (value > 0 || (zero_allowed && value == 0))) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("AllReduceShape.", field, " is ", value, ", want ",
                                                 zero_allowed ? "0 or more" : "more than 0"));
}

// The seconds that the reduce-scatters (or all-gathers) take. The buffer is cut into `parts` parts,
// and each part starts with a different axis.
double ScatterSeconds(const AllReduceShape& shape, const std::vector<TorusAxis>& axes,
                      size_t parts) {
  double seconds = 0;
  std::vector<double> bytes(parts, shape.bytes / static_cast<double>(parts));
  for (size_t phase = 0; phase < axes.size(); ++phase) {
    double slowest = 0;
    for (size_t part = 0; part < parts; ++part) {
      const TorusAxis& axis = axes[(part + phase) % axes.size()];
      const auto n = static_cast<double>(axis.chips);
      const double bytes_per_s = (axis.ring ? 2 : 1) * shape.link_bytes_per_s;
      slowest = std::max(slowest, (n - 1) / n * bytes[part] / bytes_per_s);
      bytes[part] /= n;
    }
    seconds += slowest;
  }
  return seconds;
}

}  // namespace

absl::StatusOr<double> AllReduceSeconds(const AllReduceShape& shape) {
  SYSTOLE_RETURN_IF_ERROR(CheckAxes(shape.axes));
  SYSTOLE_RETURN_IF_ERROR(CheckNumber("bytes", shape.bytes, /*zero_allowed=*/true));
  SYSTOLE_RETURN_IF_ERROR(
      CheckNumber("link_bytes_per_s", shape.link_bytes_per_s, /*zero_allowed=*/false));
  SYSTOLE_RETURN_IF_ERROR(CheckNumber("hop_s", shape.hop_s, /*zero_allowed=*/true));
  std::vector<TorusAxis> axes;
  double hops = 0;
  for (const TorusAxis& axis : shape.axes) {
    if (axis.chips == 1) continue;  // An axis of one chip has no link.
    axes.push_back(axis);
    hops += static_cast<double>(axis.chips - 1);
  }
  if (axes.empty()) return 0.0;
  const size_t parts = shape.order == AllReduceOrder::kAllAxes ? axes.size() : 1;
  return 2 * ScatterSeconds(shape, axes, parts) + 2 * hops * shape.hop_s;
}

}  // namespace systole::emulator
