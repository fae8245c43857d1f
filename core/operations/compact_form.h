// The one rule for what may travel as uint8 (v1::CompactForm): the values before the longest end of
// a program that changes each value by itself (Operation::RulesByValue), if they are uint8. That
// end is what the client does, by factors or by a table of what the references make of each value.
//
//   decode_jpeg  random_resized_crop  round_to_uint8 | gamma  normalize  (cast to BFLOAT16)
//   '--------- the server, as uint8 ---------------'   '----------- the client -----------'
//
// Thread-safe: no state.
#ifndef SYSTOLE_CORE_OPERATIONS_COMPACT_FORM_H_
#define SYSTOLE_CORE_OPERATIONS_COMPACT_FORM_H_

#include <cstddef>
#include <optional>
#include <vector>

#include "core/numeric/normalise.h"
#include "core/operations/program.h"
#include "core/tensor/dtype.h"

namespace systole {

struct CompactForm {
  // The client does the steps from this one on, and the cast.
  size_t first = 0;
  // Either a scale and a bias for each rule; or none, and `table` has kTableEntries for each rule.
  NormaliseFactors factors;
  std::vector<float> table;
  // 1, or the number of channels, which the last dimension of an example counts.
  int rules = 1;
};

// None if the values of an output of `dtype` travel as they are: `dtype` is no type of floats, or
// they are not uint8 before an end that only changes each value by itself, or there are too many
// channels. The first `kept_steps` steps are the server's: they make what its cache keeps of a
// record (KeptValue::steps), which is then the same for both forms. Steps of
// decode_jpeg { scale: AUTO } stay together.
std::optional<CompactForm> CompactFormOf(const Program& program, DType dtype,
                                         size_t kept_steps = 0);

}  // namespace systole

#endif  // SYSTOLE_CORE_OPERATIONS_COMPACT_FORM_H_
