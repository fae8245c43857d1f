#include "client/schedule/server_demand.h"

#include <utility>

namespace systole {
namespace {

// A measurement has at least this many steps for each server, and takes at least this long.
constexpr int64_t kStepsForEach = 8;
constexpr absl::Duration kShortestMeasure = absl::Seconds(2);

// The trainer counts as waiting if it waits for more than kWaits of its time, and as not waiting if
// it waits for less than kNoWait of its time. In between, the number of servers stays.
constexpr double kWaits = 0.05;
constexpr double kNoWait = 0.01;

// One more server could raise the rate of n servers by 1 / n. The added server helps if the rate
// grows by at least this part of 1 / n.
constexpr double kHelps = 0.25;

constexpr absl::Duration kFirstPause = absl::Seconds(30);
constexpr absl::Duration kLongestPause = absl::Minutes(10);

}  // namespace

void ServerDemand::StepTaken(absl::Duration now, absl::Duration waited, bool settled, bool more) {
  if (!settled) {
    measure_.reset();
    return;
  }
  if (!measure_.has_value()) {  // The wait for this step was before the measurement.
    measure_ = {.begin = now};
    return;
  }
  ++measure_->steps;
  measure_->waited += waited;
  const absl::Duration took = now - measure_->begin;
  if (measure_->steps < kStepsForEach * wanted_ || took < kShortestMeasure) return;
  Judge(now, absl::FDivDuration(measure_->waited, took),
        static_cast<double>(measure_->steps) / absl::ToDoubleSeconds(took), more);
  measure_ = {.begin = now};
}

void ServerDemand::Judge(absl::Duration now, double waits, double rate, bool more) {
  if (waits >= kNoWait) waited_at_ = now;
  if (rate_before_.has_value()) {
    const bool helped =
        waits < kWaits || rate >= *rate_before_ * (1 + kHelps / static_cast<double>(wanted_ - 1));
    rate_before_.reset();
    if (!helped) {
      --wanted_;
      pause_ = std::clamp(2 * pause_, kFirstPause, kLongestPause);
      grows_after_ = now + pause_;
      return;
    }
    pause_ = absl::ZeroDuration();
  }
  if (waits > kWaits) {
    if (std::exchange(shrank_, false)) {
      shrinks_after_ = std::min(2 * shrinks_after_, kLongestPause);
    }
    if (!more || wanted_ >= most_ || now < grows_after_) return;
    ++wanted_;
    rate_before_ = rate;
  } else if (wanted_ > least_ && now - waited_at_ >= shrinks_after_) {
    --wanted_;
    shrank_ = true;
    waited_at_ = now;
  }
}

}  // namespace systole
