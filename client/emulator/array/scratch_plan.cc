#include "client/emulator/array/scratch_plan.h"

#include <algorithm>

#include "client/emulator/array/device_array.h"
#include "client/emulator/array/divide_up.h"
#include "client/emulator/array/fast_matrix_unit.h"
#include "client/emulator/array/matrix_unit.h"
#include "client/emulator/array/tile_limits.h"

namespace systole::emulator {
void ScratchPlan::AddMultiply(int64_t k, int64_t n) {
  packed_a_ = std::max(packed_a_, kMostBlockRows * kArrayRows);
  packed_b_ = std::max(packed_b_, k * RoundUp(n, kMostTileColumns));
  widest_ = std::max(widest_, k);
}

void ScratchPlan::AddMultiplyTransposed(int64_t m, int64_t n) {
  const int64_t columns = RoundUp(n, kMostTileColumns);
  packed_a_ = std::max(packed_a_, kArrayRows * RoundUp(m, kMostTileRows));
  packed_b_ = std::max(packed_b_, kArrayRows * columns);
  row_ = std::max(row_, columns);
  widest_ = std::max({widest_, m, n});
}

int64_t ScratchPlan::bytes() const {
  constexpr int64_t kTile = kMostTileRows * kMostTileColumns;
  const int64_t floats = packed_a_ + packed_b_ + row_ + kTile + 4 * kArraySlack;
  const int64_t blocks = numerics_ == Numerics::kFast
                             ? 2 * (FastMatrixUnit::MostBlockElements(widest_) + kArraySlack)
                             : 0;
  return floats * static_cast<int64_t>(sizeof(float)) +
         blocks * static_cast<int64_t>(sizeof(uint16_t));
}

}  // namespace systole::emulator
