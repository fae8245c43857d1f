// The one rule of what travels as uint8 (v1::Wire): a program that ends in whole numbers of uint8,
// or whose last step normalises such. Then uint8 travels, and the client does that step and the
// cast.
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
  NormaliseFactors factors;  // What finishes it, before the cast to the output's own type.
};

// None if `output` travels as it is: because of its type, or because it is no output of bytes that
// a server would accept.
std::optional<CompactForm> CompactFormOf(const v1::Output& output);

}  // namespace systole

#endif  // SYSTOLE_CORE_OPERATIONS_COMPACT_FORM_H_
