#include "core/concurrency/sleep_meter.h"

#include <algorithm>
#include <utility>

#include "core/concurrency/thread_times.h"

namespace systole {
namespace {

constexpr absl::Duration kAskEvery = absl::Milliseconds(2);

// A piece of work that takes less time counts as a piece without sleep. A read that waits for a
// disk takes longer, and most tasks of small records take less time.
constexpr absl::Duration kShortPiece = absl::Microseconds(20);

// After this many short pieces, Begin() reads the thread's processor time again. The time
// that the thread runs between pieces is neglected. Between this many pieces, this time is about as
// long as one piece.
constexpr int kShortPieces = 16;

// If a thread was off the processors for less than 1 / kNoticeable of the time, it counts as if it
// had run all the time.
constexpr int kNoticeable = 32;

}  // namespace

SleepMeter::SleepMeter() {
  const std::optional<ThreadTimes> times = TimesOf(OwnThreadId());
  if (times.has_value()) queued_ = times->queued;
}

void SleepMeter::Begin(absl::Duration now) {
  began_ = now;
  if (short_pieces_ > 0 && short_pieces_ < kShortPieces) return;
  cpu_ = OwnCpuTime();
  short_pieces_ = 0;
  ran_ = absl::ZeroDuration();
}

absl::Duration SleepMeter::End(absl::Duration now) {
  const absl::Duration passed = now - began_;
  if (passed < kShortPiece) {
    ++short_pieces_;
    ran_ += passed;
    return absl::ZeroDuration();
  }
  const absl::Duration off = passed - (OwnCpuTime() - cpu_ - ran_);
  short_pieces_ = 0;
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
