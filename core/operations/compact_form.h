// Decides which values may travel as uint8 (v1::CompactForm). The client then does as many of the
// program's last steps as possible. Each of these steps changes every value by itself
// (Operation::RulesByValue), and the values before the first of them are uint8. The client uses
// factors, or a table with the result of the reference operations for each value.
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
  // The client does the steps from number `first` on, and the cast.
  size_t first = 0;
  // `factors` has a scale and a bias for each rule, or is empty. If `factors` is empty, `table` has
  // kTableEntries values for each rule.
  NormaliseFactors factors;
  std::vector<float> table;
  // 1, or the number of channels, which is the last dimension of an example.
  int rules = 1;
};

// The compact form. Nullopt if the values of an output of `dtype` must travel as they are. The
// reason is one of three: `dtype` is not a float type, the values are not uint8 at any place from
// which the client could go on, or there are too many channels. The server does at least the first
// `kept_steps` steps. These steps make the smallest value that the server's cache can keep of a
// record (KeptValuesOf). So the cache can also keep a value if the client finishes the tensors.
// Steps that belong to decode_jpeg { scale: AUTO } stay together.
std::optional<CompactForm> CompactFormOf(const Program& program, DType dtype,
                                         size_t kept_steps = 0);

}  // namespace systole

#endif  // SYSTOLE_CORE_OPERATIONS_COMPACT_FORM_H_
