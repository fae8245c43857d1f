#include "core/engine/worker_watch.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/status/check.h"

namespace systole {
namespace {

// The weight of the newest look compared with all earlier looks. With this weight, limit() adapts
// within a second when storage becomes slow, or fast again.
constexpr double kNewestWeight = 0.25;

// A look that comes this many periods late shows that the whole process did not run.
constexpr int kStoppedPeriods = 20;

}  // namespace

WorkerWatch::WorkerWatch(const WorkerWatchOptions& options)
    : options_(options),
      workers_(static_cast<size_t>(options.max_threads)),
      limit_(options.threads) {
  SYSTOLE_CHECK(options.threads > 0 && options.threads <= options.max_threads);
}

void WorkerWatch::Begin(int index, absl::Duration now) {
  Worker& worker = workers_[static_cast<size_t>(index)];
  SYSTOLE_CHECK(!worker.busy);
  worker.busy = true;
  worker.began = now;
  worker.counted_until = now;
  worker.ran_at = now;
  ++busy_;
}

void WorkerWatch::End(int index, absl::Duration now) {
  Worker& worker = workers_[static_cast<size_t>(index)];
  SYSTOLE_CHECK(worker.busy);
  worker.busy_time += now - worker.counted_until;
  worker.busy = false;
  --busy_;
  Unstick(worker);
  SetOverdue(worker, false);
}

void WorkerWatch::SetOverdue(Worker& worker, bool overdue) {
  overdue_ += (overdue ? 1 : 0) - (worker.overdue ? 1 : 0);
  worker.overdue = overdue;
}

void WorkerWatch::Unstick(Worker& worker) {
  if (worker.stuck) --stuck_;
  worker.stuck = false;
  worker.timed_out = false;
}

std::vector<int> WorkerWatch::Look(absl::Duration now,
                                   absl::Span<const std::optional<ThreadTimes>> times) {
  SYSTOLE_CHECK(times.size() == workers_.size());
  const absl::Duration since = now - last_look_.value_or(now);
  const bool was_stopped = since > kStoppedPeriods * options_.period;
  last_look_ = now;
  absl::Duration busy_time;
  absl::Duration awake_time;
  std::vector<int> timed_out;
  for (size_t i = 0; i < workers_.size(); ++i) {
    Worker& worker = workers_[i];
    if (worker.busy) worker.busy_time += now - worker.counted_until;
    worker.counted_until = now;
    const absl::Duration busy = std::exchange(worker.busy_time, absl::ZeroDuration());
    const std::optional<ThreadTimes> before = std::exchange(worker.times, std::nullopt);
    if (!worker.busy) continue;
    SetOverdue(worker, !worker.stuck && now - worker.began >= options_.overdue_after);
    if (!times[i].has_value()) {
      worker.ran_at = now;
      continue;
    }
    worker.times = times[i];
    if (was_stopped) worker.ran_at += since;
    if (!before.has_value()) continue;
    const absl::Duration awake =
        times[i]->running - before->running + times[i]->queued - before->queued;
    if (awake > absl::ZeroDuration()) {
      worker.ran_at = now;
      Unstick(worker);
    } else if (!worker.stuck && now - worker.ran_at >= options_.stuck_after) {
      worker.stuck = true;
      ++stuck_;
      SetOverdue(worker, false);
    }
    if (worker.stuck && !worker.timed_out && now - worker.ran_at >= options_.read_timeout) {
      worker.timed_out = true;
      timed_out.push_back(static_cast<int>(i));
    }
    if (worker.stuck || was_stopped) continue;  // Its times say nothing about other workers.
    busy_time += busy;
    awake_time += awake;
  }
  if (busy_time > absl::ZeroDuration()) {
    const double awake_part = std::min(1.0, absl::FDivDuration(awake_time, busy_time));
    waiting_part_ += kNewestWeight * (1 - awake_part - waiting_part_);
    // Without this bound, threads that wait nearly all the time would ask for more threads than an
    // int can count.
    const double wanted = options_.threads / std::max(1 - waiting_part_, 1e-3);
    limit_ =
        std::clamp(static_cast<int>(std::lround(wanted)), options_.threads, options_.max_threads);
  }
  return timed_out;
}

}  // namespace systole
