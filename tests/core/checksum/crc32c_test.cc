#include "core/checksum/crc32c.h"

#include <sys/mman.h>

#include <cstdint>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace systole {
namespace {

using ::testing::Each;

// Computes the CRC bit by bit, straight from the definition.
uint32_t SlowCrc32c(absl::string_view bytes) {
  uint32_t crc = 0xffffffffu;
  for (const char c : bytes) {
    crc ^= static_cast<uint8_t>(c);
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1) ? 0x82f63b78u : 0);
  }
  return ~crc;
}

std::string Bytes(size_t size) {
  std::string bytes(size, '\0');
  uint32_t x = 1;
  for (char& c : bytes) c = static_cast<char>((x = x * 1664525u + 1013904223u) >> 24);
  return bytes;
}

// The vectors are from RFC 3720, appendix B.4. "123456789" is the usual input to check a CRC with.
TEST(Crc32cTest, MatchesPublishedVectors) {
  std::string ascending, descending;
  for (int i = 0; i < 32; ++i) {
    ascending.push_back(static_cast<char>(i));
    descending.push_back(static_cast<char>(31 - i));
  }
  const std::string read_command(
      "\x01\xc0\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00"
      "\x14\x00\x00\x00\x00\x00\x04\x00\x00\x00\x00\x14\x00\x00\x00\x18"
      "\x28\x00\x00\x00\x00\x00\x00\x00\x02\x00\x00\x00\x00\x00\x00\x00",
      48);
  EXPECT_EQ(Crc32c(std::string(32, '\0')), 0x8a9136aau);
  EXPECT_EQ(Crc32c(std::string(32, '\xff')), 0x62a8ab43u);
  EXPECT_EQ(Crc32c(ascending), 0x46dd794eu);
  EXPECT_EQ(Crc32c(descending), 0x113fdb5cu);
  EXPECT_EQ(Crc32c(read_command), 0xd9963a56u);
  EXPECT_EQ(Crc32c("123456789"), 0xe3069283u);
  EXPECT_EQ(Crc32c(""), 0u);
}

// ISA-L has different code for short, medium and long inputs, and for the bytes at both ends that
// do not fill a whole block.
TEST(Crc32cTest, MatchesTheDefinitionAtEverySizeAndAlignment) {
  const std::string bytes = Bytes(4200);
  for (size_t size = 0; size <= 1100; ++size) {
    const absl::string_view piece = absl::string_view(bytes).substr(size % 17, size);
    ASSERT_EQ(Crc32c(piece), SlowCrc32c(piece)) << "size " << size;
  }
  for (const size_t size : {2047, 2048, 2049, 4095, 4096, 4097}) {
    const absl::string_view piece = absl::string_view(bytes).substr(3, size);
    ASSERT_EQ(Crc32c(piece), SlowCrc32c(piece)) << "size " << size;
  }
}

TEST(Crc32cTest, Crc32cOfU64IsTheCrcOfItsLittleEndianBytes) {
  EXPECT_EQ(Crc32cOfU64(0x3837363534333231u), Crc32c("12345678"));
  for (const uint64_t value : {uint64_t{0}, uint64_t{784}, ~uint64_t{0}, uint64_t{1} << 63}) {
    std::string bytes;
    for (int i = 0; i < 8; ++i) bytes.push_back(static_cast<char>(value >> (8 * i)));
    EXPECT_EQ(Crc32cOfU64(value), SlowCrc32c(bytes)) << value;
  }
}

TEST(Crc32cTest, ExtendingEqualsTheWholeForEveryCut) {
  const std::string bytes = Bytes(777);
  const uint32_t whole = Crc32c(bytes);
  for (size_t cut = 0; cut <= bytes.size(); ++cut) {
    const uint32_t head = Crc32c(absl::string_view(bytes).substr(0, cut));
    ASSERT_EQ(ExtendCrc32c(head, absl::string_view(bytes).substr(cut)), whole) << "cut " << cut;
  }
}

TEST(Crc32cTest, EachFlippedBitChangesTheCrc) {
  std::string bytes = Bytes(64);
  const uint32_t good = Crc32c(bytes);
  for (size_t bit = 0; bit < bytes.size() * 8; ++bit) {
    bytes[bit / 8] ^= static_cast<char>(1 << (bit % 8));
    EXPECT_NE(Crc32c(bytes), good) << "bit " << bit;
    bytes[bit / 8] ^= static_cast<char>(1 << (bit % 8));
  }
}

TEST(Crc32cTest, MaskRotatesRightBy15AndAddsTheConstant) {
  static_assert(MaskCrc32c(0) == 0xa282ead8u);
  static_assert(MaskCrc32c(0x00008000u) == 0xa282ead9u);
  static_assert(MaskCrc32c(1) == 0xa284ead8u);
  static_assert(MaskCrc32c(0xffffffffu) == 0xa282ead7u);
  // A TFRecord with an empty payload is eight bytes 00, and then 29 03 98 07 d8 ea 82 a2.
  EXPECT_EQ(MaskCrc32c(Crc32c(std::string(8, '\0'))), 0x07980329u);
  EXPECT_EQ(MaskCrc32c(Crc32c("")), 0xa282ead8u);
  EXPECT_EQ(MaskCrc32c(Crc32c("abc")), 0x21f1576eu);  // The value that a TFRecord stores.
}

#ifdef __x86_64__  // No other processor has upper parts (upper_parts.h).

