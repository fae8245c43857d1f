#include "client/emulator/chip/product_price.h"

#include <algorithm>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "client/emulator/array/divide_up.h"
#include "core/status/status_macros.h"

namespace systole::emulator {
namespace {

// The most cycles that a product may take, a quarter of an hour at 1 GHz. With this limit, the sums
// over all layers of a model fit into an int64_t.
constexpr double kMostCycles = 1e12;

double Real(int64_t a) { return static_cast<double>(a); }

}  // namespace

// In the dataflow ws-db, the repeats of a product follow each other without a gap, as the tiles of
// one product do. So all repeats are priced as one product with a longer K. The K of each repeat is
// rounded up to whole slabs of array_rows terms. In SCALE-Sim's dataflows, each repeat starts when
// the previous one has ended.
absl::StatusOr<Op> PriceProduct(const Product& product, const v1::Chip& chip, Dataflow dataflow) {
  const ArrayShape array = {.rows = chip.array_rows(), .columns = chip.array_columns()};
  GemmShape priced = product.gemm;
  int64_t serial = product.repeats;
  if (dataflow == Dataflow::kWsDb && product.repeats > 1) {
    const int64_t slabs = DivideUp(priced.k, array.rows);
    if (Real(slabs) * Real(array.rows) * Real(product.repeats) > Real(kLargestGemmSize)) {
      return absl::InvalidArgumentError(absl::StrCat(product.repeats, " products of K = ", priced.k,
                                                     " are too many; want a smaller batch"));
    }
    priced.k = slabs * array.rows * product.repeats;
    serial = 1;
  }
  SYSTOLE_ASSIGN_OR_RETURN(const GemmCycles cost,
                           CountCycles(priced, array, dataflow, chip.matrix_units_per_core()));
  const double cycles = Real(cost.cycles) * Real(serial);
  if (cycles > kMostCycles) {
    return absl::InvalidArgumentError(
        absl::StrCat("the product takes ", cycles, " cycles, want at most ", kMostCycles));
  }
  const GemmShape& gemm = product.gemm;
  const double macs_per_place = Real(std::max<int64_t>(1, chip.macs_per_place()));
  return Op{.kind = OpKind::kGemm,
            .gemm = gemm,
            .repeats = product.repeats,
            .tiles = cost.folds * serial,
            .cycles = cost.cycles * serial,
            .macs = Real(gemm.m) * Real(gemm.k) * Real(gemm.n) * Real(product.repeats),
            .matrix_s = cycles / (chip.clock_hz() * macs_per_place)};
}

}  // namespace systole::emulator
