#include "core/concurrency/queue_meter.h"

#include <algorithm>
#include <utility>

#include "core/concurrency/thread_times.h"

namespace systole {
namespace {

constexpr absl::Duration kAskAfter = absl::Milliseconds(2);

}  // namespace

absl::Duration QueueMeter::Begin(absl::Duration now) {
  const absl::Duration passed = ended_.has_value() ? now - *ended_ : absl::ZeroDuration();
  if (ended_.has_value() && passed < kAskAfter) return absl::ZeroDuration();
  const std::optional<ThreadTimes> times = TimesOf(OwnThreadId());
  if (!times.has_value()) return absl::ZeroDuration();
  const absl::Duration since = now - std::exchange(asked_, now);
  const std::optional<absl::Duration> before = std::exchange(queued_, times->queued);
  if (!before.has_value() || passed <= absl::ZeroDuration()) return absl::ZeroDuration();
  // The kernel's number also counts queueing during work and in short breaks. So this assumes that
  // the thread has queued for the same part of all times since the last question to the kernel.
  const double part = absl::FDivDuration(times->queued - *before, std::max(since, passed));
  return passed * std::clamp(part, 0.0, 1.0);
}

}  // namespace systole
