#include "core/checksum/xxh3.h"

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"

namespace systole {
namespace {

// The buffer for which xxHash publishes its sanity values. A generator with two primes makes its
// bytes.
std::string SanityBuffer(size_t size) {
  std::string bytes;
  uint64_t generator = 2654435761u;
  for (size_t i = 0; i < size; ++i) {
    bytes.push_back(static_cast<char>(generator >> 56));
    generator *= 11400714785074694797u;
  }
  return bytes;
}

struct Vector {
  size_t size;
  uint64_t hash64;
  const char* hash128;
};

// XXH3 has separate code for the sizes 0, 1-3, 4-8, 9-16, 17-128, 129-240 and larger ones (blocks).
// The table has sizes on both sides of each border.
const Vector kPublished[] = {
    {0, 0x2d06800538d394c2u, "99aa06d3014798d86001c324468d497f"},
    {1, 0xc44bdff4074eecdbu, "a6cd5e9392000f6ac44bdff4074eecdb"},
    {6, 0x27b56a84cd2d7325u, "082afe0b8162d12a3e7039bdda43cfc6"},
    {12, 0xa713daf0dfbb77e7u, "6e3efd8fc7802b18061a192713f69ad9"},
    {24, 0xa3fe70bf9d3510ebu, "0ce966e4678d37611e7044d28b1b901d"},
    {48, 0x397da259ecba1f11u, "a002ac4e5478227ef942219aed80f67b"},
    {80, 0xbcdefbbb2c47c90au, "fdf2cefde9eaac8a454ae6bf7a8a532d"},
    {195, 0xcd94217ee362ec3au, "7729543a26b207ee3fb593c086a66075"},
    {403, 0xcdeb804d65c6dea4u, "1b6de21e332dd73dcdeb804d65c6dea4"},
    {512, 0x617e49599013cb6bu, "18d2d110dcc9bca1617e49599013cb6b"},
    {2048, 0xdd59e2c3a5f038e0u, "f736557fd47073a5dd59e2c3a5f038e0"},
    {2240, 0x6e73a90539cf2948u, "ccb134fbfa7ce49d6e73a90539cf2948"},
    {2367, 0xcb37aeb9e5d361edu, "e89c0f6ff369b427cb37aeb9e5d361ed"},
};

TEST(Xxh3Test, MatchesPublishedVectors) {
  for (const Vector& vector : kPublished) {
    SCOPED_TRACE(vector.size);
    const std::string bytes = SanityBuffer(vector.size);
    Xxh3Hasher hasher;
    hasher.Update(bytes);
    EXPECT_EQ(Xxh3(bytes), vector.hash64);
    EXPECT_EQ(hasher.Digest64(), vector.hash64);
    EXPECT_EQ(hasher.Digest128Hex(), vector.hash128);
  }
}

TEST(Xxh3HasherTest, PiecesGiveTheDigestOfTheWhole) {
  const std::string bytes = SanityBuffer(2367);
  for (const size_t piece : {1, 7, 64, 255, 256, 257, 1024}) {
    Xxh3Hasher hasher;
    for (size_t at = 0; at < bytes.size(); at += piece) {
      hasher.Update(absl::string_view(bytes).substr(at, piece));
      hasher.Update("");
      hasher.Update(absl::string_view());
    }
    EXPECT_EQ(hasher.Digest64(), 0xcb37aeb9e5d361edu) << "piece " << piece;
    EXPECT_EQ(hasher.Digest128Hex(), "e89c0f6ff369b427cb37aeb9e5d361ed") << "piece " << piece;
  }
}

TEST(Xxh3HasherTest, UpdatesMayFollowADigest) {
  Xxh3Hasher hasher;
  hasher.Update("ab");
  EXPECT_EQ(hasher.Digest64(), Xxh3("ab"));
  EXPECT_EQ(hasher.Digest64(), Xxh3("ab"));
  hasher.Update("c");
  EXPECT_EQ(hasher.Digest64(), Xxh3("abc"));
}

TEST(Xxh3HasherTest, UpdateU64HashesTheEightBytesInLittleEndianOrder) {
  Xxh3Hasher hasher;
  hasher.UpdateU64(0x0807060504030201u);
  EXPECT_EQ(hasher.Digest64(), Xxh3("\x01\x02\x03\x04\x05\x06\x07\x08"));
}

TEST(Xxh3HasherTest, ResetStartsOver) {
  Xxh3Hasher hasher;
  hasher.Update(SanityBuffer(500));
  hasher.Reset();
  EXPECT_EQ(hasher.Digest128Hex(), "99aa06d3014798d86001c324468d497f");
  hasher.Update("abc");
  EXPECT_EQ(hasher.Digest64(), Xxh3("abc"));
}

TEST(Xxh3HasherTest, AMovedHasherKeepsItsState) {
  Xxh3Hasher first;
  first.Update("ab");
  Xxh3Hasher second = std::move(first);
  second.Update("c");
  EXPECT_EQ(second.Digest64(), Xxh3("abc"));
  std::vector<Xxh3Hasher> many(3);  // One hasher per core, as a digest over a feed has them.
  many[1] = std::move(second);
  EXPECT_EQ(many[1].Digest64(), Xxh3("abc"));
  EXPECT_EQ(many[2].Digest64(), Xxh3(""));
}

}  // namespace
}  // namespace systole
