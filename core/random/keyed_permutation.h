// A shuffle without memory: a pseudo-random permutation of [0, size) chosen by a key. A value at an
// index, or the index of a value, is computed without the other values. The key is (seed, epoch,
// size, tweak), so other sizes or epochs give unrelated permutations.
//
// A Feistel network permutes the numbers below the smallest power of two >= size. A value that
// leaves [0, size) is permuted again until it comes back ("cycle walking"), so the result is a
// permutation of [0, size). The power of two is less than twice `size`, so a walk takes less than 2
// steps on average.
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
  // O(1), no allocation. Making a permutation and looking up one value takes about 100 ns, so
  // callers may do both for each lookup.
  KeyedPermutation(int64_t size, uint64_t seed, int64_t epoch, uint64_t tweak = 0);

  int64_t size() const { return size_; }

  // The value at `index`, and its inverse: InverseAt(At(i)) == i. Arguments and results lie in
  // [0, size) (CHECK). Expected O(1).
  int64_t At(int64_t index) const;
  int64_t InverseAt(int64_t value) const;
  // The values at `first` and the indexes after it. `first` and first + out.size() lie in [0, size]
  // (CHECK). Takes less than half the time of a separate call for each value.
  void At(int64_t first, absl::Span<int64_t> out) const;

 private:
  // Encrypt() and its inverse, Decrypt(), permute [0, 2^(low_bits_ + high_bits_)).
  void Encrypt(absl::Span<uint64_t> values) const;
  uint64_t Decrypt(uint64_t x) const;
  uint64_t Mix(int round, uint64_t half) const;

  int64_t size_;
  int low_bits_;   // The halves differ by one bit if the domain's width is odd.
  int high_bits_;  // May be 0.
  int rounds_;
  uint64_t key_;
  uint64_t round_step_;
};

}  // namespace systole

#endif  // SYSTOLE_CORE_RANDOM_KEYED_PERMUTATION_H_
