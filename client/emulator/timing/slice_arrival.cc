#include "client/emulator/timing/slice_arrival.h"

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "core/status/status_macros.h"

namespace systole::emulator {

absl::StatusOr<std::optional<StepArrival>> PopStep(const PopArrival& pop, int num_cores) {
  StepArrival step;
  for (int core = 0; core < num_cores; ++core) {
    SYSTOLE_ASSIGN_OR_RETURN(const std::optional<SliceArrival> slice, pop(core));
    if (!slice.has_value()) {
      if (core == 0) return std::optional<StepArrival>();
      return absl::FailedPreconditionError(
          absl::StrCat("core ", core, "'s feed has ended, but core 0's feed has step ", step.step));
    }
    if (core == 0) step.step = slice->step;
    if (slice->step != step.step) {
      return absl::FailedPreconditionError(absl::StrCat(
          "core ", core, " is given step ", slice->step, ", but core 0 step ", step.step));
    }
    step.arrived_at.push_back(slice->arrived_at);
  }
  return step;
}

}  // namespace systole::emulator
