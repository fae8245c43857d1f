#include "core/numeric/float16.h"

#include <bit>
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "core/numeric/simd_target.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/status_matchers.h"

namespace systole {
namespace {

float FromBits(uint32_t bits) { return std::bit_cast<float>(bits); }

struct Vector {
  uint32_t in;
  uint16_t rounded;
};

constexpr Vector kVectors[] = {
    {0x3f800000, 0x3c00},                        // 1.
    {0x3f801000, 0x3c00},                        // Tie, kept part even: down.
    {0x3f803000, 0x3c02},                        // Tie, kept part odd: up.
    {0x3f801001, 0x3c01},                        // Just above a tie.
    {0x477fe000, 0x7bff},                        // 65504, the largest number.
    {0x477fefff, 0x7bff},                        // Just below 65520, which would be infinity.
    {0x477ff000, 0x7c00}, {0x47800000, 0x7c00},  // 2^16.
    {0x7f7fffff, 0x7c00}, {0x7f800000, 0x7c00}, {0xff800000, 0xfc00},
    {0x38800000, 0x0400},                        // 2^-14, the smallest normal number.
    {0x387fffff, 0x0400},                        // Rounds up to the smallest normal.
    {0x387fc000, 0x03ff},                        // The largest subnormal number.
    {0x387fe000, 0x0400},                        // A tie between 0x03ff and 0x0400: to even.
    {0x33800000, 0x0001},                        // 2^-24, the smallest subnormal number.
    {0x33000000, 0x0000},                        // Half of the smallest: a tie, to even.
    {0x33000001, 0x0001}, {0x33c00000, 0x0002},  // 1.5 times the smallest: to even.
    {0x34200000, 0x0002},                        // 2.5 times the smallest: to even.
    {0x32ffffff, 0x0000}, {0x00000001, 0x0000}, {0x80000000, 0x8000},
    {0xb3000001, 0x8001}, {0x7fc00000, 0x7e00},  // A quiet NaN.
    {0x7f800001, 0x7e00},                        // A signalling NaN becomes quiet.
    {0xffffffff, 0xffff},                        // A NaN keeps its sign and its upper bits.
};

TEST(Float16Test, RoundsEdgeVectors) {
  for (const Vector& v : kVectors) {
    EXPECT_EQ(RoundToFloat16(FromBits(v.in)), v.rounded) << std::hex << v.in;
  }
}

TEST(Float16Test, EveryFloat16RoundTripsAndIsTheNumberThatItsBitsSay) {
  for (uint32_t b = 0; b < 0x10000; ++b) {
    const auto float16 = static_cast<uint16_t>(b);
    const float value = Float16ToFloat(float16);
    const uint32_t exponent = (b >> 10) & 31;
    const uint32_t fraction = b & 1023;
    ASSERT_EQ(std::signbit(value), b >> 15 == 1) << b;
    if (exponent == 31 && fraction != 0) {
      ASSERT_TRUE(std::isnan(value)) << b;
      ASSERT_EQ(RoundToFloat16(value), b | 0x0200) << b;
      continue;
    }
    ASSERT_EQ(RoundToFloat16(value), b);
    const double magnitude = exponent == 31  ? std::ldexp(1.0, 1000)
                             : exponent == 0 ? std::ldexp(fraction, -24)
                                             : std::ldexp(1024 + fraction, exponent - 25);
    ASSERT_EQ(std::fabs(value), static_cast<float>(magnitude)) << b;
  }
}

TEST(Float16Test, NoFloat16IsNearerThanTheRoundedOne) {
  for (uint32_t bits = 0x32000000u; bits < 0x477ff000u; bits += 0x357) {
    const double value = FromBits(bits);
    const uint16_t rounded = RoundToFloat16(FromBits(bits));
    const double error = std::fabs(Float16ToFloat(rounded) - value);
    ASSERT_LE(error, std::fabs(Float16ToFloat(rounded + 1) - value)) << std::hex << bits;
    if (rounded > 0) {
      ASSERT_LE(error, std::fabs(Float16ToFloat(rounded - 1) - value)) << std::hex << bits;
    }
  }
}

TEST(Float16Test, SpansEqualScalarsOnEveryTargetAndLength) {
  std::vector<float> in;
  for (const Vector& v : kVectors) in.push_back(FromBits(v.in));
  for (uint32_t i = 0; i < 4000; ++i) in.push_back(FromBits(i * 2654435761u));
  // Adds values from just below the smallest subnormal number to beyond the largest number. Few of
  // the values above lie there.
  for (uint32_t i = 0; i < 4000; ++i) in.push_back(FromBits(0x32f00000u + i * 0x16001u));
  std::vector<uint16_t> all(0x10000);
  for (uint32_t b = 0; b < all.size(); ++b) all[b] = static_cast<uint16_t>(b);
  for (const std::string& target : SupportedSimdTargets()) {
    SCOPED_TRACE(target);
    ASSERT_THAT(ForceSimdTarget(target), IsOk());
    for (size_t n : {size_t{0}, size_t{1}, size_t{7}, size_t{16}, size_t{33}, in.size()}) {
      std::vector<uint16_t> rounded(n);
      RoundToFloat16(absl::MakeConstSpan(in.data(), n), absl::MakeSpan(rounded));
      for (size_t i = 0; i < n; ++i) ASSERT_EQ(rounded[i], RoundToFloat16(in[i])) << i;
    }
    std::vector<float> back(all.size());
    Float16ToFloat(all, absl::MakeSpan(back));
    for (size_t i = 0; i < all.size(); ++i) {
      ASSERT_EQ(std::bit_cast<uint32_t>(back[i]), std::bit_cast<uint32_t>(Float16ToFloat(all[i])))
          << i;
    }
  }
  ASSERT_THAT(ForceSimdTarget(""), IsOk());
}

}  // namespace
}  // namespace systole
