// The draws of TensorFlow's stateless random ops on CPU (tf.random.stateless_uniform,
// tf.image.stateless_random_*), to the bit:
//   mix     = Philox(key = 3ec8f720 02461e29, counter = seed[0]:u64le seed[1]:u64le)
//   block n = Philox(key = mix[0] mix[1], counter = n:u64le mix[2] mix[3])
// The first Philox call makes any two seeds differ in all their draws.
//
// Thread-compatible. A small value: copy it freely. A copy makes the same draws as the original
// would make next.
#ifndef SYSTOLE_CORE_RANDOM_TENSORFLOW_RNG_H_
#define SYSTOLE_CORE_RANDOM_TENSORFLOW_RNG_H_

#include <array>
#include <cstdint>

#include "core/random/philox.h"

namespace systole {

// TensorFlow's argument `seed`: a tensor of shape [2]. An int32 seed gives the same draws as the
// int64 seed with the same numbers.
using TensorFlowSeed = std::array<int64_t, 2>;

class TensorFlowRng {
 public:
  explicit TensorFlowRng(const TensorFlowSeed& seed);

  // Uniform over all values. NextU64 takes two words, the first is the low half.
  uint32_t NextU32();
  uint64_t NextU64();

  // stateless_uniform(dtype=float32): a multiple of 2^-23 in [0, 1). Takes one word.
  float UniformFloat();

  // stateless_uniform(dtype=int32, maxval=limit): in [0, limit), the word modulo `limit`. Takes one
  // word. REQUIRES: limit > 0.
  int32_t UniformInt(int32_t limit);

 private:
  PhiloxKey key_;
  PhiloxBlock counter_;  // The counter of the next block.
  PhiloxBlock block_ = {};
  int used_ = 4;  // Words of block_ already drawn.
};

// tf.random.fold_in(seed, data) for `data` of type int64: makes the seed for one of many things,
// such as a record.
TensorFlowSeed FoldIn(const TensorFlowSeed& seed, int64_t data);

}  // namespace systole

#endif  // SYSTOLE_CORE_RANDOM_TENSORFLOW_RNG_H_
