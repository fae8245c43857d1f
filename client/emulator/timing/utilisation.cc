#include "client/emulator/timing/utilisation.h"

#include <algorithm>

namespace systole::emulator {

absl::string_view InfeedVerdict(double infeed_fraction) {
  if (infeed_fraction >= kHighlyInputBound) return "highly input-bound";
  if (infeed_fraction >= kModeratelyInputBound) return "moderately input-bound";
  return "not input-bound";
}

absl::string_view AuVerdict(double au) {
  if (au >= kHighAu) return "at least 90 %";
  if (au >= kLowAu) return "at least 70 %";
  return "below 70 %";
}

void UtilisationMeter::Add(const StepRecord& record) {
  sums_.cores.resize(record.infeed_stall.size());
  if (first_) {
    first_ = false;
    return;
  }
  for (size_t core = 0; core < sums_.cores.size(); ++core) {
    sums_.cores[core].infeed_stall += record.infeed_stall[core];
    sums_.cores[core].barrier += record.barrier(static_cast<int>(core));
  }
  sums_.compute += record.compute;
  sums_.total += record.duration();
  sums_.overhead += record.overhead;
  const double infeed = absl::FDivDuration(record.max_infeed_stall(), record.duration());
  infeed_.average += infeed;
  infeed_.min = sums_.steps == 0 ? infeed : std::min(infeed_.min, infeed);
  infeed_.max = std::max(infeed_.max, infeed);
  ++sums_.steps;
}

void UtilisationMeter::AddOpenWait(absl::Duration wait) {
  if (first_) return;
  sums_.open_wait += wait;
  sums_.total += wait;
}

Utilisation UtilisationMeter::result() const {
  Utilisation result = sums_;
  if (result.total > absl::ZeroDuration()) {
    result.au = absl::FDivDuration(result.compute, result.total);
  }
  if (result.steps == 0) return result;
  result.infeed = infeed_;
  result.infeed->average /= static_cast<double>(result.steps);
  return result;
}

}  // namespace systole::emulator
