#include "core/numeric/math.h"

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

namespace systole {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
// ln 2 in two parts. The upper part has 21 trailing zero bits, so that k * kLn2High is exact for
// |k| < 2^21.
constexpr double kLn2High = 6.93147180369123816490e-01;
constexpr double kLn2Low = 1.90821492927058770002e-10;
constexpr double kInverseLn2 = 1.44269504088896338700e+00;
constexpr double kPi = 3.14159265358979311600e+00;
constexpr double kSqrt2 = 1.41421356237309514547e+00;

// Doubles beyond the float range are turned into infinity here; the cast alone would be undefined.
float ToFloat(double value) {
  constexpr double kOverflow = 0x1.ffffffp127;  // Halfway from the largest float to 2^128.
  if (value >= kOverflow) return std::numeric_limits<float>::infinity();
  if (value <= -kOverflow) return -std::numeric_limits<float>::infinity();
  return static_cast<float>(value);
}

// e^x for finite x; 0 or infinity beyond +-200, where the result is outside the floats' range.
// Relative error < 2^-50.
double ExpDouble(double x) {
  if (x > 200) return kInfinity;
  if (x < -200) return 0;
  const int k = static_cast<int>(x * kInverseLn2 + (x < 0 ? -0.5 : 0.5));
  const double r = (x - k * kLn2High) - k * kLn2Low;  // |r| <= 0.347
  // Taylor to r^13 / 13!: the first term left out is below 2^-57.
  double p = 1.0 / 6227020800.0;
  p = p * r + 1.0 / 479001600.0;
  p = p * r + 1.0 / 39916800.0;
  p = p * r + 1.0 / 3628800.0;
  p = p * r + 1.0 / 362880.0;
  p = p * r + 1.0 / 40320.0;
  p = p * r + 1.0 / 5040.0;
  p = p * r + 1.0 / 720.0;
  p = p * r + 1.0 / 120.0;
  p = p * r + 1.0 / 24.0;
  p = p * r + 1.0 / 6.0;
  p = p * r + 0.5;
  p = p * r + 1.0;
  p = p * r + 1.0;
  return p * std::bit_cast<double>(static_cast<uint64_t>(k + 1023) << 52);
}

// ln x for finite, normal x > 0. Every positive float is such a double. Relative error < 2^-50.
double LogDouble(double x) {
  const uint64_t bits = std::bit_cast<uint64_t>(x);
  int exponent = static_cast<int>(bits >> 52) - 1023;
  double m = std::bit_cast<double>((bits & 0x000fffffffffffffu) | 0x3ff0000000000000u);
  if (m > kSqrt2) {
    m *= 0.5;
    ++exponent;
  }
  // ln m = 2 artanh f = 2 (f + f^3/3 + f^5/5 + ..), f = (m-1)/(m+1), |f| <= 0.172.
  const double f = (m - 1.0) / (m + 1.0);
  const double s = f * f;
  double p = 1.0 / 23.0;
  p = p * s + 1.0 / 21.0;
  p = p * s + 1.0 / 19.0;
  p = p * s + 1.0 / 17.0;
  p = p * s + 1.0 / 15.0;
  p = p * s + 1.0 / 13.0;
  p = p * s + 1.0 / 11.0;
  p = p * s + 1.0 / 9.0;
  p = p * s + 1.0 / 7.0;
  p = p * s + 1.0 / 5.0;
  p = p * s + 1.0 / 3.0;
  p = p * s + 1.0;
  return exponent * kLn2High + (exponent * kLn2Low + 2.0 * f * p);
}

// sin(t) and cos(t) for |t| <= pi/4, by Taylor: the first terms left out are below 2^-56 and
// 2^-58. Relative error < 2^-50.
double SinDouble(double t) {
  const double s = t * t;
  double p = 1.0 / 355687428096000.0;
  p = p * s - 1.0 / 1307674368000.0;
  p = p * s + 1.0 / 6227020800.0;
  p = p * s - 1.0 / 39916800.0;
  p = p * s + 1.0 / 362880.0;
  p = p * s - 1.0 / 5040.0;
  p = p * s + 1.0 / 120.0;
  p = p * s - 1.0 / 6.0;
  return t + t * (p * s);
}

double CosDouble(double t) {
  const double s = t * t;
  double p = 1.0 / 20922789888000.0;
  p = p * s - 1.0 / 87178291200.0;
  p = p * s + 1.0 / 479001600.0;
  p = p * s - 1.0 / 3628800.0;
  p = p * s + 1.0 / 40320.0;
  p = p * s - 1.0 / 720.0;
  p = p * s + 1.0 / 24.0;
  p = p * s - 0.5;
  return p * s + 1.0;
}

bool IsInteger(float y) { return std::isinf(y) || std::trunc(y) == y; }

// REQUIRES: IsInteger(y). Floats from 2^24 on are all even.
bool IsOdd(float y) { return std::fabs(y) < 16777216.0f && (static_cast<int32_t>(y) & 1) != 0; }

}  // namespace

