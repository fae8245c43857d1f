// XXH3 is a fast hash. An attacker can make other bytes with the same hash. A hash of 64 bits
// (fingerprint) identifies a dataset, an order or a spec. A hash of 128 bits is the digest of a
// slice or of an example, or the key of a value in a cache. The hashes are the same on every
// machine.
//
// Thread-compatible.
#ifndef SYSTOLE_CORE_CHECKSUM_XXH3_H_
#define SYSTOLE_CORE_CHECKSUM_XXH3_H_

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "absl/strings/string_view.h"

namespace systole {

// XXH3-64 of `bytes` with seed 0.
uint64_t Xxh3(absl::string_view bytes);

// XXH3 of bytes that arrive in pieces. The hash does not show where one piece ends and the next one
// begins. So a caller that hashes several fields must mark where each field ends, for example by
// hashing the field's length first. Takes about 600 bytes on the heap. Movable, not copyable; a
// moved-from hasher may only be destroyed or assigned to.
class Xxh3Hasher {
 public:
  Xxh3Hasher();
  ~Xxh3Hasher();
  Xxh3Hasher(Xxh3Hasher&&) noexcept;
  Xxh3Hasher& operator=(Xxh3Hasher&&) noexcept;

  void Update(absl::string_view bytes);

  // Appends `value` as 8 bytes, least significant first, on every machine.
  void UpdateU64(uint64_t value);

  // Each Digest function returns the hash of all bytes since construction or Reset(). It changes
  // nothing, so more bytes may be appended afterwards. Digest64() equals Xxh3() of these bytes.
  uint64_t Digest64() const;

  // XXH3-128 (seed 0) as 32 lower-case hex digits in canonical (big-endian) order, as printed by
  // `xxhsum -H2`.
  std::string Digest128Hex() const;

  // XXH3-128 as two numbers: first the upper, then the lower 64 bits.
  std::pair<uint64_t, uint64_t> Digest128() const;

  // Forgets all bytes.
  void Reset();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace systole

#endif  // SYSTOLE_CORE_CHECKSUM_XXH3_H_
