// Turns the tensors of a slice into messages, and back.
//
// Thread-safe: no state.
#ifndef SYSTOLE_PROTO_FRAMING_LAYOUT_DESCRIPTION_H_
#define SYSTOLE_PROTO_FRAMING_LAYOUT_DESCRIPTION_H_

#include "absl/status/statusor.h"
#include "core/batch/slice_layout.h"
#include "systole/v1/service.pb.h"

namespace systole {

// Fills `response.tensors` with the tensors of `layout`, in the same order.
void DescribeLayout(const SliceLayout& layout, v1::ResolveFeedResponse& response);

// The layout that a server's answer describes.
//   InvalidArgument  a tensor has an unknown type, tensors are not in the order of their names, or
//                    SliceLayout::Create refuses them.
absl::StatusOr<SliceLayout> LayoutOf(const v1::ResolveFeedResponse& response);

}  // namespace systole

#endif  // SYSTOLE_PROTO_FRAMING_LAYOUT_DESCRIPTION_H_
