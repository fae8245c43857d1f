// How the matrix unit adds up its products; chosen per run, named in every report.
//
//   exact  f32 sums in one written-down order (matrix_unit.h): the same bits on every machine, for
//          any number of threads, and for any split of the same shards over cores.
//   fast   oneDNN's bf16 matrix product: f32 sums in whatever order is quickest on the machine at
//          hand, AMX included. The same machine gives the same bits again, for any number of
//          threads; another CPU or another oneDNN need not. From `exact` a sum differs by rounding
//          alone: for terms of both signs by at most 8 * 2^-24 * sum over k of |a[k] * b[k]|;
//          terms of one sign lose more the more there are, in any order. Subnormals are flushed,
//          as in `exact`. Infinities and NaNs come out where `exact` has them, except that a sum
//          that overflows half-way in one order need not in another. Where the CPU has no bf16
//          products (AVX512_BF16), `fast` is `exact`: oneDNN's way round them is slower.
//
// Thread-safe: no state.
#ifndef SYSTOLE_CLIENT_EMULATOR_ARRAY_NUMERICS_H_
#define SYSTOLE_CLIENT_EMULATOR_ARRAY_NUMERICS_H_

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace systole::emulator {

enum class Numerics { kExact, kFast };

// "exact" or "fast".
absl::string_view NumericsName(Numerics numerics);

// The numerics called `name`. InvalidArgument, listing the names, if there is none.
absl::StatusOr<Numerics> ParseNumerics(absl::string_view name);

}  // namespace systole::emulator

#endif  // SYSTOLE_CLIENT_EMULATOR_ARRAY_NUMERICS_H_
