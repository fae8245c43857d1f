// How the transforms of a feed run, as a text for people.
//
// Thread-safe: no state.
#ifndef SYSTOLE_CORE_SPEC_TRANSFORM_RUNS_H_
#define SYSTOLE_CORE_SPEC_TRANSFORM_RUNS_H_

#include <string>
#include <vector>

#include "systole/v1/feed.pb.h"

namespace systole {

// For each output of a spec, in the spec's order, how each of its transforms runs.
using SpecRuns = std::vector<std::vector<v1::TransformRun>>;

// "fused", "by row", "alone"; "not known" for any other number.
std::string RunName(v1::TransformRun run);

// A line for each output that has transforms, and then what the words in these lines mean:
//
//   image: fused: decode_jpeg, random_resized_crop; by row: contrast, normalize; alone: rot90
//
// A server of another release may send more or fewer entries than an output has transforms. Then
// the output's line says "not known" for all its transforms. "" if no output has transforms.
std::string ExplainRuns(const v1::FeedSpec& spec, const SpecRuns& runs);

}  // namespace systole

#endif  // SYSTOLE_CORE_SPEC_TRANSFORM_RUNS_H_
