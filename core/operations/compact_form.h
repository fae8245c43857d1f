// Decides whether a server may send values as uint8 (v1::CompactForm) and leave the program's last
// steps to the client. The client does as many steps as possible. Each of these steps changes every
// value by itself (Operation::RulesByValue), and the values before these steps are uint8. The
// client needs no code of the operations: it gets a scale and a bias, or a table with the result
// for each uint8. The reference operations make this table.
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
  // Either `factors` has a scale and a bias for each rule, or `factors` is empty and `table` has
  // kTableEntries values for each rule.
  NormaliseFactors factors;
  std::vector<float> table;
  // 1, or one rule for each channel. Channels are the last dimension of an example.
  int rules = 1;
};

// The compact form of an output of `dtype`. Nullopt if the values must travel in this type, because
//   - `dtype` is not a float type,
//   - the spec does not fix the size of the examples,
//   - the values are not uint8 at any place from which the client could go on, or
//   - there are too many channels for a table (kMaxTableChannels).
// The server does at least the first `kept_steps` steps, and all steps that belong to decode_jpeg
// { scale: AUTO }. If `kept_steps` is the number of steps that make the smallest value of
// KeptValuesOf(), the server's cache can keep a value, although the client finishes the examples.
std::optional<CompactForm> CompactFormOf(const Program& program, DType dtype,
                                         size_t kept_steps = 0);

}  // namespace systole

#endif  // SYSTOLE_CORE_OPERATIONS_COMPACT_FORM_H_
