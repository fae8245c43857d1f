// Makes one example at a time from its record's payload: parses it, transforms the features and
// writes the outputs into their places in the slice. Each example is made in two halves. Between
// them the images of two examples can be decoded together.
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
#include "core/pipeline/feature_lists.h"
#include "core/pipeline/feed_plan.h"

namespace systole {

// Memory needed while an example is made. All fillers of a thread share one.
struct FillerScratch {
  // Makes room for the examples of `plan`. Unavailable if there is no memory. (ResourceExhausted
  // would mean that a record is too large.)
  absl::Status Reserve(const FeedPlan& plan);

  // Bytes that the scratch holds.
  int64_t bytes() const;

  AlignedBuffer example;        // One example of an output that is not made in place.
  std::vector<uint8_t> pixels;  // ProgramRunner::Run.
  ListScratch lists;
};

// Errors name the output, but not the record's place. Unavailable means that there is no memory;
// all other errors are the record's fault.
class ExampleFiller {
 public:
  // Every later call must pass a plan equal to `plan`, and a scratch with room for it. `decoders`
  // has one for each JPEG of an example; Create adds those that are missing. Fillers whose examples
  // do not overlap in time may share them.
  static absl::StatusOr<ExampleFiller> Create(
      const FeedPlan& plan, std::vector<std::shared_ptr<HuffmanDecoder>>& decoders);

  // First half: parses `payload`, begins its JPEGs and adds them to a lane of `decoding`. `payload`
  // must not change until Fill returns. The caller clears the lane when it calls Fill or Drop.
  // `pass` is Place::pass.
  absl::Status Begin(const FeedPlan& plan, int64_t pass, int64_t record, absl::string_view payload,
                     PairedDecoding& decoding, int lane);

  // Instead of Fill(): gives the example up and frees the memory of its images.
  void Drop();

  // Second half: fills in every output of slot `slot` of `slice`.
  absl::Status Fill(const FeedPlan& plan, int64_t slot, FillerScratch& scratch, uint8_t* slice);

 private:
  ExampleFiller(std::vector<ProgramRunner> runners, size_t num_features)
      : features_(num_features), runners_(std::move(runners)) {}

  // `length` is the example's place in the length tensor; null if the output is not padded.
  // Unavailable if there is no memory.
  absl::Status FillOutput(const OutputPlan& output, ProgramRunner& runner, FillerScratch& scratch,
                          absl::Span<uint8_t> out, uint8_t* length) const;
  absl::Status FillPadded(const OutputPlan& output, FillerScratch& scratch, absl::Span<uint8_t> out,
                          uint8_t* length) const;
  absl::Status FillValues(const OutputPlan& output, ProgramRunner& runner, FillerScratch& scratch,
                          absl::Span<uint8_t> out) const;
  absl::Status FillInt64s(const OutputPlan& output, ProgramRunner& runner,
                          absl::Span<const int64_t> values, FillerScratch& scratch,
                          absl::Span<uint8_t> out) const;
  // The bytes that `output` is made of.
  absl::StatusOr<absl::string_view> BytesOf(const OutputPlan& output) const;

  std::vector<FeatureView> features_;
  std::vector<ProgramRunner> runners_;  // By output.
  // Of the example that was begun.
  absl::string_view payload_;
  ExampleKey example_;
};

}  // namespace systole

#endif  // SYSTOLE_CORE_PIPELINE_EXAMPLE_FILLER_H_
