#include "core/concurrency/sleep_meter.h"

#include <algorithm>
#include <utility>

#include "core/concurrency/thread_times.h"

namespace systole {
namespace {

constexpr absl::Duration kAskEvery = absl::Milliseconds(2);

// A thread that did not run for a smaller part of the time counts as if it had run.
constexpr int kNoticeable = 32;

}  // namespace

SleepMeter::SleepMeter() {
  const std::optional<ThreadTimes> times = TimesOf(OwnThreadId());
  if (times.has_value()) queued_ = times->queued;
}

void SleepMeter::Begin(absl::Duration now) {
  began_ = now;
  cpu_ = OwnCpuTime();
}

absl::Duration SleepMeter::End(absl::Duration now) {
  const absl::Duration passed = now - began_;
  const absl::Duration off = passed - (OwnCpuTime() - cpu_);
  off_ += std::max(absl::ZeroDuration(), off);
  if (!queued_.has_value() || off <= absl::ZeroDuration() || off * kNoticeable < passed) {
    return absl::ZeroDuration();
  }
  if (now - asked_ >= kAskEvery) {
    const std::optional<ThreadTimes> times = TimesOf(OwnThreadId());
    if (!times.has_value()) return absl::ZeroDuration();
    const absl::Duration queued = times->queued - *std::exchange(queued_, times->queued);
    slept_part_ = std::clamp(1 - absl::FDivDuration(queued, off_), 0.0, 1.0);
    off_ = absl::ZeroDuration();
    asked_ = now;
  }
  return off * slept_part_;
}

}  // namespace systole
