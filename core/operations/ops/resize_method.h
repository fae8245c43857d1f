// The fields `method`, `antialias` and `sampling` of all operations that resize.
//
// Thread-safe: no state.
#ifndef SYSTOLE_CORE_OPERATIONS_OPS_RESIZE_METHOD_H_
#define SYSTOLE_CORE_OPERATIONS_OPS_RESIZE_METHOD_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "core/image/resize/resampler.h"
#include "core/operations/ops/value.h"
#include "systole/v1/feed.pb.h"

namespace systole {

// InvalidArgument if the fields do not go together. The message is the end of a sentence that
// begins with a transform's name.
absl::StatusOr<ResampleOptions> ResampleOptionsOf(v1::Resize::Method method, bool antialias,
                                                  v1::Resize::Sampling sampling);

template <typename Message>
absl::StatusOr<ResampleOptions> ResampleOptionsOf(const Message& message) {
  return ResampleOptionsOf(message.method(), message.antialias(), message.sampling());
}

// The type of the result for values of type `input`.
ElementType ResampledElement(const ResampleOptions& options, ElementType input);

// Operation::Work() of a resize from images of type `input` to `output`. Counts a value each time
// that a pass reads it. BILINEAR without antialias counts each value of the result once.
int64_t ResampleWork(const ResampleOptions& options, const ValueType& input,
                     const ValueType& output);

}  // namespace systole

#endif  // SYSTOLE_CORE_OPERATIONS_OPS_RESIZE_METHOD_H_
