// Makes one example at a time from its record's payload: parses it, transforms the features and
// writes the outputs into their places in the slice. Each example is made in two halves. Between
// them the images of two examples can be decoded together.
//
// Single-thread. What it writes depends on the arguments alone.
#ifndef SYSTOLE_CORE_ENGINE_EXAMPLE_FILLER_H_
#define SYSTOLE_CORE_ENGINE_EXAMPLE_FILLER_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "core/cache/value_cache.h"
#include "core/engine/feature_lists.h"
#include "core/example/example_format.h"
#include "core/example/feature_view.h"
#include "core/image/jpeg/huffman_decoder.h"
#include "core/image/paired_decoding.h"
#include "core/memory/aligned_buffer.h"
#include "core/operations/program_runner.h"
#include "core/plan/feed_plan.h"

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
  // do not overlap in time may share them. `cache` may be null: then outputs are made as if they
  // did not ask for it. Otherwise it must outlive the filler.
  static absl::StatusOr<ExampleFiller> Create(
      const FeedPlan& plan, std::vector<std::shared_ptr<HuffmanDecoder>>& decoders,
      ValueCache* cache);

  // A record: its number in the dataset; the hash of its shard and its number there, for keys of
  // the cache; and how it holds features.
  struct Record {
    int64_t number = 0;
    uint64_t shard_hash = 0;
    int64_t in_shard = 0;
    const ExampleFormat* format = nullptr;
  };

  // First half: parses `payload`, begins its JPEGs and adds them to a lane of `decoding`. `payload`
  // must not change until Fill returns. The caller clears the lane when it calls Fill or Drop.
  // `pass` is Place::pass.
  absl::Status Begin(const FeedPlan& plan, int64_t pass, const Record& record,
                     absl::string_view payload, PairedDecoding& decoding, int lane);

  // Instead of Fill(): gives the example up and frees the memory of its images.
  void Drop();

  // Second half: fills in every output of slot `slot` of `slice`.
  absl::Status Fill(const FeedPlan& plan, int64_t slot, FillerScratch& scratch, uint8_t* slice);

 private:
  // An output that asks for the cache.
  struct Cached {
    std::optional<ProgramRunner> rest;  // Set if there is a cache.
    // For the example that was begun: the value that was found, or whether one is to be made.
    CachedValue found;
    bool fills = false;
  };

  ExampleFiller(std::vector<ProgramRunner> runners, std::vector<Cached> cached, size_t num_features,
                ValueCache* cache)
      : cache_(cache),
        features_(num_features),
        runners_(std::move(runners)),
        cached_(std::move(cached)) {}

  CacheKey KeyOf(const CachePlan& plan) const;
  // Begins output `i`, an image or one that asks for the cache. Returns the image that was started,
  // or null.
  absl::StatusOr<ImageTransformer*> BeginOutput(const OutputPlan& output, size_t i);
  // Makes the output from the value that was found, or makes and keeps it. False: the caller must
  // make it in the usual way.
  absl::StatusOr<bool> FillCached(const OutputPlan& output, size_t i, FillerScratch& scratch,
                                  absl::Span<uint8_t> out);

  // `length` is the example's place in the length tensor; null if the output is not padded.
  // Unavailable if there is no memory.
  absl::Status FillOutput(const OutputPlan& output, size_t i, FillerScratch& scratch,
                          absl::Span<uint8_t> out, uint8_t* length);
  absl::Status FillPadded(const OutputPlan& output, FillerScratch& scratch, absl::Span<uint8_t> out,
                          uint8_t* length) const;
  absl::Status FillValues(const OutputPlan& output, ProgramRunner& runner, FillerScratch& scratch,
                          absl::Span<uint8_t> out) const;
  absl::Status FillInt64s(const OutputPlan& output, ProgramRunner& runner,
                          absl::Span<const int64_t> values, FillerScratch& scratch,
                          absl::Span<uint8_t> out) const;
  // The bytes that `output` is made of.
  absl::StatusOr<absl::string_view> BytesOf(const OutputPlan& output) const;

  ValueCache* cache_;  // Null: nothing is kept.
  std::vector<FeatureView> features_;
  std::vector<ProgramRunner> runners_;  // By output.
  std::vector<Cached> cached_;          // Likewise.
  // These belong to the example that was begun.
  absl::string_view payload_;
  MadeText made_;  // Owns text of features_. Freed with the example.
  Record record_;
  ExampleKey example_;
};

}  // namespace systole

#endif  // SYSTOLE_CORE_ENGINE_EXAMPLE_FILLER_H_
