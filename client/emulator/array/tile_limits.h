// The largest tiles and blocks into which matrix_unit.cc cuts a product.
//
// Thread-safe: constants.
#ifndef SYSTOLE_CLIENT_EMULATOR_ARRAY_TILE_LIMITS_H_
#define SYSTOLE_CLIENT_EMULATOR_ARRAY_TILE_LIMITS_H_

#include <cstdint>

namespace systole::emulator {

// The limits hold for every instruction set.
inline constexpr int64_t kMostTileRows = 12, kMostTileColumns = 32, kMostBlockRows = 192;

}  // namespace systole::emulator

#endif  // SYSTOLE_CLIENT_EMULATOR_ARRAY_TILE_LIMITS_H_
