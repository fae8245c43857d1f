// How many cycles a systolic array of R rows and C columns takes for one product [M,K] * [K,N].
// cd(a, b) is a / b rounded up. A fold is one filling of the array.
//
//   ws-db        R + (F - 1) * max(M, R) + M + R + C - 2     F = cd(K,R) * cd(N,C)
//                Weight-stationary with shadow weights, as a TPU: the next tile's weights shift in
//                (R cycles) while the rows of this tile stream. The formula is our own derivation.
//                With one fold it is the formula of scalesim-ws without the - 1.
//   scalesim-os  F * (R + C + K - 2) - 1                     F = cd(M,R) * cd(N,C)
//   scalesim-ws  F * (2R + C + M - 2) - 1                    F = cd(K,R) * cd(N,C)
//   scalesim-is  F * (2R + C + N - 2) - 1                    F = cd(K,R) * cd(M,C)
//                What SCALE-Sim v2 and v3 print as "Total Cycles" without stalls: folds run one
//                after the other, and each costs as much as if it filled the array. The - 1 is
//                SCALE-Sim's: its number is the index of the last cycle, counted from 0.
//
// Thread-safe: no state.
#ifndef SYSTOLE_CLIENT_EMULATOR_ARRAY_CYCLE_MODEL_H_
#define SYSTOLE_CLIENT_EMULATOR_ARRAY_CYCLE_MODEL_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace systole::emulator {

enum class Dataflow { kWsDb, kScaleSimOs, kScaleSimWs, kScaleSimIs };

// "ws-db", "scalesim-os", "scalesim-ws" or "scalesim-is".
absl::string_view DataflowName(Dataflow dataflow);
// InvalidArgument if `name` is not one of the four names. The message lists them.
absl::StatusOr<Dataflow> ParseDataflow(absl::string_view name);

struct ArrayShape {
  int64_t rows = 0;
  int64_t columns = 0;
};

struct GemmShape {
  int64_t m = 0;
  int64_t k = 0;
  int64_t n = 0;
};

// How a core's matrix units share a product:
//   kNone    there is one unit, which gets the whole product
//   kRows    each unit gets at most cd(M, units) rows, with all tiles
//   kTiles   each unit gets at most cd(F, units) tiles, with all rows
enum class UnitSplit { kNone, kRows, kTiles };
// "none", "rows" or "tiles".
absl::string_view UnitSplitName(UnitSplit split);

struct GemmCycles {
  int64_t folds = 0;   // F of the whole product.
  int64_t cycles = 0;  // In the scalesim dataflows 1 too few: see the - 1 above.
  // M * K * N / (cycles * R * C * units), in which 0 cycles count as 1. SCALE-Sim's - 1 can make
  // the quotient larger than 1 on an array of one element.
  double utilisation = 0;
  UnitSplit split = UnitSplit::kNone;
};

// The largest value of M, K, N, R, C and `units`.
inline constexpr int64_t kLargestGemmSize = int64_t{1} << 40;

// Counts the cycles that `units` matrix units take for one product. If `units` > 1, the product is
// split by kRows or kTiles, whichever takes fewer cycles. If both take the same number, kRows is
// chosen. The scalesim dataflows have only one array.
//   InvalidArgument  a size is not in [1, kLargestGemmSize];
//                    units > 1 with a scalesim dataflow;
//                    more than 2^63 - 1 cycles.
absl::StatusOr<GemmCycles> CountCycles(const GemmShape& gemm, const ArrayShape& array,
                                       Dataflow dataflow, int64_t units = 1);

}  // namespace systole::emulator

#endif  // SYSTOLE_CLIENT_EMULATOR_ARRAY_CYCLE_MODEL_H_
