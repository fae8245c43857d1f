// Where the values of one output come from and how they are made.
//
// Thread-compatible; a value, immutable once made.
#ifndef SYSTOLE_CORE_PIPELINE_OUTPUT_PLAN_H_
#define SYSTOLE_CORE_PIPELINE_OUTPUT_PLAN_H_

#include <cstdint>
#include <vector>

#include "core/operations/lowered_program.h"
#include "core/tensor/dtype.h"
#include "systole/v1/feed.pb.h"

namespace systole {

// The virtual features.
inline constexpr char kRecordIdFeature[] = "record_id";
inline constexpr char kRecordFeature[] = "record";

struct OutputPlan {
  enum class Source {
    kRecordId,   // The record's number.
    kInt64List,  // An int64 feature.
    kFloatList,  // A float feature.
    kBytes,      // A bytes feature, or the record itself.
  };

  // Whether it is made by stages that look at the record's bytes more than once.
  bool is_image() const {
    return source == Source::kBytes && program.way != LoweredProgram::Way::kValues;
  }

  Source source = Source::kRecordId;
  // Index into FeedPlan::parser().names(), or -1: the whole record.
  int feature = -1;
  std::vector<int64_t> stored_shape;  // Output.shape.
  int64_t stored_elements = 1;
  // Of kFloatList and kBytes, and of the others if they have transforms; else it holds no program.
  LoweredProgram program;

  v1::Layout layout = v1::NHWC;
  std::vector<int64_t> shape;  // Of one example, batch-major: before NCHW or HWCN is applied.
  DType dtype = DType::kUint8;
  int tensor = 0;  // Index into the layout's tensors.
};

}  // namespace systole

#endif  // SYSTOLE_CORE_PIPELINE_OUTPUT_PLAN_H_
