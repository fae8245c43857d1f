// A feed's `mix`, checked against the feed's outputs: which tensors are mixed, and how the elements
// of their examples are ordered.
//
// Thread-compatible; a value, immutable once made.
#ifndef SYSTOLE_CORE_PLAN_MIX_PLAN_H_
#define SYSTOLE_CORE_PLAN_MIX_PLAN_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "core/batch/slice_layout.h"
#include "core/operations/ops/mix_draws.h"
#include "core/plan/output_plan.h"
#include "systole/v1/feed.pb.h"

namespace systole {

// A tensor of a float type whose values are mixed. An example has `rows` rows of `row_elements`
// elements each, in the order in which SliceTensor::ForEachPiece() visits them.
struct MixedTensor {
  int tensor = 0;  // Index into the layout's tensors.
  bool is_image = false;
  int64_t rows = 1;
  int64_t row_elements = 1;
  // For an image: row r holds values of the pixel row r mod image_height. In a row, every
  // `pixel_elements` elements belong to one pixel: one element in NCHW, otherwise one for each
  // channel.
  int64_t image_height = 1;
  int64_t pixel_elements = 1;
};

struct MixPlan {
  // Checks spec.mix(). `outputs` are those of the spec, in the spec's order. Each has the index of
  // its tensor in `layout`.
  //   InvalidArgument  the message names the field of `mix`, its value and what was expected.
  static absl::StatusOr<MixPlan> Create(const v1::FeedSpec& spec,
                                        absl::Span<const OutputPlan> outputs,
                                        const SliceLayout& layout);

  int64_t group = 0;  // How many examples a group has. It divides the per-core batch.
  MixDraws draws;
  std::vector<MixedTensor> tensors;
};

}  // namespace systole

#endif  // SYSTOLE_CORE_PLAN_MIX_PLAN_H_
