#include "core/numeric/bf16.h"

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
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
  uint16_t kept;     // RoundToBf16
  uint16_t flushed;  // RoundToBf16Flush
};

// In the first five rows, column `flushed` is what the instruction VCVTNEPS2BF16 gives.
constexpr Vector kVectors[] = {
    {0x3f808000, 0x3f80, 0x3f80},  // Tie, kept part even: down.
    {0x3f818000, 0x3f82, 0x3f82},  // Tie, kept part odd: up.
    {0x00000001, 0x0000, 0x0000},  // Smallest subnormal.
    {0x007fffff, 0x0080, 0x0000},  // Largest subnormal: rounds up to a normal, or is flushed.
    {0x7fffffff, 0x7fff, 0x7fff},  // NaN.
    {0x7f800001, 0x7fc0, 0x7fc0},  // Signalling NaN becomes quiet, not infinity.
    {0xff800001, 0xffc0, 0xffc0},
    {0x00008000, 0x0000, 0x0000},  // Subnormal tie to even.
    {0x00018000, 0x0002, 0x0000},
    {0x807fffff, 0x8080, 0x8000},  // The sign of a flushed value
                                   // stays.
    {0x00800000, 0x0080, 0x0080},  // Smallest normal.
    {0x7f7fffff, 0x7f80, 0x7f80},  // Overflow to infinity.
    {0xff7fffff, 0xff80, 0xff80},
    {0x7f800000, 0x7f80, 0x7f80},
    {0x80000000, 0x8000, 0x8000},
    {0x3f80ffff, 0x3f81, 0x3f81},
    {0x3f807fff, 0x3f80, 0x3f80},
};

TEST(Bf16Test, RoundsPublishedAndEdgeVectors) {
  for (const Vector& v : kVectors) {
    EXPECT_EQ(RoundToBf16(FromBits(v.in)), v.kept) << std::hex << v.in;
    EXPECT_EQ(RoundToBf16Flush(FromBits(v.in)), v.flushed) << std::hex << v.in;
  }
}

TEST(Bf16Test, EveryBf16RoundTrips) {
  for (uint32_t b = 0; b < 0x10000; ++b) {
    const uint16_t bf16 = static_cast<uint16_t>(b);
    const float value = Bf16ToFloat(bf16);
    if (std::isnan(value)) {
      EXPECT_EQ(RoundToBf16(value), bf16 | 0x0040);
    } else {
      ASSERT_EQ(RoundToBf16(value), bf16);
      const bool subnormal = (bf16 & 0x7f80) == 0;
      ASSERT_EQ(RoundToBf16Flush(value), subnormal ? bf16 & 0x8000 : bf16);
    }
  }
}

TEST(Bf16Test, NoBf16IsNearerThanTheRoundedOne) {
  for (uint32_t bits = 0; bits < 0x7f7f0000u; bits += 0x1357) {
    const double value = FromBits(bits);
    const uint16_t rounded = RoundToBf16(FromBits(bits));
    const double error = std::fabs(Bf16ToFloat(rounded) - value);
    ASSERT_LE(error, std::fabs(Bf16ToFloat(rounded + 1) - value)) << std::hex << bits;
    if (rounded > 0) {
      ASSERT_LE(error, std::fabs(Bf16ToFloat(rounded - 1) - value)) << std::hex << bits;
    }
  }
}

TEST(Bf16Test, SpansEqualScalarsOnEveryTargetAndLength) {
  std::vector<float> in;
  for (const Vector& v : kVectors) in.push_back(FromBits(v.in));
  for (uint32_t i = 0; i < 2000; ++i) in.push_back(FromBits(i * 2654435761u));
  for (const std::string& target : SupportedSimdTargets()) {
    SCOPED_TRACE(target);
    ASSERT_THAT(ForceSimdTarget(target), IsOk());
    for (size_t n : {size_t{0}, size_t{1}, size_t{7}, size_t{16}, size_t{33}, in.size()}) {
      const absl::Span<const float> from(in.data(), n);
      std::vector<uint16_t> kept(n), flushed(n);
      RoundToBf16(from, absl::MakeSpan(kept));
      RoundToBf16Flush(from, absl::MakeSpan(flushed));
      std::vector<float> back(n);
      Bf16ToFloat(kept, absl::MakeSpan(back));
      for (size_t i = 0; i < n; ++i) {
        ASSERT_EQ(kept[i], RoundToBf16(in[i])) << i;
        ASSERT_EQ(flushed[i], RoundToBf16Flush(in[i])) << i;
        ASSERT_EQ(std::bit_cast<uint32_t>(back[i]), uint32_t{kept[i]} << 16) << i;
      }
    }
  }
  ASSERT_THAT(ForceSimdTarget(""), IsOk());
}

}  // namespace
}  // namespace systole
