// Holds the cycle model and the `exact` numerics against the stepped array on one product: random
// operands go through the array cycle by cycle, and values and cycles are compared.
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
  int64_t counted_cycles = 0;    // By the cycle model.
  int64_t stepped_cycles = 0;    // By the array, in the cycle model's way of counting.
  int64_t values = 0;            // M * N.
  int64_t differing_values = 0;  // Whose bits are not those of MultiplyByDefinition.

  bool cycles_agree() const { return counted_cycles == stepped_cycles; }
  bool values_agree() const { return differing_values == 0; }
};

// Most multiplications of array elements a check may take (cycles * R * C), minutes of work; and
// most numbers in one matrix or in the array.
inline constexpr int64_t kMostCheckSteps = int64_t{1} << 36;
inline constexpr int64_t kMostCheckElements = int64_t{1} << 26;

// Operands lie in [-16, 16) and are drawn from a fixed seed.
//   InvalidArgument  as CountCycles; over one of the limits above; a dataflow that the stepped
//   array
//                    cannot run: it is weight-stationary and takes folds one after the other, so
//                    that is scalesim-ws, and ws-db with one fold.
absl::StatusOr<GemmCheck> CheckByStepping(const GemmShape& gemm, const ArrayShape& array,
                                          Dataflow dataflow);

// OK, or Internal with both numbers of what disagrees.
absl::Status AgreementOf(const GemmCheck& check);

}  // namespace systole::emulator

#endif  // SYSTOLE_CLIENT_EMULATOR_ARRAY_GEMM_CHECK_H_
