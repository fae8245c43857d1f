#include "client/emulator/chip/published.h"

#include "core/status/status_macros.h"

namespace systole::emulator {

absl::StatusOr<std::vector<Comparison>> CompareWithPublished(const Model& model,
                                                             const v1::Chip& chip,
                                                             const CompileOptions& options) {
  std::vector<Comparison> comparisons;
  for (const v1::Measurement& measurement : chip.measurements()) {
    if (measurement.model() != model.name) continue;
    SYSTOLE_ASSIGN_OR_RETURN(const ChipProgram program,
                             CompileProgram(model, chip,
                                            {.per_core_batch = measurement.per_core_batch(),
                                             .slice = measurement.slice(),
                                             .dataflow = options.dataflow,
                                             .overlap = options.overlap}));
    comparisons.push_back({.slice = measurement.slice(),
                           .per_core_batch = measurement.per_core_batch(),
                           .source = measurement.source(),
                           .published_examples_per_s = measurement.examples_per_s(),
                           .emulated_examples_per_s = program.examples_per_s()});
  }
  return comparisons;
}

}  // namespace systole::emulator
