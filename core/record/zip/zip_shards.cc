#include "core/record/zip/zip_shards.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "core/example/example_format.h"
#include "core/record/zip/zip_format.h"
#include "core/record/zip/zip_source.h"

namespace systole {
namespace {

absl::Status TooManyStretches(absl::Span<const ZipShards> members, size_t most) {
  std::string shards;
  for (const ZipShards& of : members) {
    absl::StrAppend(&shards, shards.empty() ? "" : ", ", of.size());
  }
  return absl::InvalidArgumentError(absl::StrCat(
      "the zip's datasets have ", shards, " shards, which cut the joined records into more than ",
      most, " stretches, the most for ", members.size(),
      " datasets; pack the datasets into fewer shards, or all into shards of equally many records, "
      "so that they are cut at the same records"));
}

}  // namespace

absl::StatusOr<std::vector<std::shared_ptr<const RecordSource>>> ZippedShards(
    absl::Span<const ZipShards> members, const std::shared_ptr<const ZipNames>& names,
    size_t max_parts) {
  const size_t most = max_parts / members.size();
  // Where the next stretch begins in each member.
  struct Place {
    size_t shard = 0;
    int64_t record = 0;
  };
  std::vector<Place> places(members.size());
  std::vector<std::shared_ptr<const RecordSource>> stretches;
  std::shared_ptr<const ZipFormat> format;
  while (true) {
    int64_t records = std::numeric_limits<int64_t>::max();
    std::vector<ZipPart> parts;
    std::vector<const ExampleFormat*> formats;
    for (size_t i = 0; i < members.size(); ++i) {
      Place& place = places[i];
      while (place.shard < members[i].size() &&
             place.record == members[i][place.shard]->num_records()) {
        place = {.shard = place.shard + 1, .record = 0};
      }
      if (place.shard == members[i].size()) return stretches;
      const std::shared_ptr<const RecordSource>& shard = members[i][place.shard];
      records = std::min(records, shard->num_records() - place.record);
      parts.push_back({.source = shard, .first = place.record});
      formats.push_back(&shard->examples());
    }
    if (stretches.size() == most) return TooManyStretches(members, most);
    for (Place& place : places) place.record += records;
    // Almost always all shards of a member have one format.
    if (format == nullptr || format->formats() != formats) {
      format = std::make_shared<const ZipFormat>(std::move(formats), names);
    }
    stretches.push_back(std::make_shared<const ZipSource>(std::move(parts), records, format));
  }
}

}  // namespace systole
