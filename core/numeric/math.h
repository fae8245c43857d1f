// exp, log, pow, sin and cos for floats, with the same bits on every CPU. glibc has different code
// for different instruction sets, and the last bits of a result depend on the code. So code whose
// results reach output bytes, crops or losses must not call libm.
//
// The functions compute in double, with only + - * / and bit operations, never fused
// (-ffp-contract=off).
// Errors are below 0.501 ulp of the float result (Exp, Log, Sin, CosPi) and 0.51 ulp (Pow), for
// subnormal results, too. So nearly every result is the correctly rounded float. A call takes about
// 5 ns.
// Thread-safe: no state. Assumes the default rounding mode. If FTZ/DAZ is set, subnormal floats
// become zero when they are read or written.
#ifndef SYSTOLE_CORE_NUMERIC_MATH_H_
#define SYSTOLE_CORE_NUMERIC_MATH_H_

namespace systole {

// e^x. Exp(-inf) = 0, Exp(inf) = inf, NaN stays NaN; overflow gives inf, underflow 0.
float Exp(float x);

// Natural logarithm. Log(0) = -inf, Log(x < 0) = NaN, Log(inf) = inf, NaN stays NaN.
float Log(float x);

// x^y with C's special cases: Pow(x, 0) = Pow(1, y) = 1 even for NaN; NaN for a negative x and a y
// that is not a whole number; Pow(0, y < 0) = inf (-inf for -0 and odd y).
float Pow(float x, float y);

// x^y in double precision, for tables whose entries are rounded to whole numbers. The relative
// error is below 2^-42. A result below e^-200 becomes 0. REQUIRES: 0 < x <= 1 and normal, y > 0 and
// finite.
double PowDouble(double x, double y);

// sin x, for x in radians. Sin(-0) = -0. The result is NaN for a NaN, an infinity or an angle
// beyond +-2^26, for which the function would need more digits of pi.
float Sin(float x);

// cos(pi * x): IEEE 754-2008's cosPi. x counts half turns, so whole turns can be subtracted from x
// without rounding, and the bound on the error holds for every x. CosPi of an odd multiple of 1/2
// is +0; CosPi of an infinity is NaN.
float CosPi(float x);
// cos(pi * x) for finite x in double precision. The relative error is below 2^-50.
double CosPi(double x);

}  // namespace systole

#endif  // SYSTOLE_CORE_NUMERIC_MATH_H_
