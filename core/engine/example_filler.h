// Makes one example at a time from its record's payload: parses it, transforms the features and
// writes the outputs into their places in the slice. Each example is made in two halves. Between
// the halves, the images of two examples can be decoded together.
//
// Single-thread. Its output depends on the arguments alone.
#ifndef SYSTOLE_CORE_ENGINE_EXAMPLE_FILLER_H_
#define SYSTOLE_CORE_ENGINE_EXAMPLE_FILLER_H_

#include <cstddef>
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
#include "core/concurrency/monotonic_clock.h"
#include "core/dataset/damage_cause.h"
#include "core/engine/feature_lists.h"
#include "core/example/example_format.h"
#include "core/example/feature_view.h"
#include "core/image/jpeg/huffman_decoder.h"
#include "core/image/paired_decoding.h"
#include "core/memory/aligned_buffer.h"
#include "core/operations/program_runner.h"
#include "core/plan/feed_plan.h"

namespace systole {

// Memory needed while an example is made. All fillers of a thread share one FillerScratch.
struct FillerScratch {
  // Makes room for the examples of `plan`. Unavailable if there is no memory. (ResourceExhausted
  // would mean that a record is too large.)
  absl::Status Reserve(const FeedPlan& plan);

  // Bytes that the scratch holds.
  int64_t bytes() const;

  AlignedBuffer example;  // The values of one example, for an output that is not made in place.
  std::vector<uint8_t> pixels;  // For ProgramRunner::Run.
  ListScratch lists;
};

// Errors name the output, but not the record's place. Unavailable means that there is no memory;
// all other errors are the record's fault.
class ExampleFiller {
 public:
  // Every later call must pass a plan equal to `plan`, and a scratch with room for the plan's
  // examples. The filler needs one decoder for each JPEG of an example. If `decoders` has fewer,
  // Create() adds the missing ones to it. Fillers whose examples do not overlap in time may share
  // decoders. If `cache` is null, nothing is kept. Otherwise the cache must outlive the filler.
  static absl::StatusOr<ExampleFiller> Create(
      const FeedPlan& plan, std::vector<std::shared_ptr<HuffmanDecoder>>& decoders,
      ValueCache* cache);

  struct Record {
    int64_t number = 0;  // The record's number in the dataset.
    // The hash of the record's shard, and the record's number in this shard. Each key of the cache
    // is made from these two and from the form of the value (KeptForm::made_by).
    uint64_t shard_hash = 0;
    int64_t in_shard = 0;
    const ExampleFormat* format = nullptr;  // The format in which the record holds features.
  };

  // Whether FindKept() is worth a call: the plan has images, and each of them uses the cache.
  bool keeps_images() const { return keeps_images_; }
  // The values that the cache has in memory for a record, one for each output. Null: the cache has
  // no value, or the output does not use the cache.
  using Kept = std::vector<CachedValue>;
  // Looks up the values of a record in the cache, before the record is read. True: the cache has a
  // value of every image. If `kept` is then passed to Begin(), Begin() and Fill() do not read the
  // encoded images in `payload`, and no image waits in a lane of PairedDecoding.
  bool FindKept(const FeedPlan& plan, const Record& record, Kept& kept);

  // First half: parses `payload`, begins its JPEGs and adds them to a lane of `decoding`. The
  // caller clears the lane when it calls Fill() or Drop(). `payload` must exist until Fill()
  // returns. If an image is decoded from `payload`, the bytes must not change until then. `pass` is
  // Place::pass. `kept` is from FindKept(), or empty. `timed_by` is the clock that times the
  // example; null if the example is not timed.
  absl::Status Begin(const FeedPlan& plan, int64_t pass, const Record& record,
                     absl::string_view payload, Kept kept, PairedDecoding& decoding, int lane,
                     const MonotonicClock* timed_by = nullptr);

  // To be called instead of Fill(). Gives the example up and frees the memory of its images.
  void Drop();

