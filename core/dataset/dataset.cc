#include "core/dataset/dataset.h"

#include <algorithm>
#include <atomic>
#include <limits>
#include <optional>
#include <set>
#include <utility>

#include "absl/memory/memory.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "core/checksum/xxh3.h"
#include "core/interrupt/interrupt.h"
#include "core/status/status_macros.h"
#include "core/text/foreign_text.h"

namespace systole {
namespace {

uint64_t NextNumber() {
  static std::atomic<uint64_t> made = 0;
  return made.fetch_add(1, std::memory_order_relaxed);
}

// Copies the first `num_bits` bits of `bits` to `all`, from bit `at` on. REQUIRES: `all` has room
// for the bits, and the bits of `all` from `at` on are 0.
void AppendBits(absl::Span<const uint64_t> bits, int64_t num_bits, int64_t at,
                std::vector<uint64_t>& all) {
  const auto shift = static_cast<unsigned>(at % 64);
  auto to = static_cast<size_t>(at / 64);
  for (int64_t begin = 0; begin < num_bits; begin += 64, ++to) {
    const uint64_t word = bits[static_cast<size_t>(begin / 64)];
    all[to] |= word << shift;
    if (shift > 0 && word >> (64 - shift) != 0) all[to + 1] |= word >> (64 - shift);
  }
}

}  // namespace

Dataset::Dataset(std::string name, std::vector<std::shared_ptr<const RecordSource>> shards,
                 ShardMap map)
    : name_(std::move(name)),
      shards_(std::move(shards)),
      map_(std::move(map)),
      number_(NextNumber()) {}

absl::StatusOr<std::shared_ptr<Dataset>> Dataset::Open(std::string name,
                                                       absl::Span<const std::string> patterns,
                                                       const ShardOptions& options,
                                                       const ExpectedContent& expected) {
  std::string note;
  absl::StatusOr<OpenedShards> shards = OpenShards(name, patterns, options, expected, note);
  absl::StatusOr<std::shared_ptr<Dataset>> dataset =
      shards.ok() ? Create(name, *std::move(shards)) : shards.status();
  // The functions above may have returned another error because of the interruption, for example
  // that an index cannot be read.
  if (InterruptRequested()) {
    return absl::CancelledError(absl::StrCat("opening dataset '", name, "' was interrupted"));
  }
  if (!dataset.ok()) return dataset;
  (*dataset)->note_ = std::move(note);
  (*dataset)->columns_ = std::make_unique<DatasetColumns>(options.index_dir, options.write_index);
  return dataset;
}

absl::StatusOr<std::shared_ptr<Dataset>> Dataset::Of(
    std::string name, std::vector<std::shared_ptr<const RecordSource>> shards) {
  std::vector<int64_t> counts;
  counts.reserve(shards.size());
  uint64_t bytes = 0;
  Xxh3Hasher hasher;
  int64_t num_damaged = 0;
  for (const std::shared_ptr<const RecordSource>& shard : shards) {
    num_damaged += shard->num_damaged();
    counts.push_back(shard->num_records());
    bytes += shard->size_bytes();
    hasher.UpdateU64(static_cast<uint64_t>(shard->num_records()));
    hasher.UpdateU64(shard->content_hash());
  }
  SYSTOLE_ASSIGN_OR_RETURN(ShardMap map, ShardMap::Create(counts));
  if (map.num_records() == 0) {
    return absl::InvalidArgumentError(absl::StrCat("dataset '", name, "': its ", shards.size(),
                                                   " shards hold no record; want at least one"));
  }
  auto dataset = absl::WrapUnique(new Dataset(std::move(name), std::move(shards), std::move(map)));
  dataset->records_per_shard_ = std::move(counts);
  for (const std::shared_ptr<const RecordSource>& shard : dataset->shards_) {
    dataset->far_bytes_ += shard->far_size();
  }
  // num_records() is not 0 here. A record may have 0 bytes if it is a file.
  dataset->mean_record_bytes_ =
      std::max<int64_t>(1, static_cast<int64_t>(bytes) / dataset->num_records());
  dataset->fingerprint_ = hasher.Digest64();
  dataset->num_damaged_records_ = num_damaged;
  return std::shared_ptr<Dataset>(std::move(dataset));
}

absl::StatusOr<std::shared_ptr<Dataset>> Dataset::Create(
    std::string name, std::vector<std::unique_ptr<const RecordSource>> shards) {
  std::vector<std::shared_ptr<const RecordSource>> shared;
  shared.reserve(shards.size());
  for (std::unique_ptr<const RecordSource>& shard : shards) {
    SYSTOLE_RETURN_IF_ERROR(shard->CheckHoldsRecords());
    shared.push_back(std::move(shard));
  }
  SYSTOLE_ASSIGN_OR_RETURN(std::shared_ptr<Dataset> dataset,
                           Of(std::move(name), std::move(shared)));
  int64_t least = std::numeric_limits<int64_t>::max();
  int64_t most = 0;
  for (const std::shared_ptr<const RecordSource>& shard : dataset->shards_) {
    if (shard->num_records() == 0) continue;
    const PayloadRange range = shard->payload_bytes();
    least = std::min(least, range.least);
    most = std::max(most, range.most);
  }
  dataset->min_payload_bytes_ = least;
  dataset->max_payload_bytes_ = most;
  absl::Status outage;
  dataset->sample_ = DatasetSample::Take(
      dataset->num_records(),
      [&](int64_t record, AlignedBuffer& scratch) -> absl::StatusOr<SampledRecord> {
        // After an outage no further record is read, because each read might take as long to fail.
        SYSTOLE_RETURN_IF_ERROR(outage);
        const absl::StatusOr<absl::string_view> payload = dataset->ReadRecord(record, scratch);
        if (IsOutage(payload.status())) outage = payload.status();
        SYSTOLE_RETURN_IF_ERROR(payload.status());
        const int64_t shard = dataset->map_.Find(record).shard;
        return SampledRecord{.payload = *payload,
                             .format = &dataset->shards_[static_cast<size_t>(shard)]->examples()};
      });
  // Without this error, the dataset would have no features, as if its records were no examples.
  if (!outage.ok() && dataset->features().empty()) {
    return absl::Status(outage.code(),
                        absl::StrCat("dataset '", dataset->name(),
                                     "': its first records cannot be read: ", outage.message()));
  }
  return dataset;
}

absl::StatusOr<std::shared_ptr<Dataset>> Dataset::Join(
    std::vector<std::shared_ptr<const Dataset>> members) {
  std::string name;
  std::vector<std::shared_ptr<const RecordSource>> shards;
  for (const std::shared_ptr<const Dataset>& member : members) {
    absl::StrAppend(&name, name.empty() ? "" : " + ", member->name());
    shards.insert(shards.end(), member->shards_.begin(), member->shards_.end());
  }
  SYSTOLE_ASSIGN_OR_RETURN(std::shared_ptr<Dataset> dataset,
                           Of(std::move(name), std::move(shards)));
  dataset->min_payload_bytes_ = members[0]->min_payload_bytes();
  for (const std::shared_ptr<const Dataset>& member : members) {
    dataset->min_payload_bytes_ =
        std::min(dataset->min_payload_bytes_, member->min_payload_bytes());
    dataset->max_payload_bytes_ =
        std::max(dataset->max_payload_bytes_, member->max_payload_bytes());
  }
  dataset->sample_ = members[0]->sample_;
  dataset->members_ = std::move(members);
  return dataset;
}

std::pair<const Dataset*, int64_t> Dataset::MemberOf(int64_t record) const {
  for (const std::shared_ptr<const Dataset>& member : members_) {
    if (record < member->num_records()) return {member.get(), record};
    record -= member->num_records();
  }
  return {this, record};
}

void Dataset::NoteDamage(int64_t record, std::string cause, DamageCause kind,
                         std::optional<size_t> part) const {
  const auto [member, number] =
      part.has_value() && *part < zipped_.size()
          ? std::pair<const Dataset*, int64_t>(zipped_[*part].dataset.get(), record)
          : MemberOf(record);
  const ShardPlace place = member->map_.Find(number);
  DamageLog::Entry entry = DamageAt(*member->shards_[static_cast<size_t>(place.shard)], place.index,
                                    record, std::move(cause), kind);
  damage_.Add(entry);
  if (member == this) return;
  entry.record = number;
  member->damage_.Add(std::move(entry));
}

void Dataset::AddNote(absl::string_view note) {
  if (!note.empty()) absl::StrAppend(&note_, note_.empty() ? "" : "; ", note);
}

absl::StatusOr<NotedColumns> Dataset::NoteColumns(const std::vector<std::string>& features,
                                                  const NoteColumnsOptions& options) const {
  if (!zipped_.empty()) return NoteColumnsOfZip(features, options);
  return columns_->Note(shards_, features, options);
}

absl::StatusOr<std::vector<uint64_t>> Dataset::RecordsThatMeet(const Condition& condition,
                                                               int64_t bytes,
                                                               std::set<std::string>& found) const {
  if (!zipped_.empty()) return RecordsOfZip(condition, bytes, found);
  std::vector<uint64_t> all(static_cast<size_t>((num_records() + 63) / 64));
  int64_t at = 0;
  for (const std::shared_ptr<const Dataset>& member : members_) {
    SYSTOLE_ASSIGN_OR_RETURN(const std::vector<uint64_t> bits,
                             member->RecordsThatMeet(condition, bytes, found));
    AppendBits(bits, member->num_records(), at, all);
    at += member->num_records();
  }
  if (!members_.empty()) return all;
  const absl::StatusOr<std::vector<std::vector<uint64_t>>> bits =
      columns_->RecordsThatMeet(shards_, condition, bytes, found);
  if (!bits.ok()) {
    return absl::Status(bits.status().code(),
                        absl::StrCat("dataset '", name_, "': ", bits.status().message()));
  }
  for (size_t i = 0; i < shards_.size(); ++i) {
    AppendBits((*bits)[i], shards_[i]->num_records(), at, all);
    at += shards_[i]->num_records();
  }
  return all;
}

absl::StatusOr<absl::string_view> Dataset::ReadRecord(int64_t record,
                                                      AlignedBuffer& scratch) const {
  const ShardPlace place = map_.Find(record);
  return shards_[static_cast<size_t>(place.shard)]->ReadRecord(place.index, scratch);
}

std::vector<DamageLog::Entry> Dataset::DamagedRecords(size_t at_most) const {
  std::vector<DamageLog::Entry> entries;
  int64_t first_record = 0;  // The number that the shard's first record has in the dataset.
  for (const std::shared_ptr<const RecordSource>& shard : shards_) {
    for (const DamagedRecord& damaged : shard->damaged()) {
      if (entries.size() >= at_most) return entries;
      entries.push_back(
          DamageAt(*shard, damaged.record, first_record + damaged.record, damaged.cause));
    }
    first_record += shard->num_records();
  }
  return entries;
}

DamageLog::Entry Dataset::DamageAt(const RecordSource& shard, int64_t index, int64_t record,
                                   std::string cause, DamageCause kind) {
  std::string file = shard.FileOf(index);
  const bool is_file = !file.empty();
  return {.shard = is_file ? std::move(file) : std::string(shard.base_name()),
          .record = record,
          .offset = is_file ? 0 : static_cast<int64_t>(shard.span(index).offset),
          .cause = std::move(cause),
          .kind = kind};
}

std::string Dataset::Where(int64_t record, std::optional<size_t> part) const {
  if (!zipped_.empty()) return WhereInZip(record, part);
  const ShardPlace place = map_.Find(record);
  const RecordSource& shard = *shards_[static_cast<size_t>(place.shard)];
  const Dataset* const member = MemberOf(record).first;
  const std::string file = shard.FileOf(place.index);
  const std::string where =
      file.empty() ? absl::StrCat("shard '", ForeignName(shard.base_name()), "'",
                                  shard.unread_index() == nullptr
                                      ? absl::StrCat(", offset ", shard.span(place.index).offset)
                                      : "")
                   : absl::StrCat("file '", ForeignName(file), "'");
  return absl::StrCat(member == this ? "" : absl::StrCat("dataset '", member->name(), "', "), where,
                      ", record ", place.index, " (record_id ", record, ")");
}

}  // namespace systole
