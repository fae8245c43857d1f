#include "core/checksum/xxh3.h"

#define XXH_STATIC_LINKING_ONLY  // Makes XXH3_state_t a complete type.
#include <xxhash.h>

#include "absl/strings/escaping.h"
#include "core/status/check.h"

namespace systole {

uint64_t Xxh3(absl::string_view bytes) { return XXH3_64bits(bytes.data(), bytes.size()); }

// One state serves the 64-bit and the 128-bit hash, because they differ only in the digest at the
// end.
struct Xxh3Hasher::State {
  XXH3_state_t xxh;  // Its type is aligned to 64 bytes, which operator new honours.
};

Xxh3Hasher::Xxh3Hasher() : state_(std::make_unique<State>()) { Reset(); }
Xxh3Hasher::~Xxh3Hasher() = default;
Xxh3Hasher::Xxh3Hasher(Xxh3Hasher&&) noexcept = default;
Xxh3Hasher& Xxh3Hasher::operator=(Xxh3Hasher&&) noexcept = default;

void Xxh3Hasher::Reset() {
  XXH3_INITSTATE(&state_->xxh);
  SYSTOLE_CHECK(XXH3_128bits_reset(&state_->xxh) == XXH_OK);
}

void Xxh3Hasher::Update(absl::string_view bytes) {
  if (bytes.empty()) return;  // A null pointer is an error to xxHash, even with size 0.
  SYSTOLE_CHECK(XXH3_128bits_update(&state_->xxh, bytes.data(), bytes.size()) == XXH_OK);
}

void Xxh3Hasher::UpdateU64(uint64_t value) {
  char bytes[8];
  for (int i = 0; i < 8; ++i) bytes[i] = static_cast<char>(value >> (8 * i));
  Update(absl::string_view(bytes, sizeof(bytes)));
}

uint64_t Xxh3Hasher::Digest64() const { return XXH3_64bits_digest(&state_->xxh); }

std::pair<uint64_t, uint64_t> Xxh3Hasher::Digest128() const {
  const XXH128_hash_t hash = XXH3_128bits_digest(&state_->xxh);
  return {hash.high64, hash.low64};
}

std::string Xxh3Hasher::Digest128Hex() const {
  XXH128_canonical_t canonical;
  XXH128_canonicalFromHash(&canonical, XXH3_128bits_digest(&state_->xxh));
  return absl::BytesToHexString(
      absl::string_view(reinterpret_cast<const char*>(canonical.digest), sizeof(canonical.digest)));
}

}  // namespace systole
