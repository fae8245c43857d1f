#include "core/engine/stage_totals.h"

namespace systole {
namespace {

// A trainer notices waits of a millisecond and more. If a wait is longer than the last bound, the
// client has already left the server.
constexpr double kStepWaitBounds[] = {0,   0.0001, 0.0003, 0.001, 0.003, 0.01, 0.03,
                                      0.1, 0.3,    1,      3,     10,    30,   100};

void AddTo(std::atomic<double>& seconds, absl::Duration time) {
  if (time == absl::ZeroDuration()) return;
  seconds.fetch_add(absl::ToDoubleSeconds(time), std::memory_order_relaxed);
}

absl::Duration TimeOf(const std::atomic<double>& seconds) {
  return absl::Seconds(seconds.load(std::memory_order_relaxed));
}

}  // namespace

StageTotals::StageTotals() : step_waits_(kStepWaitBounds) {}

void StageTotals::Add(const StageTimes& stages) {
  AddTo(read_seconds_, stages.read);
  AddTo(make_seconds_, stages.make);
  AddTo(wait_seconds_, stages.wait);
}

void StageTotals::AddStep(absl::Duration wait) { step_waits_.Add(absl::ToDoubleSeconds(wait)); }

StageTimes StageTotals::stages() const {
  return {
      .read = TimeOf(read_seconds_), .make = TimeOf(make_seconds_), .wait = TimeOf(wait_seconds_)};
}

}  // namespace systole
