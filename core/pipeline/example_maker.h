// Makes examples: reads their records, transforms the features, writes them into their places in
// the slice. Holds the scratch memory and decoders of one thread: while it works, what the plan
// (kMaxScratchBytes), a record (three times its bytes) and its images take; in between, 55 MiB.
//
// Single-thread. What it writes depends on the arguments alone.
#ifndef SYSTOLE_CORE_PIPELINE_EXAMPLE_MAKER_H_
#define SYSTOLE_CORE_PIPELINE_EXAMPLE_MAKER_H_

#include <array>
#include <cstdint>
#include <list>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "core/image/huffman_decoder.h"
#include "core/image/paired_decoding.h"
#include "core/memory/aligned_buffer.h"
#include "core/order/order.h"
#include "core/order/shard_map.h"
#include "core/pipeline/example_filler.h"
#include "core/pipeline/feed_plan.h"
#include "core/pipeline/first_error.h"
#include "core/pipeline/scratch_bytes.h"

namespace systole {

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
  // Two examples are made at a time, because two images decoded together take less time than one
  // after the other. What each needs, whatever the plan:
  struct Lane {
    std::vector<std::shared_ptr<HuffmanDecoder>> decoders;  // Of its images.
    std::string payload;                                    // While it waits.
  };

  // A record and where its example belongs.
  struct Wanted {
    int64_t record = 0;
    int64_t slot = 0;
    ShardPlace place;
  };

  // An example of one plan.
  struct Making {
    explicit Making(ExampleFiller filler) : filler(std::move(filler)) {}

    ExampleFiller filler;
    Wanted wanted;
  };

  // What one plan needs between calls.
  struct PlanScratch {
    std::weak_ptr<const FeedPlan> plan;
    ScratchBytes bytes;
    std::array<Making, PairedDecoding::kLanes> makings;  // By lane.
  };

  // One call.
  struct Task {
    const FeedPlan& plan;
    PlanScratch& scratch;
    int64_t epoch = 0;
    bool copies_payloads = false;
    uint8_t* slice = nullptr;
    FirstError error;
  };

  // Make(), but for what is kept afterwards.
  absl::Status MakeAll(const std::shared_ptr<const FeedPlan>& plan, int64_t step, int core,
                       int64_t begin, int64_t end, uint8_t* slice);
  // Frees what is too much to be kept: of one large record, one wide image or many plans.
  void FreeLarge();

  // The scratch of `plan`, made at first use; the least recently used one goes when there are many.
  absl::StatusOr<PlanScratch*> ScratchOf(const std::shared_ptr<const FeedPlan>& plan);

  // Makes the example of one record, whose payload has been read, or could not be: at once, or when
  // later ones come or FinishAll is called.
  void Add(Task& task, const Wanted& wanted, const absl::StatusOr<absl::string_view>& payload);
  void FinishAll(Task& task);
  // The one of those that wait whose images are decoded first.
  void FinishOne(Task& task);

  // Makes the rest of the example in `lane`, which has begun, or failed to with `status`.
  void Finish(Task& task, int lane, absl::Status status);
  // Marks the example valid, or as `status` and the spec say.
  void Settle(Task& task, const Wanted& wanted, absl::Status status);

  std::vector<Place> places_;           // Of one call, by slot.
  std::vector<Wanted> wanted_;          // Of one call, by record.
  std::vector<int64_t> shard_records_;  // Of these, the numbers in one shard.
  AlignedBuffer record_scratch_;
  std::array<Lane, PairedDecoding::kLanes> lanes_;
  PairedDecoding decoding_;  // A lane waits while its example does.
  FillerScratch filler_scratch_;
  std::list<PlanScratch> scratches_;  // Most recently used first.
};

}  // namespace systole

#endif  // SYSTOLE_CORE_PIPELINE_EXAMPLE_MAKER_H_
