// The features of a few records of a dataset, and the sizes of these features. A sample is enough
// to describe the dataset, and to refuse a spec with shapes that do not fit the records.
//
// Thread-compatible: an immutable value.
#ifndef SYSTOLE_CORE_DATASET_DATASET_SAMPLE_H_
#define SYSTOLE_CORE_DATASET_DATASET_SAMPLE_H_

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "core/example/example_format.h"
#include "core/example/example_parser.h"
#include "core/image/image_size.h"
#include "core/memory/aligned_buffer.h"

namespace systole {

// A record that was read, and the format of its features.
struct SampledRecord {
  absl::string_view payload;
  const ExampleFormat* format = nullptr;
};

class DatasetSample {
 public:
  // A sample of no records.
  DatasetSample() = default;

  using ReadRecord =
      absl::FunctionRef<absl::StatusOr<SampledRecord>(int64_t record, AlignedBuffer& scratch)>;

  // Reads records from the beginning of the dataset until one can be described, but at most 16 of
  // the `num_records` records. If there is one, then reads up to 8 records that are spread over the
  // dataset. Skips records that cannot be read.
  static DatasetSample Take(int64_t num_records, ReadRecord read);

  // The sample of a zip: the features of all `members`, each name with the prefix of its member. If
  // there are very many features, only the first features are kept, as in
  // ExampleView::FirstFeatures().
  struct Member {
    const DatasetSample* sample = nullptr;
    std::string prefix;
  };
  static DatasetSample OfZip(absl::Span<const Member> members);

  // Features of the first record that can be described; empty if there is none.
  const std::vector<FeatureDescription>& features() const { return features_; }

  // The names of the features of all records that were read. Sorted, at most 1,000.
  std::vector<std::string> names() const;

  // For a message that `size` is wrong: the sizes of the feature `name` in the sample, such as
  // "1 or 3 values". Empty if `size` is one of these sizes, or if the sample has no size of the
  // feature. The size of an int64 or float feature is its number of values. The size of a bytes
  // feature with one value is the number of bytes.
  std::string OtherSizes(absl::string_view name, int64_t size) const;

  // The size of the largest image in the bytes feature `name`, or of the largest record that is an
  // image, if `name` is empty. Nullopt if the sample has no such image.
  std::optional<ImageSize> LargestImage(absl::string_view name) const;

 private:
  void LookAt(const SampledRecord& record);
  void LookAtImage(absl::string_view name, absl::string_view file);

  std::vector<FeatureDescription> features_;
  // The sizes of each feature. They include kNoSize if the bytes feature has no value or several
  // values in some record.
  std::map<std::string, std::set<int64_t>, std::less<>> sizes_;
  std::map<std::string, ImageSize, std::less<>> images_;  // Keys as `name` in LargestImage().
};

}  // namespace systole

#endif  // SYSTOLE_CORE_DATASET_DATASET_SAMPLE_H_
