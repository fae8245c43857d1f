#include "client/emulator/report/figure.h"

#include "absl/strings/str_cat.h"

namespace systole::emulator {

double EndOf(const StepRow& row) { return static_cast<double>(row.first_step + row.steps); }

std::string StepsText(const StepRow& row) {
  if (row.steps == 1) return absl::StrCat("Step ", row.first_step);
  return absl::StrCat("Steps ", row.first_step, " to ", row.first_step + row.steps - 1);
}

Axis StepAxis(const std::vector<StepRow>& rows, int ticks) {
  return Axis::LinearExact(static_cast<double>(rows.front().first_step), EndOf(rows.back()),
                           Unit::kCount, ticks, /*integral=*/true);
}

}  // namespace systole::emulator
