#include "client/emulator/array/gemm_check.h"

#include <algorithm>
#include <bit>
#include <vector>

#include "absl/strings/str_cat.h"
#include "client/emulator/array/divide_up.h"
#include "client/emulator/array/matrix_unit.h"
#include "client/emulator/array/pe_grid.h"
#include "client/emulator/array/stepped_array.h"
#include "core/numeric/bf16.h"
#include "core/random/counter_rng.h"
#include "core/status/status_macros.h"

namespace systole::emulator {
namespace {

constexpr uint64_t kSeed = 20;

// Whether a * b > most. Divides, because the product may be too large. REQUIRES: all >= 1.
bool ProductExceeds(int64_t a, int64_t b, int64_t most) { return a > most / b; }

// The part of the product that one matrix unit computes: rows [row, row + rows) of a, and `tiles`
// tiles from `first_tile` on.
struct Share {
  int64_t row, rows;
  int64_t first_tile, tiles;
};

// The shares of `units` matrix units. Empty shares are left out.
class Shares {
 public:
  Shares(const GemmShape& gemm, const GemmCycles& counted, int64_t units)
      : split_(counted.split), rows_(gemm.m), tiles_(counted.folds) {
    const int64_t whole = split_ == UnitSplit::kRows ? rows_ : tiles_;
    each_ = split_ == UnitSplit::kNone ? whole : DivideUp(whole, units);
    count_ = DivideUp(whole, each_);
  }
  int64_t count() const { return count_; }
  Share Get(int64_t i) const {
    if (split_ != UnitSplit::kRows) return {0, rows_, i * each_, each_};
    return {i * each_, std::min(each_, rows_ - i * each_), 0, tiles_};
  }

 private:
  UnitSplit split_;
  int64_t rows_, tiles_;
  int64_t each_, count_;  // each_: rows or tiles in a share. count_: number of shares.
};

absl::Status CheckSizes(const GemmShape& gemm, const ArrayShape& array, int64_t cycles,
                        int64_t arrays) {
  const int64_t padded_rows = array.rows + 1, padded_columns = array.columns + PeGrid::kMostPadding;
  if (ProductExceeds(gemm.m, gemm.k, kMostCheckElements) ||
      ProductExceeds(gemm.k, gemm.n, kMostCheckElements) ||
      ProductExceeds(gemm.m, gemm.n, kMostCheckElements) ||
      ProductExceeds(padded_rows, padded_columns, kMostCheckElements)) {
    return absl::InvalidArgumentError(absl::StrCat(
        "a matrix of M,K,N = ", gemm.m, ",", gemm.k, ",", gemm.n, " or the ", array.rows, "x",
        array.columns, " array holds more than ", kMostCheckElements,
        " numbers, too many to compute cycle by cycle; want smaller sizes, or the cycles alone"));
  }
  const int64_t elements = padded_rows * padded_columns;
  if (ProductExceeds(cycles + 1, elements, kMostCheckSteps) ||
      ProductExceeds((cycles + 1) * elements, arrays, kMostCheckSteps)) {
    return absl::InvalidArgumentError(absl::StrCat(
        cycles, " cycles of ", arrays, " ", array.rows, "x", array.columns, " array",
        arrays == 1 ? "" : "s",
        " are too many to compute cycle by cycle: want cycles * arrays"
        " * (rows + 1) * (columns + ",
        PeGrid::kMostPadding, ") of at most ", kMostCheckSteps, ", or the cycles alone"));
  }
  return absl::OkStatus();
}

// Draws numbers in [-16, 16). Even a sum of two products of such numbers must be rounded in f32. So
// a sum in a wrong order usually has other bits, and the check finds the mistake.
std::vector<uint16_t> DrawMatrix(int64_t size, CounterRng rng) {
  std::vector<uint16_t> values(static_cast<size_t>(size));
  for (uint16_t& value : values) {
    value = RoundToBf16Flush(rng.UniformFloat() * 32.0f - 16.0f);
  }
  return values;
}

// The cycles as the cycle model counts them. For SCALE-Sim's dataflows this is the number that
// SCALE-Sim prints: the index of the last cycle, without the drain.
int64_t CountedAs(Dataflow dataflow, const SteppedArray::Cycles& cycles) {
  if (dataflow == Dataflow::kWsDb) return cycles.total();
  return cycles.load + cycles.stream - 1;
}

}  // namespace

absl::StatusOr<GemmCheck> CheckByStepping(const GemmShape& gemm, const ArrayShape& array,
                                          Dataflow dataflow, int64_t units) {
  SYSTOLE_ASSIGN_OR_RETURN(const GemmCycles counted, CountCycles(gemm, array, dataflow, units));
  const Shares shares(gemm, counted, units);
  SYSTOLE_RETURN_IF_ERROR(CheckSizes(gemm, array, counted.cycles, shares.count()));
  const std::vector<uint16_t> a = DrawMatrix(gemm.m * gemm.k, CounterRng(kSeed, 0, 0, 0));
  const std::vector<uint16_t> b = DrawMatrix(gemm.k * gemm.n, CounterRng(kSeed, 0, 1, 0));
  std::vector<float> stepped(static_cast<size_t>(gemm.m * gemm.n));
  std::vector<float> defined(stepped.size());

  GemmCheck check = {.counted_cycles = counted.cycles, .values = gemm.m * gemm.n};
  SteppedArray stepped_array(array.rows, array.columns);
  for (int64_t i = 0; i < shares.count(); ++i) {
    const Share share = shares.Get(i);
    stepped_array.Start({.a = a.data() + share.row * gemm.k,
                         .b = b.data(),
                         .shape = {share.rows, gemm.k, gemm.n},
                         .out = stepped.data() + share.row * gemm.n,
                         .dataflow = dataflow,
                         .first_tile = share.first_tile,
                         .most_tiles = share.tiles});
    while (stepped_array.Step()) {
    }
    check.stepped_cycles =
        std::max(check.stepped_cycles, CountedAs(dataflow, stepped_array.cycles()));
  }
  const int64_t slab = dataflow == Dataflow::kScaleSimOs ? gemm.k : array.rows;
  MultiplyByDefinition(a.data(), b.data(), gemm.m, gemm.k, gemm.n, slab, defined.data());
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
