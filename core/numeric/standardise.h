// Gives values the mean 0 and the deviation 1. The code is vectorised, and gives the same bits on
// every CPU.
//
// Thread-safe: no state.
#ifndef SYSTOLE_CORE_NUMERIC_STANDARDISE_H_
#define SYSTOLE_CORE_NUMERIC_STANDARDISE_H_

#include <cstdint>

#include "absl/types/span.h"

namespace systole {

// SumOf() and SumOfSquares() add in double precision, to eight sums. Value i is added to sum i mod
// 8. At the end the eight sums are added to 0, in order. So the order of the additions does not
// depend on the CPU, and no addition waits for the one before.
double SumOf(absl::Span<const float> values);
double SumOf(absl::Span<const uint8_t> values);

// The sum of the squares of x - mean. The difference is rounded to float32, and its square is
// exact.
double SumOfSquares(absl::Span<const float> values, float mean);
double SumOfSquares(absl::Span<const uint8_t> values, float mean);

// out[i] = (in[i] - mean) / divisor. REQUIRES: out.size() == in.size() (CHECK). `in` and `out` are
// the same memory, or do not overlap.
void Standardise(absl::Span<const float> in, float mean, float divisor, absl::Span<float> out);
void Standardise(absl::Span<const uint8_t> in, float mean, float divisor, absl::Span<float> out);

}  // namespace systole

#endif  // SYSTOLE_CORE_NUMERIC_STANDARDISE_H_
