#include "core/pipeline/dataset.h"

#include <algorithm>
#include <utility>

#include "absl/memory/memory.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "core/checksum/xxh3.h"
#include "core/status/status_macros.h"
#include "core/storage/list_shards.h"

namespace systole {
namespace {

// Records looked at to find one that can be described. More would make a server that is handed a
// damaged or foreign dataset slow to start.
constexpr int64_t kMaxProbedRecords = 16;

std::vector<FeatureDescription> ProbeFeatures(const Dataset& dataset) {
  AlignedBuffer scratch;
  const int64_t probed = std::min(dataset.num_records(), kMaxProbedRecords);
  for (int64_t record = 0; record < probed; ++record) {
    const absl::StatusOr<absl::string_view> payload = dataset.ReadRecord(record, scratch);
    if (!payload.ok()) continue;
    absl::StatusOr<std::vector<FeatureDescription>> features = DescribeFeatures(*payload);
    if (features.ok() && !features->empty()) return *std::move(features);
  }
  return {};
}

}  // namespace

void DamageLog::Add(Entry entry) {
  MutexLock lock(mu_);
  ++masked_examples_;
  if (entries_.size() >= kMaxEntries || !records_.insert(entry.record).second) return;
  entries_.push_back(std::move(entry));
}

int64_t DamageLog::masked_examples() const {
  MutexLock lock(mu_);
  return masked_examples_;
}

std::vector<DamageLog::Entry> DamageLog::entries() const {
  MutexLock lock(mu_);
  return entries_;
}

Dataset::Dataset(std::string name, std::vector<Shard> shards, ShardMap map)
    : name_(std::move(name)), shards_(std::move(shards)), map_(std::move(map)) {}

absl::StatusOr<std::shared_ptr<Dataset>> Dataset::Open(std::string name,
                                                       absl::Span<const std::string> patterns,
                                                       const ShardOptions& options) {
  SYSTOLE_ASSIGN_OR_RETURN(const std::vector<std::string> paths, ListShards(patterns));
  std::vector<Shard> shards;
  shards.reserve(paths.size());
  for (const std::string& path : paths) {
    SYSTOLE_ASSIGN_OR_RETURN(Shard shard, Shard::Open(path, options));
    shards.push_back(std::move(shard));
  }
  return Create(std::move(name), std::move(shards));
}

absl::StatusOr<std::shared_ptr<Dataset>> Dataset::Create(std::string name,
                                                         std::vector<Shard> shards) {
  std::vector<int64_t> counts;
  counts.reserve(shards.size());
  uint64_t bytes = 0;
  Xxh3Hasher hasher;
  for (const Shard& shard : shards) {
    counts.push_back(shard.num_records());
    bytes += shard.size_bytes();
    hasher.UpdateU64(static_cast<uint64_t>(shard.num_records()));
    hasher.UpdateU64(shard.content_hash());
  }
  SYSTOLE_ASSIGN_OR_RETURN(ShardMap map, ShardMap::Create(counts));
  if (map.num_records() == 0) {
    return absl::InvalidArgumentError(absl::StrCat("dataset '", name, "': its ", shards.size(),
                                                   " shards hold no record; want at least one"));
  }
  auto dataset = absl::WrapUnique(new Dataset(std::move(name), std::move(shards), std::move(map)));
  // Each record has a byte at least.
  dataset->mean_record_bytes_ = static_cast<int64_t>(bytes) / dataset->num_records();
  dataset->fingerprint_ = hasher.Digest64();
  dataset->features_ = ProbeFeatures(*dataset);
  return std::shared_ptr<Dataset>(std::move(dataset));
}

absl::StatusOr<absl::string_view> Dataset::ReadRecord(int64_t record,
                                                      AlignedBuffer& scratch) const {
  const ShardPlace place = map_.Find(record);
  return shards_[static_cast<size_t>(place.shard)].ReadRecord(place.index, scratch);
}

std::string Dataset::Where(int64_t record) const {
  const ShardPlace place = map_.Find(record);
  const Shard& shard = shards_[static_cast<size_t>(place.shard)];
  return absl::StrCat("shard '", shard.base_name(), "', offset ",
                      shard.index().span(place.index).offset, ", record ", place.index,
                      " (record_id ", record, ")");
}

}  // namespace systole
