#include "core/dataset/dataset_sample.h"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace systole {
namespace {

// The most records that are tried until a record can be described. With a larger number, a server
// would start slowly if its dataset is damaged or has an unknown format.
constexpr int64_t kMaxProbedRecords = 16;
// How many more records are read, spread over the dataset. Each record costs a random read. Fewer
// records are read if the sample's records reach kMaxSpreadBytes.
constexpr int64_t kSpreadRecords = 8;
constexpr size_t kMaxSpreadBytes = 32 << 20;
// The most features whose sizes are kept, because a record may have any number of features.
constexpr size_t kMaxFeatures = 1000;

// The size that is kept for a bytes feature that has no value or several values.
constexpr int64_t kNoSize = -1;

}  // namespace

DatasetSample DatasetSample::Take(int64_t num_records, ReadRecord read) {
  DatasetSample sample;
  AlignedBuffer scratch;
  for (int64_t record = 0; record < std::min(num_records, kMaxProbedRecords); ++record) {
    const absl::StatusOr<SampledRecord> sampled = read(record, scratch);
    if (!sampled.ok()) continue;
    sample.LookAtImage("", sampled->payload);
    absl::StatusOr<std::vector<FeatureDescription>> features =
        DescribeFeatures(sampled->payload, *sampled->format);
    if (!features.ok() || features->empty()) continue;
    sample.features_ = *std::move(features);
    sample.LookAt(*sampled);
    break;
  }
  if (sample.features_.empty()) return sample;
  size_t bytes = 0;
  const int64_t looks = std::min(num_records, kSpreadRecords);
  for (int64_t i = 0; i < looks && bytes < kMaxSpreadBytes; ++i) {
    const absl::StatusOr<SampledRecord> sampled = read(i * (num_records / looks), scratch);
    if (!sampled.ok()) continue;
    sample.LookAt(*sampled);
    bytes += sampled->payload.size();
  }
  return sample;
}

DatasetSample DatasetSample::OfZip(absl::Span<const Member> members) {
  DatasetSample all;
  size_t name_bytes = kMaxFirstNameBytes;
  for (const auto& [sample, prefix] : members) {
    for (const FeatureDescription& feature : sample->features_) {
      const size_t bytes = prefix.size() + feature.name.size();
      if (all.features_.size() >= kMaxFirstFeatures || bytes > name_bytes) continue;
      name_bytes -= bytes;
      all.features_.push_back(feature);
      all.features_.back().name.insert(0, prefix);
    }
    for (const auto& [name, sizes] : sample->sizes_) {
      if (all.sizes_.size() < kMaxFeatures) all.sizes_.emplace(prefix + name, sizes);
    }
    for (const auto& [name, size] : sample->images_) {
      if (!name.empty()) all.images_.emplace(prefix + name, size);  // "" is for whole records.
    }
  }
  std::sort(all.features_.begin(), all.features_.end(),
            [](const auto& a, const auto& b) { return a.name < b.name; });
  return all;
}

void DatasetSample::LookAt(const SampledRecord& record) {
  const absl::StatusOr<ExampleView> example = ExampleView::Parse(record.payload, *record.format);
  if (!example.ok()) return;
  for (const FeatureView& feature : example->FirstFeatures()) {
    if (feature.kind() == FeatureKind::kMissing) continue;
    if (sizes_.size() >= kMaxFeatures && !sizes_.contains(feature.name())) continue;
    int64_t size = feature.count();
    if (feature.kind() == FeatureKind::kBytes) {
      const absl::StatusOr<absl::string_view> value = feature.BytesAt(0);
      size = feature.count() == 1 && value.ok() ? static_cast<int64_t>(value->size()) : kNoSize;
      if (size > 0) LookAtImage(feature.name(), *value);
    }
    sizes_[std::string(feature.name())].insert(size);
  }
}

void DatasetSample::LookAtImage(absl::string_view name, absl::string_view file) {
  const std::optional<ImageSize> size = SizeOfImage(file);
  if (!size.has_value()) return;
  ImageSize& largest = images_[std::string(name)];
  if (size->pixels() > largest.pixels()) largest = *size;
}

std::optional<ImageSize> DatasetSample::LargestImage(absl::string_view name) const {
  const auto found = images_.find(name);
  return found == images_.end() ? std::nullopt : std::optional(found->second);
}

std::vector<std::string> DatasetSample::names() const {
  std::vector<std::string> names;
  for (const auto& [name, sizes] : sizes_) names.push_back(name);
  return names;
}

std::string DatasetSample::OtherSizes(absl::string_view name, int64_t size) const {
  const auto found = sizes_.find(name);
  if (found == sizes_.end() || found->second.contains(size)) return "";
  const auto feature =
      std::find_if(features_.begin(), features_.end(),
                   [name](const FeatureDescription& each) { return each.name == name; });
  const bool bytes = feature != features_.end() && feature->kind == FeatureKind::kBytes;
  std::set<int64_t> sizes = found->second;
  const bool odd = sizes.erase(kNoSize) > 0;
  if (sizes.empty()) return "several values or none";
  return absl::StrCat(absl::StrJoin(sizes, " or "), bytes ? " bytes" : " values",
                      odd ? ", or several values or none" : "");
}

}  // namespace systole
