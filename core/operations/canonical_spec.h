// Turns all specs that ask for the same bytes into one form, and hashes this form.
//
// Thread-safe: no state.
#ifndef SYSTOLE_CORE_OPERATIONS_CANONICAL_SPEC_H_
#define SYSTOLE_CORE_OPERATIONS_CANONICAL_SPEC_H_

#include <cstdint>

#include "systole/v1/feed.pb.h"

namespace systole {

// `spec` with its outputs and mixed tensors sorted by name, and defaults written out. Fields that
// have no effect are left out, and so is `cache`, which changes no byte. Two values are not written
// here, because they depend on the dataset: the default of an output's dtype (it depends on the
// features), and the step that begins with an example (Weights.from_example; it depends on the
// number of records). FeedPlan writes these two values.
v1::FeedSpec CanonicalSpec(v1::FeedSpec spec);

// XXH3 of CanonicalSpec(spec), serialized deterministically.
uint64_t SpecFingerprint(const v1::FeedSpec& spec);

}  // namespace systole

#endif  // SYSTOLE_CORE_OPERATIONS_CANONICAL_SPEC_H_
