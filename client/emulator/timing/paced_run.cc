#include "client/emulator/timing/paced_run.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "core/status/status_macros.h"

namespace systole::emulator {
namespace {

// Takes one slice for every core; false at the end of the feed.
absl::StatusOr<bool> PopStep(const PopArrival& pop, absl::Duration begin,
                             std::vector<absl::Duration>& arrived) {
  int64_t step = 0;
  for (int core = 0; core < static_cast<int>(arrived.size()); ++core) {
    SYSTOLE_ASSIGN_OR_RETURN(const std::optional<SliceArrival> slice, pop(core));
    if (!slice.has_value()) {
      if (core == 0) return false;
      return absl::FailedPreconditionError(
          absl::StrCat("core ", core, "'s feed has ended, core 0's has a step ", step));
    }
    if (core == 0) step = slice->step;
    if (slice->step != step) {
      return absl::FailedPreconditionError(
          absl::StrCat("core ", core, " is given step ", slice->step, ", core 0 step ", step));
    }
    arrived[static_cast<size_t>(core)] = slice->arrived_at - begin;
  }
  return true;
}

}  // namespace

absl::StatusOr<PacedResult> RunPaced(const PopArrival& pop, const PacedOptions& options) {
  SYSTOLE_ASSIGN_OR_RETURN(InfeedClock clock, InfeedClock::Create(options.infeed));
  if (options.max_steps < 1 || options.max_duration <= absl::ZeroDuration()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "PacedOptions.max_steps is ", options.max_steps, ", max_duration ",
        absl::FormatDuration(options.max_duration), ", want at least 1 and more than 0"));
  }
  PacedResult result;
  std::vector<absl::Duration> arrived(static_cast<size_t>(options.infeed.num_cores));
  const absl::Duration begin = options.pacer.now();
  absl::Duration first_start, first_end, now;
  while (result.books.steps() < options.max_steps &&
         clock.end() - first_start < options.max_duration) {
    SYSTOLE_ASSIGN_OR_RETURN(const bool has_step, PopStep(pop, begin, arrived));
    if (!has_step) break;
    const absl::Duration noticed = options.pacer.now() - begin;
    const absl::Duration takeable =
        std::max(clock.end(), *std::max_element(arrived.begin(), arrived.end()));
    const absl::Duration noticing = std::max(absl::ZeroDuration(), noticed - takeable);
    StepRecord record = clock.Step(arrived);
    if (result.books.steps() == 0) {
      first_start = record.start;
      first_end = record.end();
    }
    if (options.on_step != nullptr) options.on_step(record, record.end() - first_start);
    result.books.Add(std::move(record));
    result.overhead.noticing += noticing;
    result.overhead.max_noticing = std::max(result.overhead.max_noticing, noticing);
    result.overhead.work += options.pacer.now() - begin - noticed;
    now = PaceUntil(begin + clock.end(), options.pacer) - begin;
    const absl::Duration late = now - clock.end();
    result.overhead.max_late = std::max(result.overhead.max_late, late);
    if (late > options.infeed.step_time) clock.Slip(late);
  }
  if (result.books.steps() > 1) {
    result.wall_au = absl::FDivDuration(result.books.utilisation().compute, now - first_end);
  }
  return result;
}

}  // namespace systole::emulator