// Sets every bit of each vector register. The asm statement does not list these registers as
// changed. If it did, the compiler would clear the upper parts at the end of the function. The list
// is not needed: callers of a function assume that it overwrites these registers.
__attribute__((target("avx"), noinline)) void FillVectorRegisters() {
  asm volatile(
      "vcmptrueps %%ymm0, %%ymm0, %%ymm0\n\tvcmptrueps %%ymm1, %%ymm1, %%ymm1\n\t"
      "vcmptrueps %%ymm2, %%ymm2, %%ymm2\n\tvcmptrueps %%ymm3, %%ymm3, %%ymm3\n\t"
      "vcmptrueps %%ymm4, %%ymm4, %%ymm4\n\tvcmptrueps %%ymm5, %%ymm5, %%ymm5\n\t"
      "vcmptrueps %%ymm6, %%ymm6, %%ymm6\n\tvcmptrueps %%ymm7, %%ymm7, %%ymm7\n\t"
      "vcmptrueps %%ymm8, %%ymm8, %%ymm8\n\tvcmptrueps %%ymm9, %%ymm9, %%ymm9\n\t"
      "vcmptrueps %%ymm10, %%ymm10, %%ymm10\n\tvcmptrueps %%ymm11, %%ymm11, %%ymm11\n\t"
      "vcmptrueps %%ymm12, %%ymm12, %%ymm12\n\tvcmptrueps %%ymm13, %%ymm13, %%ymm13\n\t"
      "vcmptrueps %%ymm14, %%ymm14, %%ymm14\n\tvcmptrueps %%ymm15, %%ymm15, %%ymm15" ::);
}

// Stores the upper part of each vector register: the bits above the lower 128.
__attribute__((target("avx"))) void StoreUpperParts(uint8_t (&to)[16][16]) {
  asm volatile(
      "vextractf128 $1, %%ymm0, 0x00(%0)\n\tvextractf128 $1, %%ymm1, 0x10(%0)\n\t"
      "vextractf128 $1, %%ymm2, 0x20(%0)\n\tvextractf128 $1, %%ymm3, 0x30(%0)\n\t"
      "vextractf128 $1, %%ymm4, 0x40(%0)\n\tvextractf128 $1, %%ymm5, 0x50(%0)\n\t"
      "vextractf128 $1, %%ymm6, 0x60(%0)\n\tvextractf128 $1, %%ymm7, 0x70(%0)\n\t"
      "vextractf128 $1, %%ymm8, 0x80(%0)\n\tvextractf128 $1, %%ymm9, 0x90(%0)\n\t"
      "vextractf128 $1, %%ymm10, 0xa0(%0)\n\tvextractf128 $1, %%ymm11, 0xb0(%0)\n\t"
      "vextractf128 $1, %%ymm12, 0xc0(%0)\n\tvextractf128 $1, %%ymm13, 0xd0(%0)\n\t"
      "vextractf128 $1, %%ymm14, 0xe0(%0)\n\tvextractf128 $1, %%ymm15, 0xf0(%0)"
      :
      : "r"(&to[0][0])
      : "memory");
}

// SSE code is slow while the upper parts are not empty, so Crc32c() must leave them empty. The test
// fills them before each call, because ISA-L uses them only on some CPUs. A CPU without AVX has no
// upper parts, and it traps on the instruction that clears them. On such a CPU the test shows that
// Crc32c() does not execute this instruction.
TEST(Crc32cTest, LeavesTheUpperPartsOfVectorRegistersEmpty) {
  const bool has_upper_parts = __builtin_cpu_supports("avx");
  uint8_t upper[16][16] = {};
  if (has_upper_parts) {
    FillVectorRegisters();
    StoreUpperParts(upper);
    for (const auto& part : upper) ASSERT_THAT(part, Each(0xff)) << "the test cannot read them";
  }
  const std::string bytes = Bytes(4096);
  for (const size_t size : {0, 16, 64, 300, 784, 4096}) {
    const absl::string_view piece = absl::string_view(bytes).substr(0, size);
    const uint32_t expected = SlowCrc32c(piece);
    uint8_t after[16][16] = {};
    if (has_upper_parts) FillVectorRegisters();
    const uint32_t crc = Crc32c(piece);
    if (has_upper_parts) StoreUpperParts(after);
    EXPECT_EQ(crc, expected) << "size " << size;
    for (const auto& part : after) EXPECT_THAT(part, Each(0)) << "size " << size;
  }
}

#endif  // __x86_64__

// ISA-L takes the length as an int, so it takes less than 2 GiB a call. The mapping of the test
// takes memory only for page tables, because the test never writes to it.
TEST(Crc32cTest, TheCrcCoversInputsAbove2GiBCompletely) {
  const size_t size = (size_t{2} << 30) + (3 << 20);
  void* zeros = mmap(nullptr, size, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  ASSERT_NE(zeros, MAP_FAILED);
  uint32_t expected = 0;
  const absl::string_view mebibyte(static_cast<const char*>(zeros), 1 << 20);
  for (size_t at = 0; at < size; at += mebibyte.size()) expected = ExtendCrc32c(expected, mebibyte);
  EXPECT_EQ(Crc32c(absl::string_view(static_cast<const char*>(zeros), size)), expected);
  EXPECT_EQ(munmap(zeros, size), 0);
}

}  // namespace
}  // namespace systole
