#include "client/emulator/array/gemm_check.h"

#include <bit>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/emulator/array/matrix_unit.h"
#include "client/emulator/array/stepped_array.h"
#include "core/numeric/bf16.h"
#include "core/random/counter_rng.h"
#include "core/status/status_macros.h"

namespace systole::emulator {
namespace {

constexpr uint64_t kSeed = 20;

absl::Status CheckDataflow(Dataflow dataflow, int64_t folds) {
  if (dataflow == Dataflow::kScaleSimWs) return absl::OkStatus();
  if (dataflow != Dataflow::kWsDb) {
    return absl::InvalidArgumentError(absl::StrCat(
        DataflowName(dataflow),
        " cannot be stepped: the stepped array is weight-stationary; want scalesim-ws, "
        "or ws-db with one fold"));
  }
  if (folds == 1) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "ws-db cannot be stepped over ", folds,
      " folds: the stepped array takes them one after the other; want scalesim-ws, or a "
      "product of one fold (K <= R, N <= C)"));
}

// Compared by division, since the product may not fit. REQUIRES: all >= 1.
bool ProductExceeds(int64_t a, int64_t b, int64_t most) { return a > most / b; }

absl::Status CheckSizes(const GemmShape& gemm, const ArrayShape& array, int64_t cycles) {
  if (ProductExceeds(gemm.m, gemm.k, kMostCheckElements) ||
      ProductExceeds(gemm.k, gemm.n, kMostCheckElements) ||
      ProductExceeds(gemm.m, gemm.n, kMostCheckElements) ||
      ProductExceeds(array.rows, array.columns, kMostCheckElements)) {
    return absl::InvalidArgumentError(
        absl::StrCat("a matrix of M,K,N = ", gemm.m, ",", gemm.k, ",", gemm.n, " or the ",
                     array.rows, "x", array.columns, " array holds more than ", kMostCheckElements,
                     " numbers, too many to step; want smaller sizes, or the cycles alone"));
  }
  if (ProductExceeds(cycles + 1, array.rows * array.columns, kMostCheckSteps)) {
    return absl::InvalidArgumentError(
        absl::StrCat(cycles, " cycles of a ", array.rows, "x", array.columns,
                     " array are too many to step: want cycles * rows * columns of at most ",
                     kMostCheckSteps, ", or the cycles alone"));
  }
  return absl::OkStatus();
}

// Numbers in [-16, 16) whose products round in f32 as soon as two are added: a sum in another order
// shows.
std::vector<uint16_t> DrawMatrix(int64_t size, CounterRng rng) {
  std::vector<uint16_t> values(static_cast<size_t>(size));
  for (uint16_t& value : values) {
    value = RoundToBf16Flush(rng.UniformFloat() * 32.0f - 16.0f);
  }
  return values;
}

}  // namespace

absl::StatusOr<GemmCheck> CheckByStepping(const GemmShape& gemm, const ArrayShape& array,
                                          Dataflow dataflow) {
  SYSTOLE_ASSIGN_OR_RETURN(const GemmCycles counted, CountCycles(gemm, array, dataflow));
  SYSTOLE_RETURN_IF_ERROR(CheckDataflow(dataflow, counted.folds));
  SYSTOLE_RETURN_IF_ERROR(CheckSizes(gemm, array, counted.cycles));
  const std::vector<uint16_t> a = DrawMatrix(gemm.m * gemm.k, CounterRng(kSeed, 0, 0, 0));
  const std::vector<uint16_t> b = DrawMatrix(gemm.k * gemm.n, CounterRng(kSeed, 0, 1, 0));
  std::vector<float> stepped(static_cast<size_t>(gemm.m * gemm.n));
  std::vector<float> defined(stepped.size());
  const SteppedArray::Cycles cycles =
      SteppedArray(array.rows, array.columns)
          .Multiply(a.data(), b.data(), gemm.m, gemm.k, gemm.n, stepped.data());
  MultiplyByDefinition(a.data(), b.data(), gemm.m, gemm.k, gemm.n, array.rows, defined.data());

  GemmCheck check = {.counted_cycles = counted.cycles,
                     .stepped_cycles = cycles.load + cycles.stream,
                     .values = gemm.m * gemm.n};
  if (dataflow == Dataflow::kScaleSimWs) --check.stepped_cycles;  // The last one's index.
  for (size_t i = 0; i < stepped.size(); ++i) {
    if (std::bit_cast<uint32_t>(stepped[i]) != std::bit_cast<uint32_t>(defined[i])) {
      ++check.differing_values;
    }
  }
  return check;
}

absl::Status AgreementOf(const GemmCheck& check) {
  if (!check.values_agree()) {
    return absl::InternalError(absl::StrCat(
        check.differing_values, " of ", check.values,
        " values that the stepped array computed differ from those of the exact loop"));
  }
  if (!check.cycles_agree()) {
    return absl::InternalError(absl::StrCat("the stepped array took ", check.stepped_cycles,
                                            " cycles, the cycle model says ",
                                            check.counted_cycles));
  }
  return absl::OkStatus();
}

}  // namespace systole::emulator
