// A shuffle that stores no list: a pseudo-random permutation of [0, size), chosen by a key. The
// value at one index, or the index of one value, is computed without the other values. The key is
// (seed, epoch, size, tweak). So another seed, epoch, size or tweak gives an unrelated permutation.
//
// A Feistel network permutes the numbers below the smallest power of two >= size. If its result is
// not in [0, size), the network permutes the result again, until a result is in [0, size) ("cycle
// walking"). So all results together are a permutation of [0, size). The power of two is less than
// twice `size`, so a value takes less than 2 passes on average.
//
// Thread-compatible: const throughout. Not cryptographic.
#ifndef SYSTOLE_CORE_RANDOM_KEYED_PERMUTATION_H_
#define SYSTOLE_CORE_RANDOM_KEYED_PERMUTATION_H_

#include <cstdint>

#include "absl/types/span.h"

namespace systole {

class KeyedPermutation {
 public:
  static constexpr int64_t kMaxSize = int64_t{1} << 62;

  // REQUIRES: `size` in [1, kMaxSize] (CHECK). `tweak` distinguishes permutations of one epoch.
  // O(1), no allocation. The constructor and one look-up together take about 100 ns, so a caller
  // may make a new object for each look-up.
  KeyedPermutation(int64_t size, uint64_t seed, int64_t epoch, uint64_t tweak = 0);

  int64_t size() const { return size_; }

  // At() is the value at `index`. InverseAt() is the index of `value`: InverseAt(At(i)) == i.
  // Arguments and results lie in [0, size) (CHECK). O(1) on average.
  int64_t At(int64_t index) const;
  int64_t InverseAt(int64_t value) const;
  // The values at the indexes [first, first + out.size()). Both ends lie in [0, size] (CHECK).
  // Takes less than half the time of a separate call for each value.
  void At(int64_t first, absl::Span<int64_t> out) const;

 private:
  // Encrypt() and its inverse, Decrypt(), permute [0, 2^(low_bits_ + high_bits_)).
  void Encrypt(absl::Span<uint64_t> values) const;
  uint64_t Decrypt(uint64_t x) const;
  uint64_t Mix(int round, uint64_t half) const;

  int64_t size_;
  int low_bits_;   // Equal to high_bits_, or one more.
  int high_bits_;  // May be 0.
  int rounds_;
  uint64_t key_;
  uint64_t round_step_;
};

}  // namespace systole

#endif  // SYSTOLE_CORE_RANDOM_KEYED_PERMUTATION_H_
