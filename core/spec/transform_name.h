// The names of a spec's transforms, as users write them.
//
// Thread-safe: no state.
#ifndef SYSTOLE_CORE_SPEC_TRANSFORM_NAME_H_
#define SYSTOLE_CORE_SPEC_TRANSFORM_NAME_H_

#include <string>

#include "absl/strings/string_view.h"
#include "systole/v1/feed.pb.h"

namespace systole {

// Such as "decode_jpeg"; "(empty)" if this release knows no field of the transform.
std::string TransformName(const v1::Transform& transform);

// The name of transform `index` of output `output`. Empty: there is no such transform.
std::string TransformName(const v1::FeedSpec& spec, absl::string_view output, int index);

}  // namespace systole

#endif  // SYSTOLE_CORE_SPEC_TRANSFORM_NAME_H_
