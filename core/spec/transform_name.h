// The names of a spec's transforms, as users write them.
//
// Thread-safe: no state.
#ifndef SYSTOLE_CORE_SPEC_TRANSFORM_NAME_H_
#define SYSTOLE_CORE_SPEC_TRANSFORM_NAME_H_

#include <string>

#include "absl/strings/string_view.h"
#include "systole/v1/feed.pb.h"

namespace systole {

// The name of a transform, such as "decode_jpeg". "(empty)" if no field is set that this release
// knows.
std::string TransformName(const v1::Transform& transform);

// The name of transform `index` of output `output`. Empty if the spec has no such transform.
std::string TransformName(const v1::FeedSpec& spec, absl::string_view output, int index);

}  // namespace systole

#endif  // SYSTOLE_CORE_SPEC_TRANSFORM_NAME_H_
