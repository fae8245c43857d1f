// Limits of how a matrix product is cut.
//
// Thread-safe: constants.
#ifndef SYSTOLE_CLIENT_EMULATOR_ARRAY_TILE_LIMITS_H_
#define SYSTOLE_CLIENT_EMULATOR_ARRAY_TILE_LIMITS_H_

#include <cstdint>

namespace systole::emulator {

// The largest tiles and blocks that a product is cut into on any instruction set (matrix_unit.cc).
inline constexpr int64_t kMostTileRows = 12, kMostTileColumns = 32, kMostBlockRows = 192;

}  // namespace systole::emulator

#endif  // SYSTOLE_CLIENT_EMULATOR_ARRAY_TILE_LIMITS_H_
