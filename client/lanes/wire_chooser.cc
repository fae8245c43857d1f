#include "client/lanes/wire_chooser.h"

#include <algorithm>

namespace systole {
namespace {

// The way limits if sending takes this much of the time.
constexpr double kLimits = 0.8;
// It would not if FINISHED took less than this much. Between the two nothing changes.
constexpr double kWouldNotLimit = 0.5;
// A server's number; larger ones are mistaken.
constexpr int64_t kMaxUs = int64_t{1} << 40;

double Sane(int64_t us) { return static_cast<double>(std::clamp<int64_t>(us, 0, kMaxUs)); }

}  // namespace

void WireChooser::StreamBegins() {
  Forget();
  unknown_ = true;
}

void WireChooser::SliceBegins(int64_t waited_us, int64_t sent_us) {
  if (unknown_) return;
  waited_us_ += Sane(waited_us);
  sent_us_ += Sane(sent_us);
}

bool WireChooser::StepEnds(bool held) {
  if (held || unknown_) {
    Forget();
    unknown_ = held;
    return false;
  }
  if (!automatic_ || ++steps_ < wanted_steps_) return false;
  const double all = waited_us_ + sent_us_;
  // 0: a server that does not tell.
  const bool change =
      all > 0 && (compact_ ? sent_us_ * ratio_ < kWouldNotLimit * all : sent_us_ >= kLimits * all);
  Forget();
  if (!change) return false;
  compact_ = !compact_;
  wanted_steps_ = std::min(2 * wanted_steps_, kMaxWantedSteps);
  return true;
}

void WireChooser::Forget() {
  steps_ = 0;
  waited_us_ = 0;
  sent_us_ = 0;
}

}  // namespace systole
