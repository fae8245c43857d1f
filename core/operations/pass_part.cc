#include "core/operations/pass_part.h"

#include <variant>

#include "core/interrupt/lap_times.h"
#include "core/operations/ops/operation.h"

namespace systole {

int PassPartOf(const Program& program, size_t fused) {
  if (fused == 0) return LapTimes::kNoPart;
  size_t costliest = fused - 1;
  for (size_t i = 0; i < fused; ++i) {
    for (const OperationPart& part : program.steps()[i].operation->Parts()) {
      if (IsResize(part)) return program.number_of(i);
      if (std::holds_alternative<NormalisePart>(part)) costliest = i;
    }
  }
  return program.number_of(costliest);
}

}  // namespace systole
