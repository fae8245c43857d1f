// Checks the cycle model and the `exact` numerics against the stepped array on one product. Random
// operands go through the array cycle by cycle. Then values and cycles are compared.
//
// Thread-safe: no state.
#ifndef SYSTOLE_CLIENT_EMULATOR_ARRAY_GEMM_CHECK_H_
#define SYSTOLE_CLIENT_EMULATOR_ARRAY_GEMM_CHECK_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/emulator/array/cycle_model.h"

namespace systole::emulator {

struct GemmCheck {
  int64_t counted_cycles = 0;  // By the cycle model.
  // The cycles that the stepped array took, counted as the dataflow's formula counts them. In the
  // scalesim dataflows this is the index of the last cycle, from 0. scalesim-os does not count the
  // R cycles in which the sums of a fold (one filling of the array) move out.
  int64_t stepped_cycles = 0;
  int64_t values = 0;            // M * N.
  int64_t differing_values = 0;  // Values whose bits differ from MultiplyByDefinition's.

  bool cycles_agree() const { return counted_cycles == stepped_cycles; }
  bool values_agree() const { return differing_values == 0; }
};

// A step is one cycle of one processing element (PE). A check may take at most kMostCheckSteps
// steps, which is a few minutes of work. It takes cycles * arrays * (R + 1) * (C + 31) steps:
// registers are padded by a row and at most 31 columns. kMostCheckElements is the most numbers that
// one matrix, or the padded array, may hold.
inline constexpr int64_t kMostCheckSteps = int64_t{1} << 36;
inline constexpr int64_t kMostCheckElements = int64_t{1} << 26;

// Operands lie in [-16, 16) and are drawn from a fixed seed. `units` arrays share the product.
// CountCycles() decides how the product is split. `stepped_cycles` are those of the slowest array.
// The slabs of MultiplyByDefinition() are R long. For scalesim-os, where sums stay in place, one
// slab is all of K.
//   InvalidArgument  the cases of CountCycles, or a size above a limit.
absl::StatusOr<GemmCheck> CheckByStepping(const GemmShape& gemm, const ArrayShape& array,
                                          Dataflow dataflow, int64_t units = 1);

// OK, or Internal with the two numbers that disagree.
absl::Status AgreementOf(const GemmCheck& check);

}  // namespace systole::emulator

#endif  // SYSTOLE_CLIENT_EMULATOR_ARRAY_GEMM_CHECK_H_
