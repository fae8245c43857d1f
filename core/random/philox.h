// Philox4x32-10 of Salmon et al., "Parallel random numbers: as easy as 1, 2, 3" (SC11): a keyed
// bijection on 128-bit counters. Its outputs pass as random. All random numbers of core/random are
// made from these outputs.
//
// Thread-safe: no state.
#ifndef SYSTOLE_CORE_RANDOM_PHILOX_H_
#define SYSTOLE_CORE_RANDOM_PHILOX_H_

#include <array>
#include <cstdint>

namespace systole {

using PhiloxKey = std::array<uint32_t, 2>;
using PhiloxBlock = std::array<uint32_t, 4>;

// Ten rounds. For one key, different counters give different blocks.
constexpr PhiloxBlock Philox4x32(PhiloxBlock counter, PhiloxKey key) {
  for (int round = 0; round < 10; ++round) {
    const uint64_t product0 = uint64_t{0xd2511f53u} * counter[0];
    const uint64_t product1 = uint64_t{0xcd9e8d57u} * counter[2];
    counter = {static_cast<uint32_t>(product1 >> 32) ^ counter[1] ^ key[0],
               static_cast<uint32_t>(product1),
               static_cast<uint32_t>(product0 >> 32) ^ counter[3] ^ key[1],
               static_cast<uint32_t>(product0)};
    key[0] += 0x9e3779b9u;  // Weyl sequences: the golden ratio and sqrt(3) - 1.
    key[1] += 0xbb67ae85u;
  }
  return counter;
}

// The two halves of a 64-bit number, least significant first, as Philox words.
constexpr uint32_t LowWord(uint64_t value) { return static_cast<uint32_t>(value); }
constexpr uint32_t HighWord(uint64_t value) { return static_cast<uint32_t>(value >> 32); }

}  // namespace systole

#endif  // SYSTOLE_CORE_RANDOM_PHILOX_H_
