#include "core/random/counter_rng.h"

#include "core/status/check.h"

namespace systole {

CounterRng::CounterRng(uint64_t seed, int64_t epoch, int64_t record, uint32_t purpose) {
  const uint64_t record_bits = static_cast<uint64_t>(record);
  const uint64_t epoch_bits = static_cast<uint64_t>(epoch);
  const PhiloxBlock derived = Philox4x32(
      {LowWord(record_bits), HighWord(record_bits), LowWord(epoch_bits), HighWord(epoch_bits)},
      {LowWord(seed), HighWord(seed)});
  key_ = {derived[2], derived[3]};
  counter_ = {0, purpose, derived[0], derived[1]};
}

uint32_t CounterRng::NextU32() {
  if (used_ == 4) {
    block_ = Philox4x32(counter_, key_);
    ++counter_[0];
    used_ = 0;
  }
  return block_[used_++];
}

uint64_t CounterRng::NextU64() {
  const uint64_t low = NextU32();
  return low | (uint64_t{NextU32()} << 32);
}

int64_t CounterRng::UniformInt(int64_t begin, int64_t end) {
  SYSTOLE_CHECK(begin < end);
  // The arithmetic is unsigned, because end - begin may exceed int64. The high half of draw * range
  // lies in [0, range). Each value of [0, range) comes from 2^64 / range draws, rounded down or up.
  const uint64_t range = static_cast<uint64_t>(end) - static_cast<uint64_t>(begin);
  const unsigned __int128 product = static_cast<unsigned __int128>(NextU64()) * range;
  return static_cast<int64_t>(static_cast<uint64_t>(begin) + static_cast<uint64_t>(product >> 64));
}

float CounterRng::UniformFloat() {
  return static_cast<float>(NextU32() >> 8) * 0x1p-24f;  // Exact: 24 bits fit a float.
}

}  // namespace systole