  // Second half: fills in every output of slot `slot` of `slice`. If the example is timed, both
  // halves add each output's times to FeedPlan::output_costs(). The caller must not decode an image
  // of another example between the two halves of a timed example.
  absl::Status Fill(const FeedPlan& plan, int64_t slot, FillerScratch& scratch, uint8_t* slice,
                    const MonotonicClock* timed_by = nullptr);

  // The kind of damage, if Begin() or Fill() returned an error of the record.
  DamageCause damage() const { return damage_; }

 private:
  // How an output uses the cache. Every output has one of these.
  struct Cached {
    std::optional<size_t> form;         // Index in CachePlan::forms. Not set: no cache.
    std::optional<ProgramRunner> rest;  // Runs KeptForm::rest.
    // The fields below belong to the example that was begun.
    CachedValue found;   // The value that the cache had; null if it had none.
    bool fills = false;  // Whether the value that is made is to be kept in the cache.
  };

  ExampleFiller(std::vector<ProgramRunner> runners, std::vector<Cached> cached, bool keeps_images,
                size_t num_features, ValueCache* cache)
      : cache_(cache),
        keeps_images_(keeps_images),
        features_(num_features),
        runners_(std::move(runners)),
        cached_(std::move(cached)) {}

  static CacheKey KeyOf(const KeptForm& form, const Record& record);
  // Begins output `i`, which is an image or uses the cache. Returns the JPEG that can be decoded
  // together with others; null if there is none. `kept` comes from FindKept().
  absl::StatusOr<ImageTransformer*> BeginOutput(const OutputPlan& output, size_t i,
                                                CachedValue kept);
  // If the cache had a value, makes the output from it. Otherwise, if the cache is to keep an
  // image, makes and keeps the image, and makes the output from it. False: did neither, so the
  // caller must make the output as without a cache, and then call KeepFinished().
  absl::StatusOr<bool> FillCached(const OutputPlan& output, size_t i, FillerScratch& scratch,
                                  absl::Span<uint8_t> out);
  // Makes the output from `kept`, a value in the form Cached::form.
  absl::Status FillFrom(absl::string_view kept, const OutputPlan& output, size_t i,
                        FillerScratch& scratch, absl::Span<uint8_t> out);
  // Keeps the finished example in the cache, if Cached::fills is set.
  void KeepFinished(const OutputPlan& output, size_t i, absl::Span<const uint8_t> example);

  // `length` is the example's place in the length tensor; null if the output is not padded.
  // Unavailable if there is no memory.
  absl::Status FillOutput(const OutputPlan& output, size_t i, FillerScratch& scratch,
                          absl::Span<uint8_t> out, uint8_t* length);
  absl::Status FillPadded(const OutputPlan& output, FillerScratch& scratch, absl::Span<uint8_t> out,
                          uint8_t* length) const;
  absl::Status FillValues(const OutputPlan& output, ProgramRunner& runner, FillerScratch& scratch,
                          absl::Span<uint8_t> out);
  absl::Status FillInt64s(const OutputPlan& output, ProgramRunner& runner,
                          absl::Span<const int64_t> values, FillerScratch& scratch,
                          absl::Span<uint8_t> out) const;
  // Call this when the output's feature has the right kind and size. Later errors are about the
  // feature's value.
  void HasFeature(const OutputPlan& output) {
    damage_ = output.is_image() ? DamageCause::kImage : DamageCause::kValue;
  }
  // The bytes that `output` is made of.
  absl::StatusOr<absl::string_view> BytesOf(const OutputPlan& output) const;

  ValueCache* cache_;  // Null: nothing is kept.
  bool keeps_images_;
  std::vector<FeatureView> features_;
  std::vector<ProgramRunner> runners_;  // By output.
  std::vector<Cached> cached_;          // By output.
  // The fields below belong to the example that was begun.
  absl::string_view payload_;
  MadeText made_;  // Owns text of features_. Freed with the example.
  Record record_;
  ExampleKey example_;
  DamageCause damage_ = DamageCause::kFormat;  // The cause of the next error, if there is one.
};

}  // namespace systole

#endif  // SYSTOLE_CORE_ENGINE_EXAMPLE_FILLER_H_
