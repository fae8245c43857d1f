// Turns all specs that ask for the same bytes into one form, and hashes this form.
//
// Thread-safe: no state.
#ifndef SYSTOLE_CORE_OPERATIONS_CANONICAL_SPEC_H_
#define SYSTOLE_CORE_OPERATIONS_CANONICAL_SPEC_H_

#include <cstdint>

#include "systole/v1/feed.pb.h"

namespace systole {

// `spec` with its outputs and mixed tensors sorted by name, and defaults written out. Fields that
// change no byte are left out, for example `cache`. Two values depend on the dataset, so FeedPlan
// writes them later:
//   - the default of an output's dtype depends on the dataset's features;
//   - which step begins with the example Weights.from_example depends on the number of records.
v1::FeedSpec CanonicalSpec(v1::FeedSpec spec);

// XXH3 of CanonicalSpec(spec), serialized deterministically.
uint64_t SpecFingerprint(const v1::FeedSpec& spec);

}  // namespace systole

#endif  // SYSTOLE_CORE_OPERATIONS_CANONICAL_SPEC_H_
