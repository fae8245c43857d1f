// How well the cores were used over a run's steps. The first step is left out, because it waits for
// connections and for the pipeline to fill.
//
// * AU (accelerator utilization) is defined as in MLPerf Storage: compute time / total time. A run
//   of MLPerf Storage passes at 90 % (ResNet-50, UNet3D) or 70 % (CosmoFlow).
// * The infeed fraction is defined as in the TPU profiler (xprof): a step's infeed stall / the
//   step's duration, for the core that stalled longest. Below 5 % a step is not input-bound. From 5
//   % on it is moderately input-bound, and from 20 % on highly input-bound.
//
// Thread-compatible.
#ifndef SYSTOLE_CLIENT_EMULATOR_TIMING_UTILISATION_H_
#define SYSTOLE_CLIENT_EMULATOR_TIMING_UTILISATION_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "client/emulator/timing/step_record.h"

namespace systole::emulator {

inline constexpr double kHighAu = 0.9;
inline constexpr double kLowAu = 0.7;
inline constexpr double kModeratelyInputBound = 0.05;
inline constexpr double kHighlyInputBound = 0.2;

// "not input-bound", "moderately input-bound" or "highly input-bound".
absl::string_view InfeedVerdict(double infeed_fraction);
// "at least 90 %", "at least 70 %" or "below 70 %".
absl::string_view AuVerdict(double au);

struct CoreBooks {
  absl::Duration infeed_stall;
  absl::Duration barrier;
};

// The infeed fraction over the counted steps. Each number is in [0, 1].
struct InfeedFraction {
  double average = 0;
  double min = 0;
  double max = 0;
};

struct Utilisation {
  int64_t steps = 0;       // The counted steps: all but the first.
  absl::Duration compute;  // Of one core. All cores compute for the same time.
  absl::Duration total;    // compute + waits + open_wait.
  // The wait that the end of the run cut short. It is not known which core's slice was missing, so
  // the wait is in no core's books.
  absl::Duration open_wait;
  absl::Duration overhead;  // The emulator's, not in `total`.
  std::vector<CoreBooks> cores;

  // nullopt if no time was counted, because the AU is then unknown and not 0.
  std::optional<double> au;
  std::optional<InfeedFraction> infeed;
};

class UtilisationMeter {
 public:
  void Add(const StepRecord& record);
  // Records that the run ended while the cores were waiting for a step. `wait` is how long they had
  // waited. The wait does not count if no step has come yet.
  void AddOpenWait(absl::Duration wait);
  Utilisation result() const;

 private:
  bool first_ = true;
  Utilisation sums_;       // Without au and infeed.
  InfeedFraction infeed_;  // `average` holds the sum.
};

}  // namespace systole::emulator

#endif  // SYSTOLE_CLIENT_EMULATOR_TIMING_UTILISATION_H_