float Exp(float x) {
  if (std::isnan(x)) return x + x;
  return ToFloat(ExpDouble(x));
}

float Log(float x) {
  if (std::isnan(x)) return x + x;
  if (x == 0) return -std::numeric_limits<float>::infinity();
  if (x < 0) return std::numeric_limits<float>::quiet_NaN();
  if (std::isinf(x)) return x;
  return ToFloat(LogDouble(x));
}

float Pow(float x, float y) {
  if (y == 0 || x == 1) return 1;
  if (std::isnan(x) || std::isnan(y)) return x + y;
  const float magnitude = std::fabs(x);
  if (std::isinf(y)) {
    if (magnitude == 1) return 1;
    return (magnitude > 1) == (y > 0) ? std::numeric_limits<float>::infinity() : 0;
  }
  const bool negative = std::signbit(x) && IsInteger(y) && IsOdd(y);
  double result;
  if (magnitude == 0 || std::isinf(magnitude)) {
    result = (magnitude == 0) == (y > 0) ? 0 : kInfinity;
  } else if (x < 0 && !IsInteger(y)) {
    return std::numeric_limits<float>::quiet_NaN();
  } else {
    result = ExpDouble(static_cast<double>(y) * LogDouble(magnitude));
  }
  return ToFloat(negative ? -result : result);
}

double PowDouble(double x, double y) { return ExpDouble(y * LogDouble(x)); }

float Sin(float x) {
  if (!(std::fabs(x) <= 0x1p26f)) return std::numeric_limits<float>::quiet_NaN();
  if (x == 0) return x;
  // pi/2 in two parts. The upper part has 25 bits, so that k * kHalfPiHigh is exact for |k| < 2^28.
  // Both parts together have 78 bits. This precision tells every float from the nearest multiple of
  // pi/2.
  constexpr double kHalfPiHigh = 1.57079631090164184570e+00;
  constexpr double kHalfPiLow = 1.58932547735281966916e-08;
  constexpr double kTwoOverPi = 6.36619772367581382433e-01;
  const double k = std::nearbyint(x * kTwoOverPi);
  const double r = (x - k * kHalfPiHigh) - k * kHalfPiLow;  // |r| <= pi/4, apart from rounding.
  const auto quarter = static_cast<int64_t>(k) & 3;
  const double sine = (quarter & 1) == 0 ? SinDouble(r) : CosDouble(r);
  return static_cast<float>(quarter >= 2 ? -sine : sine);
}

double CosPi(double x) {
  // The period is 2. Each step that reduces x to at most 0.25, an eighth of the period, is exact.
  double turn = std::fabs(x);
  turn -= 2.0 * std::floor(0.5 * turn);
  if (turn > 1.0) turn = 2.0 - turn;
  const bool negative = turn > 0.5;
  if (negative) turn = 1.0 - turn;
  const double cosine = turn <= 0.25 ? CosDouble(kPi * turn) : SinDouble(kPi * (0.5 - turn));
  return negative ? -cosine : cosine;
}

float CosPi(float x) {
  if (std::isnan(x)) return x + x;
  if (std::isinf(x)) return std::numeric_limits<float>::quiet_NaN();
  return static_cast<float>(CosPi(double{x}));
}

}  // namespace systole
