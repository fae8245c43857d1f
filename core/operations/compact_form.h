// The one rule for which outputs may travel as uint8 (v1::Wire): those whose program yields whole
// numbers of uint8, or normalises such numbers in its last step, and that are not mixed after it
// (v1::Mix). The client then does that step and the cast.
//
// Thread-safe: no state.
#ifndef SYSTOLE_CORE_OPERATIONS_COMPACT_FORM_H_
#define SYSTOLE_CORE_OPERATIONS_COMPACT_FORM_H_

#include <optional>

#include "core/numeric/normalise.h"
#include "systole/v1/feed.pb.h"

namespace systole {

struct CompactForm {
  v1::Output travels;        // The output to ask for: of type UINT8.
  NormaliseFactors factors;  // The client's last step, before the cast to `dtype`.
  v1::DataType dtype;        // What the trainer gets.
};

// None if `output` of a feed with this `mix` travels as it is: because of its type, because it is
// in tiles or mixed, or because it is no output of bytes that a server would accept.
std::optional<CompactForm> CompactFormOf(const v1::Output& output, const v1::Mix& mix);

}  // namespace systole

#endif  // SYSTOLE_CORE_OPERATIONS_COMPACT_FORM_H_
