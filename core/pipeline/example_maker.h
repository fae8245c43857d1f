// Makes one example: reads its record, transforms its features, writes them into their places in
// the slice. Holds the scratch memory and decoders of one thread.
//
// Single-thread. What it writes depends on the arguments alone.
#ifndef SYSTOLE_CORE_PIPELINE_EXAMPLE_MAKER_H_
#define SYSTOLE_CORE_PIPELINE_EXAMPLE_MAKER_H_

#include <cstdint>
#include <list>
#include <memory>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "core/example/feature_view.h"
#include "core/image/crop.h"
#include "core/image/image_transformer.h"
#include "core/memory/aligned_buffer.h"
#include "core/pipeline/feed_plan.h"

namespace systole {

// The part of its image, of height x width pixels, that an output takes of (epoch, record), both
// sizes at least 1. `seed` is the spec's.
CropRect CropOf(const OutputPlan& output, uint64_t seed, int64_t epoch, int64_t record, int height,
                int width);

class ExampleMaker {
 public:
  // Writes the example of (step, core, slot), `valid` included, into `slice`, a block of
  // plan->layout().slice_bytes(). Padding is zeros; so is a record that cannot be used if the spec
  // says MASK, and then it is put down in the dataset's damage log.
  //   DataLoss            the record cannot be used and the spec says FAIL; names shard, offset,
  //                       record, output and cause. ResourceExhausted if it is too large.
  //   FailedPrecondition  its shard changed since it was opened.
  // and what the storage says of a read that failed, which is never masked.
  absl::Status Make(const std::shared_ptr<const FeedPlan>& plan, int64_t step, int core,
                    int64_t slot, uint8_t* slice);

 private:
  // What one plan needs between examples.
  struct PlanScratch {
    std::weak_ptr<const FeedPlan> plan;
    std::vector<FeatureView> features;
    std::vector<std::optional<ImageTransformer>> transformers;  // By output; images only.
  };

  // The scratch of `plan`, made at first use; the least recently used one goes when there are many.
  absl::StatusOr<PlanScratch*> ScratchOf(const std::shared_ptr<const FeedPlan>& plan);

  // Fills in every output of a record. Errors without the record's place.
  absl::Status FillOutputs(const FeedPlan& plan, PlanScratch& scratch, int64_t epoch,
                           int64_t record, absl::string_view payload, int64_t slot, uint8_t* slice);
  absl::Status FillImage(const FeedPlan& plan, const OutputPlan& output,
                         ImageTransformer& transformer, int64_t epoch, int64_t record,
                         absl::string_view bytes, absl::Span<uint8_t> out);
  absl::Status FillNumbers(const OutputPlan& output, const FeatureView& feature,
                           absl::Span<uint8_t> out);

  AlignedBuffer record_scratch_;
  // One example of any output, of the plans seen so far, that is not written in place.
  AlignedBuffer example_scratch_;
  std::vector<uint8_t> pixels_;  // Of one image that is rounded before it is normalised.
  std::vector<int64_t> int64s_;
  std::vector<float> floats_;
  std::list<PlanScratch> scratches_;  // Most recently used first.
};

}  // namespace systole

#endif  // SYSTOLE_CORE_PIPELINE_EXAMPLE_MAKER_H_
