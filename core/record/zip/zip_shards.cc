#include "core/record/zip/zip_shards.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "core/example/example_format.h"
#include "core/record/zip/zip_format.h"

namespace systole {
namespace {

absl::Status TooManySources(size_t most) {
  return absl::InvalidArgumentError(absl::StrCat(
      "the shards of the zip's datasets change between kinds, such as TFRecord and WebDataset, "
      "more than ",
      most - 1,
      " times; pack each dataset into shards of one kind, or name the shards so that those of one "
      "kind come one after the other"));
}

// The next records of a member, up to the member's next shard of another format.
class Run {
 public:
  explicit Run(const ZipMember& member) : member_(member) { Extend(); }

  const ExampleFormat* format() const { return format_; }
  int64_t left() const { return left_; }
  // REQUIRES: records <= left().
  void Skip(int64_t records) {
    left_ -= records;
    if (left_ == 0) Extend();
  }

 private:
  void Extend() {
    const ZipMember::Shards& shards = *member_.shards;
    format_ = nullptr;
    for (; next_ < shards.size(); ++next_) {
      const RecordSource& shard = *shards[next_];
      if (shard.num_records() == 0) continue;
      if (format_ == nullptr) format_ = &shard.examples();
      if (format_ != &shard.examples()) return;
      left_ += shard.num_records();
    }
  }

  const ZipMember& member_;
  size_t next_ = 0;  // The first shard that is not in the run.
  const ExampleFormat* format_ = nullptr;
  int64_t left_ = 0;
};

}  // namespace

absl::StatusOr<std::vector<std::shared_ptr<const RecordSource>>> ZippedShards(
    std::vector<ZipMember> members, const std::shared_ptr<const ZipNames>& names,
    size_t max_sources) {
  const auto shared = std::make_shared<const std::vector<ZipMember>>(std::move(members));
  std::vector<ZipMemberSums> sums;
  for (const ZipMember& member : *shared) sums.push_back(SumsOf(member));
  std::vector<Run> runs(shared->begin(), shared->end());
  std::vector<std::shared_ptr<const RecordSource>> sources;
  int64_t first = 0;
  while (true) {
    int64_t records = std::numeric_limits<int64_t>::max();
    std::vector<const ExampleFormat*> formats;
    for (const Run& run : runs) {
      records = std::min(records, run.left());
      formats.push_back(run.format());
    }
    if (records == 0) return sources;
    if (sources.size() == max_sources) return TooManySources(max_sources);
    sources.push_back(std::make_shared<const ZipSource>(
        shared, sums, first, records,
        std::make_shared<const ZipFormat>(std::move(formats), names)));
    for (Run& run : runs) run.Skip(records);
    first += records;
  }
}

}  // namespace systole
