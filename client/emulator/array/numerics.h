// How the matrix unit adds up its products. The numerics are chosen for each run, and every report
// names them.
//
//   exact  f32 sums in one fixed order (matrix_unit.h): the same bits on every machine, for any
//          number of threads, and for any split of the same shards over cores.
//   fast   oneDNN's bf16 matrix product: f32 sums in the order that is quickest on this machine.
//          oneDNN may use AMX. On one machine all runs give the same bits, for any number of
//          threads. Another CPU or another oneDNN may give other bits. A sum differs from `exact`
//          only by rounding. If its terms have both signs, the difference is at most 8 * 2^-24 *
//          sum over k of |a[k] * b[k]|. If all terms have the same sign, the rounding error grows
//          with the number of terms, whatever the order. Subnormals are flushed, as in `exact`.
//          Infinities and NaNs come out as in `exact`, with one exception: a partial sum may
//          overflow in one order of summation and not in another. On a CPU without bf16 products
//          (AVX512_BF16) `fast` is `exact`, because oneDNN's substitute for such products is
//          slower. On aarch64 `fast` is `exact`, too, because oneDNN 2.6 multiplies no bf16 there.
//
// Thread-safe: no state.
#ifndef SYSTOLE_CLIENT_EMULATOR_ARRAY_NUMERICS_H_
#define SYSTOLE_CLIENT_EMULATOR_ARRAY_NUMERICS_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace systole::emulator {

enum class Numerics { kExact, kFast };

// "exact" or "fast".
absl::string_view NumericsName(Numerics numerics);

// The numerics called `name`. InvalidArgument, with a list of the names, for any other name.
absl::StatusOr<Numerics> ParseNumerics(absl::string_view name);

// A sentence for the report of a run with `numerics`: it says that `fast` was the same as `exact`
// on this machine, and why. Empty if the run used `numerics`.
std::string MissingNumericsNote(Numerics numerics);

}  // namespace systole::emulator

#endif  // SYSTOLE_CLIENT_EMULATOR_ARRAY_NUMERICS_H_
