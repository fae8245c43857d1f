#include "client/emulator/array/cycle_model.h"

#include <algorithm>
#include <limits>

#include "absl/numeric/int128.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "client/emulator/array/divide_up.h"
#include "core/status/check.h"
#include "core/status/status_macros.h"

namespace systole::emulator {
namespace {

constexpr Dataflow kDataflows[] = {Dataflow::kWsDb, Dataflow::kScaleSimOs, Dataflow::kScaleSimWs,
                                   Dataflow::kScaleSimIs};

// Sizes are at most 2^40. So a product has at most 2^80 folds, which take less than 2^123 cycles.
using Wide = absl::uint128;

absl::Status CheckSize(absl::string_view what, int64_t value) {
  if (value >= 1 && value <= kLargestGemmSize) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(what, " is ", value, ", want 1 to ", kLargestGemmSize));
}

// Two of the product's dimensions lie on the array's rows and columns. The third one streams.
struct Mapping {
  int64_t on_rows;
  int64_t on_columns;
  int64_t streamed;
};

Mapping MappingOf(const GemmShape& gemm, Dataflow dataflow) {
  switch (dataflow) {
    case Dataflow::kScaleSimOs:
      return {gemm.m, gemm.n, gemm.k};
    case Dataflow::kScaleSimIs:
      return {gemm.k, gemm.m, gemm.n};
    case Dataflow::kWsDb:
    case Dataflow::kScaleSimWs:
      break;
  }
  return {gemm.k, gemm.n, gemm.m};
}

Wide CyclesOf(Wide folds, int64_t streamed, const ArrayShape& array, Dataflow dataflow) {
  const Wide r = array.rows, c = array.columns, t = streamed;
  switch (dataflow) {
    case Dataflow::kWsDb:
      return r + (folds - 1) * std::max(t, r) + t + r + c - 2;
    case Dataflow::kScaleSimOs:
      return folds * (r + c + t - 2) - 1;
    case Dataflow::kScaleSimWs:
    case Dataflow::kScaleSimIs:
      break;
  }
  return folds * (2 * r + c + t - 2) - 1;
}

}  // namespace

absl::string_view DataflowName(Dataflow dataflow) {
  switch (dataflow) {
    case Dataflow::kWsDb:
      return "ws-db";
    case Dataflow::kScaleSimOs:
      return "scalesim-os";
    case Dataflow::kScaleSimWs:
      return "scalesim-ws";
    case Dataflow::kScaleSimIs:
      return "scalesim-is";
  }
  SYSTOLE_CHECK(false);
  return "";
}

absl::StatusOr<Dataflow> ParseDataflow(absl::string_view name) {
  for (const Dataflow dataflow : kDataflows) {
    if (name == DataflowName(dataflow)) return dataflow;
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "there is no dataflow '", name, "'; want ws-db, scalesim-os, scalesim-ws or scalesim-is"));
}

absl::string_view UnitSplitName(UnitSplit split) {
  switch (split) {
    case UnitSplit::kNone:
      return "none";
    case UnitSplit::kRows:
      return "rows";
    case UnitSplit::kTiles:
      return "tiles";
  }
  SYSTOLE_CHECK(false);
  return "";
}

absl::StatusOr<GemmCycles> CountCycles(const GemmShape& gemm, const ArrayShape& array,
                                       Dataflow dataflow, int64_t units) {
  SYSTOLE_RETURN_IF_ERROR(CheckSize("M", gemm.m));
  SYSTOLE_RETURN_IF_ERROR(CheckSize("K", gemm.k));
  SYSTOLE_RETURN_IF_ERROR(CheckSize("N", gemm.n));
  SYSTOLE_RETURN_IF_ERROR(CheckSize("the array's number of rows", array.rows));
  SYSTOLE_RETURN_IF_ERROR(CheckSize("the array's number of columns", array.columns));
  SYSTOLE_RETURN_IF_ERROR(CheckSize("the number of matrix units", units));
  if (units > 1 && dataflow != Dataflow::kWsDb) {
    return absl::InvalidArgumentError(absl::StrCat(DataflowName(dataflow),
                                                   " counts the cycles of one array, not of ",
                                                   units, "; use ws-db for several arrays"));
  }
  const Mapping mapping = MappingOf(gemm, dataflow);
  const Wide folds = DivideUp<Wide>(mapping.on_rows, array.rows) *
                     DivideUp<Wide>(mapping.on_columns, array.columns);
  GemmCycles result;
  Wide cycles = CyclesOf(folds, mapping.streamed, array, dataflow);
  if (units > 1) {
    const auto rows_each = static_cast<int64_t>(DivideUp<Wide>(mapping.streamed, units));
    const Wide by_rows = CyclesOf(folds, rows_each, array, dataflow);
    const Wide by_tiles = CyclesOf(DivideUp<Wide>(folds, units), mapping.streamed, array, dataflow);
    result.split = by_rows <= by_tiles ? UnitSplit::kRows : UnitSplit::kTiles;
    cycles = std::min(by_rows, by_tiles);
  }
  constexpr Wide kMost = std::numeric_limits<int64_t>::max();
  if (cycles > kMost || folds > kMost) {
    return absl::InvalidArgumentError(
        absl::StrCat("M,K,N = ", gemm.m, ",", gemm.k, ",", gemm.n, " on a ", array.rows, "x",
                     array.columns, " array takes more than 2^63 - 1 cycles; want smaller sizes"));
  }
  result.folds = static_cast<int64_t>(folds);
  result.cycles = static_cast<int64_t>(cycles);
  const double macs = static_cast<double>(Wide(gemm.m) * Wide(gemm.k) * Wide(gemm.n));
  const double places = static_cast<double>(Wide(array.rows) * Wide(array.columns) * Wide(units));
  result.utilisation = macs / (static_cast<double>(std::max<int64_t>(result.cycles, 1)) * places);
  return result;
}

}  // namespace systole::emulator
