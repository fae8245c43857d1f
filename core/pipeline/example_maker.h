// Makes examples: reads their records, transforms the features, writes them into their places in
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
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "core/example/feature_view.h"
#include "core/image/crop.h"
#include "core/image/image_transformer.h"
#include "core/memory/aligned_buffer.h"
#include "core/order/order.h"
#include "core/order/shard_map.h"
#include "core/pipeline/feed_plan.h"

namespace systole {

// The part of its image, of height x width pixels, that an output takes of (epoch, record), both
// sizes at least 1. `seed` is the spec's.
CropRect CropOf(const OutputPlan& output, uint64_t seed, int64_t epoch, int64_t record, int height,
                int width);

class ExampleMaker {
 public:
  // Writes the examples of slots [begin, end) of (step, core), `valid` included, into `slice`, a
  // block of plan->layout().slice_bytes(). Records that are neighbours in a shard share reads.
  // Padding is zeros; so is a record that cannot be used if the spec says MASK, and then it is put
  // down in the dataset's damage log. Of several errors that of the lowest slot is returned:
  //   DataLoss            the record cannot be used and the spec says FAIL; names shard, offset,
  //                       record, output and cause. ResourceExhausted if it is too large.
  //   FailedPrecondition  its shard changed since it was opened.
  //   Unavailable         no memory to read, decode or place it.
  // and what else the storage says of a read that failed. None of these last is ever masked.
  absl::Status Make(const std::shared_ptr<const FeedPlan>& plan, int64_t step, int core,
                    int64_t begin, int64_t end, uint8_t* slice);

 private:
  // What one plan needs between examples.
  struct PlanScratch {
    std::weak_ptr<const FeedPlan> plan;
    std::vector<FeatureView> features;
    std::vector<std::optional<ImageTransformer>> transformers;  // By output; images only.
  };

  // A record and where its example belongs.
  struct Wanted {
    int64_t record = 0;
    int64_t slot = 0;
    ShardPlace place;
  };

  // Makes the example of one record, whose payload has been read, or could not be.
  absl::Status MakeOne(const FeedPlan& plan, PlanScratch& scratch, int64_t epoch,
                       const Wanted& wanted, const absl::StatusOr<absl::string_view>& payload,
                       uint8_t* slice);

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

  std::vector<Place> places_;           // Of one call, by slot.
  std::vector<Wanted> wanted_;          // Of one call, by record.
  std::vector<int64_t> shard_records_;  // Of these, the numbers in one shard.
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
