// Random draws for one use (the purpose) in one record of one epoch. The n-th word of random bits
// is a pure function of (seed, epoch, record, purpose, n), and no state passes from one record to
// the next. So any thread or server that processes the record draws the same numbers.
//   d       = Philox(key = seed, counter = record:u64le epoch:u64le)
//   block n = Philox(key = d[2] d[3], counter = n purpose d[0] d[1])
// A block has four words. For one key, Philox is a bijection of the counter. So two (record, epoch)
// pairs of one seed never have the same d, and never the same stream of blocks.
//
// Thread-compatible. A small value: copy it freely. The copy then makes the same draws as the
// original.
#ifndef SYSTOLE_CORE_RANDOM_COUNTER_RNG_H_
#define SYSTOLE_CORE_RANDOM_COUNTER_RNG_H_

#include <cstdint>

#include "core/random/philox.h"

namespace systole {

class CounterRng {
 public:
  // Each use of random numbers (crop, flip, ...) has its own `purpose`. So if one use draws more or
  // fewer numbers, the draws of the other uses stay the same. The draws repeat after 2^34 words,
  // far more than one record needs.
  CounterRng(uint64_t seed, int64_t epoch, int64_t record, uint32_t purpose);

  // Uniform over all values. NextU64 takes two words, and the first word is the low half.
  uint32_t NextU32();
  uint64_t NextU64();

  // Uniform in [begin, end). REQUIRES: begin < end (CHECK). Always takes two words, so later draws
  // do not depend on the range. The probability of each value differs from 1 / (end - begin) by
  // less than 2^-64, so the relative error is less than (end - begin) / 2^64.
  int64_t UniformInt(int64_t begin, int64_t end);

  // Uniform multiple of 2^-24 in [0, 1). Takes one word.
  float UniformFloat();

 private:
  PhiloxKey key_;
  PhiloxBlock counter_;  // The counter of the next block.
  PhiloxBlock block_;
  int used_ = 4;  // Words of block_ already drawn.
};

}  // namespace systole

#endif  // SYSTOLE_CORE_RANDOM_COUNTER_RNG_H_
