#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "core/dataset/dataset.h"
#include "core/dataset/dataset_columns.h"
#include "core/dataset/zip_features.h"
#include "core/record/zip/zip_names.h"
#include "core/record/zip/zip_shards.h"
#include "core/status/status_macros.h"
#include "core/text/foreign_text.h"

namespace systole {
namespace {

std::vector<FeaturesOfMember> FeaturesOfMembers(absl::Span<const ZippedMember> members) {
  std::vector<FeaturesOfMember> features;
  for (const auto& [dataset, prefix] : members) {
    features.push_back(
        {.dataset = dataset->name(), .prefix = prefix, .features = dataset->features()});
  }
  return features;
}

absl::Status CheckLengths(absl::Span<const ZippedMember> members) {
  const Dataset& first = *members[0].dataset;
  for (size_t i = 1; i < members.size(); ++i) {
    const Dataset& other = *members[i].dataset;
    if (other.num_records() == first.num_records()) continue;
    return absl::InvalidArgumentError(absl::StrCat(
        "zip[", i, "] ('", ForeignName(other.name()), "') has ", other.num_records(),
        " records and zip[0] ('", ForeignName(first.name()), "') has ", first.num_records(),
        "; want equal numbers, because record i of one dataset is joined to record i of the other; "
        "pack the shards of the longer dataset anew without the records that have no partner"));
  }
  return absl::OkStatus();
}

std::shared_ptr<const ZipNames> NamesOf(absl::Span<const ZippedMember> members) {
  std::vector<ZipNamesOfMember> names;
  for (const auto& [dataset, prefix] : members) {
    ZipNamesOfMember& member = names.emplace_back();
    member.dataset = dataset->name();
    member.prefix = prefix;
    for (const FeatureDescription& feature : dataset->features()) {
      member.features.push_back(feature.name);
    }
  }
  return std::make_shared<const ZipNames>(std::move(names));
}

}  // namespace

absl::StatusOr<std::shared_ptr<Dataset>> Dataset::Zip(std::vector<ZippedMember> members) {
  SYSTOLE_RETURN_IF_ERROR(CheckLengths(members));
  SYSTOLE_RETURN_IF_ERROR(CheckZipNames(FeaturesOfMembers(members)));
  std::string name;
  for (const ZippedMember& member : members) {
    absl::StrAppend(&name, name.empty() ? "" : " & ", member.dataset->name());
  }
  // Shared with the members, so that a zip takes no memory for each shard.
  std::vector<ZipMember> zipped;
  for (const ZippedMember& member : members) {
    zipped.push_back({.shards = {member.dataset, &member.dataset->shards_},
                      .map = {member.dataset, &member.dataset->map_}});
  }
  SYSTOLE_ASSIGN_OR_RETURN(auto shards, ZippedShards(std::move(zipped), NamesOf(members)));
  SYSTOLE_ASSIGN_OR_RETURN(std::shared_ptr<Dataset> dataset,
                           Of(std::move(name), std::move(shards)));
  std::vector<DatasetSample::Member> samples;
  for (size_t i = 0; i < members.size(); ++i) {
    const Dataset& member = *members[i].dataset;
    samples.push_back({.sample = &member.sample(), .prefix = members[i].prefix});
    dataset->min_payload_bytes_ += member.min_payload_bytes();
    dataset->max_payload_bytes_ += member.max_payload_bytes();
    // If a member is named twice, its bytes are fetched only once.
    const bool again = std::any_of(
        members.begin(), members.begin() + static_cast<ptrdiff_t>(i),
        [&](const ZippedMember& earlier) { return earlier.dataset == members[i].dataset; });
    if (!again) dataset->far_bytes_ += member.far_bytes();
  }
  dataset->sample_ = DatasetSample::OfZip(samples);
  dataset->zipped_ = std::move(members);
  return dataset;
}

std::optional<size_t> Dataset::PartOfFeature(absl::string_view feature) const {
  const std::optional<ZipFeature> found = FindZipFeature(FeaturesOfMembers(zipped_), feature);
  return found.has_value() ? std::optional(found->member) : std::nullopt;
}

std::string Dataset::WhereInZip(int64_t record, std::optional<size_t> part) const {
  std::string where;
  for (size_t i = 0; i < zipped_.size(); ++i) {
    if (part.value_or(i) != i) continue;
    const Dataset& member = *zipped_[i].dataset;
    absl::StrAppend(&where, where.empty() ? "" : " and ", "dataset '", member.name(), "', ",
                    member.Where(record));
  }
  return where;
}

absl::StatusOr<NotedColumns> Dataset::NoteColumnsOfZip(const std::vector<std::string>& features,
                                                       const NoteColumnsOptions& options) const {
  const std::vector<FeaturesOfMember> members = FeaturesOfMembers(zipped_);
  NotedColumns all;
  // The key is the number of the first member that has the dataset. So a dataset that is named
  // twice is read once, and its damage counts once. For each feature of the dataset, the value has
  // the feature's names in the zip.
  std::map<size_t, std::map<std::string, std::set<std::string>>> features_of;
  for (const std::string& feature : features) {
    const std::optional<ZipFeature> found = FindZipFeature(members, feature);
    if (!found.has_value()) {
      all.absent.push_back(feature);
      continue;
    }
    size_t first = 0;
    while (zipped_[first].dataset != zipped_[found->member].dataset) ++first;
    features_of[first][std::string(found->name)].insert(feature);
  }
  for (const auto& [member, names] : features_of) {
    std::vector<std::string> own;
    for (const auto& [name, in_zip] : names) own.push_back(name);
    SYSTOLE_ASSIGN_OR_RETURN(const NotedColumns noted,
                             zipped_[member].dataset->NoteColumns(own, options));
    for (const auto& [name, records] : noted.features) {
      for (const std::string& in_zip : names.at(name)) {
        all.features.push_back({.name = in_zip, .records = records});
      }
    }
    for (const std::string& name : noted.absent) {
      all.absent.insert(all.absent.end(), names.at(name).begin(), names.at(name).end());
    }
    all.damaged += noted.damaged;
    all.kept = all.kept && noted.kept;
    if (all.note.empty()) all.note = noted.note;
  }
  std::sort(all.features.begin(), all.features.end(),
            [](const auto& a, const auto& b) { return a.name < b.name; });
  return all;
}

absl::StatusOr<std::vector<uint64_t>> Dataset::RecordsOfZip(const Condition& condition,
                                                            int64_t bytes,
                                                            std::set<std::string>& found) const {
  return RecordsOfZipThatMeet(condition, FeaturesOfMembers(zipped_),
                              [&](size_t member, const Condition& own) {
                                const auto& [dataset, prefix] = zipped_[member];
                                std::set<std::string> names;
                                auto records = dataset->RecordsThatMeet(own, bytes, names);
                                for (const std::string& name : names)
                                  found.insert(absl::StrCat(prefix, name));
                                return records;
                              });
}

}  // namespace systole
