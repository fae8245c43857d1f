// One form for all specs that ask for the same bytes, and its hash.
//
// Thread-safe: no state.
#ifndef SYSTOLE_CORE_OPERATIONS_CANONICAL_SPEC_H_
#define SYSTOLE_CORE_OPERATIONS_CANONICAL_SPEC_H_

#include <cstdint>

#include "systole/v1/feed.pb.h"

namespace systole {

// Outputs and what is mixed sorted by name, defaults written out; but an output's dtype, whose
// default depends on the dataset's features, is FeedPlan's to write. Fields without a meaning are
// left out.
v1::FeedSpec CanonicalSpec(v1::FeedSpec spec);

// XXH3 of CanonicalSpec(spec), serialized deterministically.
uint64_t SpecFingerprint(const v1::FeedSpec& spec);

}  // namespace systole

#endif  // SYSTOLE_CORE_OPERATIONS_CANONICAL_SPEC_H_
