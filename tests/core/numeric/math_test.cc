#include "core/numeric/math.h"

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

#include "gtest/gtest.h"

namespace systole {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

float FromBits(uint32_t bits) { return std::bit_cast<float>(bits); }

// The distance of `got` from the true value `want`. The unit is the last place (ulp) of a float of
// that size.
double UlpError(float got, double want) {
  if (std::isinf(got) && want > 0x1.fffffep127) return 0;
  const float rounded = static_cast<float>(want);
  const double ulp =
      std::fmax(std::nextafter(std::fabs(rounded), kInf) - std::fabs(rounded), 0x1p-149);
  return std::fabs(got - want) / ulp;
}

TEST(MathTest, ExpIsWithinHalfAnUlp) {
  for (float x = -104.5f; x < 88.8f; x += 0.00137f) {
    ASSERT_LT(UlpError(Exp(x), std::exp(static_cast<double>(x))), 0.501) << x;
  }
  for (uint32_t bits = 0; bits < 0x3f800000u; bits += 65537) {  // Down to the smallest floats.
    const float x = FromBits(bits);
    ASSERT_LT(UlpError(Exp(x), std::exp(static_cast<double>(x))), 0.501) << x;
    ASSERT_LT(UlpError(Exp(-x), std::exp(-static_cast<double>(x))), 0.501) << -x;
  }
}

TEST(MathTest, ExpHandlesTheEdges) {
  EXPECT_EQ(Exp(0.0f), 1.0f);
  EXPECT_EQ(Exp(-0.0f), 1.0f);
  EXPECT_EQ(Exp(kInf), kInf);
  EXPECT_EQ(Exp(-kInf), 0.0f);
  EXPECT_EQ(Exp(FromBits(0x42b17218)), kInf);  // The first float whose exponential overflows.
  EXPECT_LT(Exp(FromBits(0x42b17217)), kInf);
  EXPECT_EQ(Exp(-103.0f), 0x1p-149f);
  EXPECT_EQ(Exp(-200.5f), 0.0f);
  EXPECT_EQ(Exp(1e30f), kInf);
  EXPECT_TRUE(std::isnan(Exp(kNan)));
}

TEST(MathTest, PowDoubleOfAFractionIsWithinTwoToTheMinus42) {
  for (int i = 1; i <= 255; ++i) {
    const double x = i / 255.0;
    for (double y = 1.6e-4; y < 6300; y *= 1.37) {
      const long double want = std::pow(static_cast<long double>(x), static_cast<long double>(y));
      const double got = PowDouble(x, y);
      if (want < 1e-80L) {
        ASSERT_LT(got, 1e-80) << x << ", " << y;
      } else {
        ASSERT_LT(std::fabs(got / want - 1), 0x1p-42) << x << ", " << y;
      }
    }
  }
  EXPECT_EQ(PowDouble(1, 0.45455), 1);
}

TEST(MathTest, CosPiOfADoubleIsWithinTwoToTheMinus50) {
  constexpr long double kPi = 3.14159265358979323846264338327950288L;
  for (int i = -400; i <= 400; ++i) {
    const double x = i / 80.0;
    const long double want = std::cos(kPi * x);
    if (i % 80 == 40 || i % 80 == -40) {
      EXPECT_EQ(CosPi(x), 0) << x;
    } else {
      EXPECT_LT(std::fabs(CosPi(x) / want - 1), 0x1p-50) << x;
    }
  }
}

TEST(MathTest, LogIsWithinHalfAnUlp) {
  for (uint32_t bits = 1; bits < 0x7f800000u; bits += 4099) {  // Subnormals included.
    const float x = FromBits(bits);
    ASSERT_LT(UlpError(Log(x), std::log(static_cast<double>(x))), 0.501) << x;
  }
  for (uint32_t i = 0; i < 200000; ++i) {  // Around 1, where the result is nearly 0.
    const float x = FromBits(0x3f800000u - 100000 + i);
    ASSERT_LT(UlpError(Log(x), std::log(static_cast<double>(x))), 0.501) << x;
  }
}

TEST(MathTest, LogHandlesTheEdges) {
  EXPECT_EQ(Log(1.0f), 0.0f);
  EXPECT_EQ(Log(0.0f), -kInf);
  EXPECT_EQ(Log(-0.0f), -kInf);
  EXPECT_EQ(Log(kInf), kInf);
  EXPECT_TRUE(std::isnan(Log(-1.0f)));
  EXPECT_TRUE(std::isnan(Log(-kInf)));
  EXPECT_TRUE(std::isnan(Log(kNan)));
}

TEST(MathTest, PowIsWithinHalfAnUlp) {
  for (uint32_t i = 0; i < 300000; ++i) {
    const float x = FromBits(0x20000000u + i * 7919u % 0x40000000u);
    const float y = static_cast<float>(static_cast<int32_t>(i * 2654435761u)) * 0x1p-27f;
    ASSERT_LT(UlpError(Pow(x, y), std::pow(static_cast<double>(x), static_cast<double>(y))), 0.501)
        << x << " ^ " << y;
  }
}

TEST(MathTest, PowOfSmallIntegersIsExact) {
  EXPECT_EQ(Pow(3.0f, 4.0f), 81.0f);
  EXPECT_EQ(Pow(-3.0f, 3.0f), -27.0f);
  EXPECT_EQ(Pow(-3.0f, 2.0f), 9.0f);
  EXPECT_EQ(Pow(2.0f, -149.0f), 0x1p-149f);
  EXPECT_EQ(Pow(2.0f, 128.0f), kInf);
  EXPECT_EQ(Pow(-2.0f, 129.0f), -kInf);
  EXPECT_EQ(Pow(0.5f, 0.5f), std::sqrt(0.5f));
}

TEST(MathTest, PowHasTheSpecialCasesOfStdPow) {
  const float values[] = {0.0f,  -0.0f, 0.5f, -0.5f, 1.0f, -1.0f, 2.0f, -2.0f,      3.0f,
                          -3.0f, 0.3f,  1e9f, -1e9f, kInf, -kInf, kNan, 16777215.0f};
  for (float x : values) {
    for (float y : values) {
      const double want = std::pow(static_cast<double>(x), static_cast<double>(y));
      const float got = Pow(x, y);
      if (std::isnan(want)) {
        EXPECT_TRUE(std::isnan(got)) << x << " ^ " << y;
      } else {
        EXPECT_EQ(got, want > 0x1.fffffep127 ? kInf : static_cast<float>(want)) << x << " ^ " << y;
        EXPECT_EQ(std::signbit(got), std::signbit(want)) << x << " ^ " << y;
      }
    }
  }
}

TEST(MathTest, CosPiIsWithinHalfAnUlp) {
  constexpr long double kPi = 3.14159265358979323846264338327950288L;
  for (float x = 0; x <= 1; x += 0x1p-16f) {
    // Where the cosine is nearly 0, computing it as this sine keeps all digits.
    const long double want = std::sin(kPi * (0.5L - x));
    ASSERT_LT(UlpError(CosPi(x), static_cast<double>(want)), 0.501) << x;
    ASSERT_EQ(CosPi(-x), CosPi(x)) << x;
    ASSERT_EQ(CosPi(x + 2), CosPi(2 - (x + 2))) << x;
  }
}

TEST(MathTest, CosPiHandlesTheEdges) {
  EXPECT_EQ(CosPi(0.0f), 1.0f);
  EXPECT_EQ(CosPi(0x1p-149f), 1.0f);
  EXPECT_EQ(CosPi(1.0f), -1.0f);
  EXPECT_EQ(CosPi(-3.0f), -1.0f);
  for (const float half : {0.5f, -0.5f, 1.5f, 2.5f, 1048577.5f}) {
    EXPECT_EQ(std::bit_cast<uint32_t>(CosPi(half)), 0u) << half;
  }
  // Floats from 2^23 on are integers. Floats from 2^24 on are even integers.
  EXPECT_EQ(CosPi(8388609.0f), -1.0f);
  EXPECT_EQ(CosPi(0x1p24f), 1.0f);
  EXPECT_EQ(CosPi(0x1.fffffep127f), 1.0f);
  EXPECT_TRUE(std::isnan(CosPi(kInf)));
  EXPECT_TRUE(std::isnan(CosPi(-kInf)));
  EXPECT_TRUE(std::isnan(CosPi(kNan)));
}

TEST(MathTest, SinIsWithinHalfAnUlp) {
  for (uint32_t bits = 0; bits <= 0x4c800000u; bits += 4099) {  // To 2^26.
    const float x = FromBits(bits);
    ASSERT_LT(UlpError(Sin(x), std::sin(static_cast<double>(x))), 0.501) << x;
    ASSERT_EQ(Sin(-x), -Sin(x)) << x;
  }
  // Checks values around multiples of pi/2, where most digits of the angle cancel.
  for (int k = 1; k < 20000; ++k) {
    const auto near = static_cast<float>(k * 1.57079632679489661923);
    for (const float x : {std::nextafter(near, 0.0f), near, std::nextafter(near, kInf)}) {
      ASSERT_LT(UlpError(Sin(x), std::sin(static_cast<double>(x))), 0.501) << x;
    }
  }
}

TEST(MathTest, SinHandlesTheEdges) {
  EXPECT_EQ(Sin(0.0f), 0.0f);
  EXPECT_TRUE(std::signbit(Sin(-0.0f)));
  EXPECT_EQ(Sin(0x1p-149f), 0x1p-149f);
  EXPECT_EQ(Sin(1.57079633f), 1.0f);
  EXPECT_TRUE(std::isnan(Sin(0x1.000002p26f)));
  EXPECT_TRUE(std::isnan(Sin(kInf)));
  EXPECT_TRUE(std::isnan(Sin(kNan)));
}

// Pins the bits. They change if a compiler or a flag fuses or reorders operations.
TEST(MathTest, BitsArePinned) {
  uint64_t hash = 1469598103934665603u;
  const auto add = [&hash](float value) {
    hash = (hash ^ std::bit_cast<uint32_t>(value)) * 1099511628211u;
  };
  for (uint32_t i = 0; i < 100000; ++i) {
    const float unit = static_cast<float>(i * 2654435761u >> 8) * 0x1p-24f;
    add(Exp(unit * 180.0f - 100.0f));
    add(Log(unit + 1e-9f));
    add(Pow(unit, unit * 40.0f - 20.0f));
  }
  EXPECT_EQ(hash, 8504067614872559906u);
  for (int32_t i = -10000; i < 10000; ++i) add(CosPi(static_cast<float>(i) * 0.000123f));
  EXPECT_EQ(hash, 478518716398565981u);
  for (int32_t i = -10000; i < 10000; ++i) add(Sin(static_cast<float>(i) * 0.00123f));
  EXPECT_EQ(hash, 6789947278546781438u);
}

}  // namespace
}  // namespace systole
