#include "core/checksum/crc32.h"

#include <cstdint>
#include <string>

#include "gtest/gtest.h"

namespace systole {
namespace {

// Computes the CRC bit by bit, straight from the definition.
uint32_t SlowCrc32(absl::string_view bytes) {
  uint32_t crc = 0xffffffffu;
  for (const char c : bytes) {
    crc ^= static_cast<uint8_t>(c);
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1) ? 0xedb88320u : 0);
  }
  return ~crc;
}

// The customary check value, which is the CRC of "123456789", and the CRC at the end of every PNG
// file.
TEST(Crc32Test, MatchesPublishedValues) {
  EXPECT_EQ(Crc32("123456789"), 0xcbf43926u);
  EXPECT_EQ(Crc32("IEND"), 0xae426082u);
  EXPECT_EQ(Crc32(""), 0u);
}

// ISA-L has different code for short, medium and long inputs, and for the bytes left over at both
// ends.
TEST(Crc32Test, MatchesTheDefinitionAtEverySizeAndAlignment) {
  std::string bytes(4200, '\0');
  uint32_t x = 1;
  for (char& c : bytes) c = static_cast<char>((x = x * 1664525u + 1013904223u) >> 24);
  for (size_t size = 0; size <= 1100; ++size) {
    const absl::string_view piece = absl::string_view(bytes).substr(size % 17, size);
    ASSERT_EQ(Crc32(piece), SlowCrc32(piece)) << "size " << size;
  }
  EXPECT_EQ(Crc32(bytes), SlowCrc32(bytes));
}

}  // namespace
}  // namespace systole
