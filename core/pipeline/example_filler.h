// One example at a time, from its record's payload to its outputs: parsed, transformed and written
// into their places in the slice. In two halves, between which the images of two examples can be
// decoded together.
//
// Single-thread. What it writes depends on the arguments alone.
#ifndef SYSTOLE_CORE_PIPELINE_EXAMPLE_FILLER_H_
#define SYSTOLE_CORE_PIPELINE_EXAMPLE_FILLER_H_

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "core/example/feature_view.h"
#include "core/image/huffman_decoder.h"
#include "core/image/paired_decoding.h"
#include "core/memory/aligned_buffer.h"
#include "core/operations/program_runner.h"
#include "core/pipeline/feed_plan.h"

namespace systole {

// Memory that an example needs on its way; one for all fillers of a thread.
struct FillerScratch {
  // Makes room for the examples of `plan`. Unavailable if there is no memory, which says nothing of
  // a record, as ResourceExhausted would.
  absl::Status Reserve(const FeedPlan& plan);

  // Bytes that it holds.
  int64_t bytes() const;

  AlignedBuffer example;        // One of any output that is not written in place.
  std::vector<uint8_t> pixels;  // ProgramRunner::Run.
  std::vector<int64_t> int64s;
  std::vector<float> floats;
};

// Errors are without the record's place, but name the output. Unavailable says that there is no
// memory; all others are the record's fault.
class ExampleFiller {
 public:
  // Every call must name a plan equal to `plan`, and a scratch with room for it. `decoders` are
  // those of the JPEGs in an example, more are added if it has more: fillers whose examples do not
  // overlap share them.
  static absl::StatusOr<ExampleFiller> Create(
      const FeedPlan& plan, std::vector<std::shared_ptr<HuffmanDecoder>>& decoders);

  // First half: parses `payload`, which must stay as it is until Fill returns, begins the JPEGs in
  // it and adds them to a lane of `decoding`. Fill and Drop are for the caller to tell it.
  absl::Status Begin(const FeedPlan& plan, int64_t epoch, int64_t record, absl::string_view payload,
                     PairedDecoding& decoding, int lane);

  // Instead of Fill(): the example is given up, and the memory of its images freed.
  void Drop();

  // Second half: fills in every output of slot `slot` of `slice`.
  absl::Status Fill(const FeedPlan& plan, int64_t slot, FillerScratch& scratch, uint8_t* slice);

 private:
  ExampleFiller(std::vector<ProgramRunner> runners, size_t num_features)
      : features_(num_features), runners_(std::move(runners)) {}

  // Unavailable if there is no memory.
  absl::Status FillOutput(const OutputPlan& output, ProgramRunner& runner, FillerScratch& scratch,
                          absl::Span<uint8_t> out) const;
  absl::Status FillValues(const OutputPlan& output, ProgramRunner& runner, FillerScratch& scratch,
                          absl::Span<uint8_t> out) const;
  // The bytes that an output is made of.
  absl::StatusOr<absl::string_view> BytesOf(const OutputPlan& output) const;

  std::vector<FeatureView> features_;
  std::vector<ProgramRunner> runners_;  // By output.
  // Of the example that was begun.
  absl::string_view payload_;
  ExampleKey example_;
};

}  // namespace systole

#endif  // SYSTOLE_CORE_PIPELINE_EXAMPLE_FILLER_H_
