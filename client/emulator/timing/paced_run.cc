#include "client/emulator/timing/paced_run.h"

#include <algorithm>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "core/status/status_macros.h"

namespace systole::emulator {

absl::StatusOr<PacedResult> RunPaced(const PopArrival& pop, const PacedOptions& options) {
  SYSTOLE_ASSIGN_OR_RETURN(InfeedClock clock, InfeedClock::Create(options.infeed));
  if (options.max_steps < 1 || options.max_duration <= absl::ZeroDuration()) {
    return absl::InvalidArgumentError(absl::StrCat(
        "PacedOptions.max_steps is ", options.max_steps, ", want at least 1; max_duration is ",
        absl::FormatDuration(options.max_duration), ", want more than 0"));
  }
  PacedResult result;
  const absl::Duration begin = options.pacer.now();
  absl::Duration first_start, first_end, now;
  while (result.books.steps() < options.max_steps &&
         clock.end() - first_start < options.max_duration) {
    absl::StatusOr<std::optional<StepArrival>> step = PopStep(pop, options.infeed.num_cores);
    const absl::Duration noticed = options.pacer.now() - begin;
    if (absl::IsCancelled(step.status())) {
      now = std::max(noticed, clock.end());
      result.books.AddOpenWait(now - clock.end());
      break;
    }
    SYSTOLE_RETURN_IF_ERROR(step.status());
    if (!step->has_value()) break;
    std::vector<absl::Duration>& arrived = (*step)->arrived_at;
    for (absl::Duration& at : arrived) at -= begin;
    const absl::Duration takeable =
        std::max(clock.end(), *std::max_element(arrived.begin(), arrived.end()));
    const absl::Duration noticing = std::max(absl::ZeroDuration(), noticed - takeable);
    const StepRecord record = clock.Step(arrived);
    if (result.books.steps() == 0) {
      first_start = record.start;
      first_end = record.end();
    }
    if (options.on_step != nullptr) options.on_step(record, record.end() - first_start);
    result.books.Add(record);
    result.overhead.noticing += noticing;
    result.overhead.max_noticing = std::max(result.overhead.max_noticing, noticing);
    result.overhead.work += options.pacer.now() - begin - noticed;
    now = PaceUntil(begin + clock.end(), options.pacer) - begin;
    const absl::Duration late = now - clock.end();
    result.overhead.max_late = std::max(result.overhead.max_late, late);
    if (late > options.infeed.step_time) clock.Slip(late);
  }
  if (const Utilisation used = result.books.utilisation(); used.au.has_value()) {
    result.wall_au = absl::FDivDuration(used.compute, now - first_end);
  }
  return result;
}

}  // namespace systole::emulator
