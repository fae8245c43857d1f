// The cost of a matrix product on one core of a chip.
//
// Thread-safe: no state.
#ifndef SYSTOLE_CLIENT_EMULATOR_CHIP_PRODUCT_PRICE_H_
#define SYSTOLE_CLIENT_EMULATOR_CHIP_PRODUCT_PRICE_H_

#include "absl/status/statusor.h"
#include "client/emulator/array/cycle_model.h"
#include "client/emulator/chip/chip_program.h"
#include "client/emulator/chip/layer_products.h"
#include "systole/v1/chip.pb.h"

namespace systole::emulator {

// Returns an Op of kind kGemm with shape, repeats, tiles, cycles, macs and matrix_s. The caller
// fills in the other fields. matrix_s is the time of `cycles` / Chip.macs_per_place clock cycles.
// All of the core's matrix units work on the product.
//   InvalidArgument  the cases of CountCycles, more than 10^12 cycles, or too many repeats.
absl::StatusOr<Op> PriceProduct(const Product& product, const v1::Chip& chip, Dataflow dataflow);

}  // namespace systole::emulator

#endif  // SYSTOLE_CLIENT_EMULATOR_CHIP_PRODUCT_PRICE_H_
