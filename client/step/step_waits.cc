#include "client/step/step_waits.h"

#include <algorithm>

namespace systole {

void StepWaits::Add(absl::Duration waited) {
  const double seconds = std::max(0.0, absl::ToDoubleSeconds(waited));
  const auto* const bound = std::lower_bound(kBounds.begin(), kBounds.end(), seconds);
  ++counts_[static_cast<size_t>(bound - kBounds.begin())];
  seconds_ += seconds;
}

HistogramReading StepWaits::Read() const {
  return {.bounds = {kBounds.begin(), kBounds.end()},
          .counts = {counts_.begin(), counts_.end()},
          .sum = seconds_};
}

}  // namespace systole
