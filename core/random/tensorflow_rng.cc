#include "core/random/tensorflow_rng.h"

#include <bit>

#include "core/status/check.h"

namespace systole {

TensorFlowRng::TensorFlowRng(const TensorFlowSeed& seed) {
  const auto first = static_cast<uint64_t>(seed[0]);
  const auto second = static_cast<uint64_t>(seed[1]);
  const PhiloxBlock mix =
      Philox4x32({LowWord(first), HighWord(first), LowWord(second), HighWord(second)},
                 {0x3ec8f720u, 0x02461e29u});
  key_ = {mix[0], mix[1]};
  counter_ = {0, 0, mix[2], mix[3]};
}

uint32_t TensorFlowRng::NextU32() {
  if (used_ == 4) {
    block_ = Philox4x32(counter_, key_);
    if (++counter_[0] == 0) ++counter_[1];
    used_ = 0;
  }
  return block_[static_cast<size_t>(used_++)];
}

uint64_t TensorFlowRng::NextU64() {
  const uint64_t low = NextU32();
  return low | (uint64_t{NextU32()} << 32);
}

float TensorFlowRng::UniformFloat() {
  // The low 23 bits as the fraction of a number in [1, 2).
  return std::bit_cast<float>(0x3f800000u | (NextU32() & 0x007fffffu)) - 1.0f;
}

int32_t TensorFlowRng::UniformInt(int32_t limit) {
  SYSTOLE_CHECK(limit > 0);
  return static_cast<int32_t>(NextU32() % static_cast<uint32_t>(limit));
}

TensorFlowSeed FoldIn(const TensorFlowSeed& seed, int64_t data) {
  return {static_cast<int64_t>(TensorFlowRng(seed).NextU64()), data};
}

}  // namespace systole
