#include "core/record/zip/zip_source.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <utility>

#include "absl/container/inlined_vector.h"
#include "absl/strings/str_cat.h"
#include "core/checksum/xxh3.h"
#include "core/interrupt/interrupt.h"
#include "core/memory/little_endian.h"
#include "core/memory/scratch_scope.h"
#include "core/record/source/part_in_read.h"
#include "core/record/source/read_scratch.h"
#include "core/status/status_macros.h"

namespace systole {
namespace {

// Added to the size of a part's span to estimate the size of its payload. A row of arrays has an
// empty span. An image's payload has a label and a name beside the file, which the span does not
// count.
constexpr int64_t kBesideSpanBytes = 512;

// A list of this many parts needs no allocation. Most zips do not have more parts.
constexpr size_t kFewParts = 4;

// The part of `all` bytes that belongs to `some` of the `records` records.
uint64_t ShareOf(uint64_t all, int64_t some, int64_t records) {
  if (some == records) return all;
  return static_cast<uint64_t>(static_cast<double>(all) * static_cast<double>(some) /
                               static_cast<double>(records));
}

}  // namespace

// Joins one record at a time.
class ZipSource::Joining {
 public:
  Joining(const ZipSource& zip, int64_t max_read_bytes, const FetchedBytes* fetched,
          AlignedBuffer& joined)
      : zip_(zip),
        max_read_bytes_(max_read_bytes),
        fetched_(fetched),
        joined_(joined),
        parts_(zip.num_parts()),
        unchecked_(zip.num_parts()) {}

  // The joined record, which lies in `joined` until the next call. Sets `outage` if the storage
  // failed.
  absl::StatusOr<absl::string_view> Join(int64_t record, bool& outage) {
    size_ = 0;
    for (size_t i = 0; i < parts_.size(); ++i) parts_[i] = zip_.PartOf(record, i);
    SYSTOLE_RETURN_IF_ERROR(Begin());
    for (size_t i = 0; i < parts_.size(); ++i) {
      absl::Status added = Add(i, outage);
      if (!added.ok()) return MarkedAsOfPart(std::move(added), i);
    }
    return absl::string_view(data(), size_);
  }

  // Checks the files that were read since the last call. Returns the error of the first file that
  // has changed since it was opened. Does not check the files of fetched bytes, because the reader
  // of these bytes has checked them.
  absl::Status CheckRead() {
    for (size_t i = 0; i < unchecked_.size(); ++i) CheckRead(i);
    return std::exchange(changed_, absl::OkStatus());
  }

 private:
  using Parts = absl::InlinedVector<Part, kFewParts>;

  char* data() { return reinterpret_cast<char*>(joined_.data()); }

  // The most bytes that a part is likely to take. 0 for a part that is too large, because it is not
  // read.
  static int64_t LikelyBytes(const Part& part) {
    if (part.source->IsTooLarge(part.record)) return 0;
    return static_cast<int64_t>(part.source->span(part.record).size) + kBesideSpanBytes;
  }

  // Makes room for the header, which holds the sizes of the parts, and for the likely bytes of the
  // parts.
  absl::Status Begin() {
    const size_t header = ZipHeaderBytes(parts_.size());
    int64_t bytes = static_cast<int64_t>(header);
    for (size_t i = 0; i < parts_.size(); ++i) {
      const ReadsPart reads(i);
      bytes += LikelyBytes(parts_[i]);
    }
    SYSTOLE_RETURN_IF_ERROR(Grow(std::min(bytes, kMaxZipRecordBytes)));
    size_ = header;
    return absl::OkStatus();
  }

  // Makes joined_ at least `bytes` large. Keeps its first size_ bytes.
  absl::Status Grow(int64_t bytes) {
    if (bytes <= joined_.size()) return absl::OkStatus();
    if (size_ == 0) return GrowScratch(static_cast<uint64_t>(bytes), joined_);
    const int64_t wanted = std::max(bytes, joined_.size() + joined_.size() / 2);
    // The old joined_, the new one and read_ exist at once.
    if (!NeedScratch(ScratchUse::kReads, joined_.size() + wanted + read_.size())) {
      return InterruptedError();
    }
    absl::StatusOr<AlignedBuffer> larger = AlignedBuffer::Create(wanted);
    if (!larger.ok()) return ReadFailure(larger.status());
    std::memcpy(larger->data(), joined_.data(), size_);
    joined_ = *std::move(larger);
    return absl::OkStatus();
  }

  absl::Status Append(size_t part, absl::string_view payload) {
    const auto bytes = static_cast<int64_t>(size_ + payload.size());
    if (bytes > kMaxZipRecordBytes) {
      return absl::ResourceExhaustedError(absl::StrCat(
          "the records that a zip joins have ", bytes, " bytes and more, the limit is ",
          kMaxZipRecordBytes, "; zip fewer datasets, or pack their records smaller"));
    }
    SYSTOLE_RETURN_IF_ERROR(Grow(bytes));
    StoreU64Le(payload.size(), data() + part * sizeof(uint64_t));
    if (!payload.empty()) std::memcpy(data() + size_, payload.data(), payload.size());
    size_ += payload.size();
    return absl::OkStatus();
  }

  bool IsFetched(const Part& part) const { return fetched_ != nullptr && part.source->is_far(); }

  void CheckRead(size_t i) {
    const RecordSource* const source = std::exchange(unchecked_[i], nullptr);
    if (source == nullptr) return;
    const ReadsPart reads(i);
    changed_.Update(source->CheckUnchanged());
  }

  absl::Status Add(size_t i, bool& outage) {
    const Part& part = parts_[i];
    if (!IsFetched(part) && unchecked_[i] != part.source) {
      CheckRead(i);
      unchecked_[i] = part.source;
    }
    const ReadsPart reads(i);
    // While a part is read, its source calls NeedScratch() for read_ alone. So joined_ and read_
    // are counted together before the read.
    const int64_t read_bytes = std::max(LikelyBytes(part), read_.size() + read_.size() / 2);
    if (!NeedScratch(ScratchUse::kReads, joined_.size() + read_bytes)) return InterruptedError();
    absl::Status got = absl::InternalError("a part of a joined record was not read");
    const auto take = [&](size_t /*place*/, const absl::StatusOr<absl::string_view>& payload) {
      got = payload.ok() ? Append(i, *payload) : payload.status();
      return absl::OkStatus();
    };
    const absl::Status read =
        IsFetched(part) ? part.source->ReadFetched({&part.record, 1}, *fetched_, read_, take)
                        : part.source->ReadRecords({&part.record, 1}, RecordBytes::kInPlace,
                                                   max_read_bytes_, read_, take);
    if (read.ok()) return got;
    // The storage failed, perhaps only after `take` saw bytes.
    outage = true;
    return read;
  }

  const ZipSource& zip_;
  const int64_t max_read_bytes_;
  const FetchedBytes* const fetched_;
  AlignedBuffer& joined_;
  Parts parts_;         // The parts of the record.
  size_t size_ = 0;     // Bytes of the record in joined_ so far.
  AlignedBuffer read_;  // For a part that cannot be read in place.
  // For each part, the source whose file was read, but has not been checked since. Null: none.
  // Records mostly come in order, so a file is checked about once for all of its records.
  absl::InlinedVector<const RecordSource*, kFewParts> unchecked_;
  absl::Status changed_;  // The first error of a check.
};

ZipMemberSums SumsOf(const ZipMember& member) {
  ZipMemberSums sums;
  Xxh3Hasher hasher;
  for (const std::shared_ptr<const RecordSource>& shard : *member.shards) {
    hasher.UpdateU64(static_cast<uint64_t>(shard->num_records()));
    hasher.UpdateU64(shard->content_hash());
    sums.file_bytes += shard->file_bytes();
    sums.size_bytes += shard->size_bytes();
    sums.is_far = sums.is_far || shard->is_far();
  }
  sums.hash = hasher.Digest64();
  return sums;
}

ZipSource::ZipSource(std::shared_ptr<const std::vector<ZipMember>> members,
                     absl::Span<const ZipMemberSums> sums, int64_t first, int64_t num_records,
                     std::shared_ptr<const ZipFormat> format)
    : members_(std::move(members)),
      first_(first),
      num_records_(num_records),
      format_(std::move(format)) {
  Xxh3Hasher hasher;
  hasher.Update("systole zip 3");
  hasher.UpdateU64(static_cast<uint64_t>(first_));
  hasher.UpdateU64(static_cast<uint64_t>(num_records_));
  for (size_t i = 0; i < members_->size(); ++i) {
    const int64_t all = (*members_)[i].map->num_records();
    const std::string& prefix = format_->names().prefix(i);
    hasher.UpdateU64(prefix.size());
    hasher.Update(prefix);
    hasher.UpdateU64(sums[i].hash);
    is_far_ = is_far_ || sums[i].is_far;
    file_bytes_ += ShareOf(sums[i].file_bytes, num_records_, all);
    size_bytes_ += ShareOf(sums[i].size_bytes, num_records_, all);
  }
  content_hash_ = hasher.Digest64();
}

RecordSource::Part ZipSource::PartOf(int64_t record, size_t part) const {
  const auto& [shards, map] = (*members_)[part];
  const ShardPlace place = map->Find(first_ + record);
  return {(*shards)[static_cast<size_t>(place.shard)].get(), place.index};
}

const std::string& ZipSource::note() const {
  static const auto* const none = new std::string();
  return *none;
}

const std::vector<DamagedRecord>& ZipSource::damaged() const {
  static const auto* const none = new std::vector<DamagedRecord>();
  return *none;
}

PayloadRange ZipSource::payload_bytes() const {
  const auto header = static_cast<int64_t>(ZipHeaderBytes(members_->size()));
  PayloadRange sum = {.least = header, .most = header};
  for (const ZipMember& member : *members_) {
    PayloadRange range = {.least = std::numeric_limits<int64_t>::max(), .most = 0};
    for (const std::shared_ptr<const RecordSource>& shard : *member.shards) {
      if (shard->num_records() == 0) continue;
      const PayloadRange of_shard = shard->payload_bytes();
      range.least = std::min(range.least, of_shard.least);
      range.most = std::max(range.most, of_shard.most);
    }
    sum.least += range.least;
    sum.most += range.most;
  }
  return sum;
}

absl::Status ZipSource::CheckNumber(int64_t record) const {
  if (record >= 0 && record < num_records_) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "there is no record ", record, "; this part of the zip has ", num_records_, " records"));
}

absl::Status ZipSource::ReadAll(absl::Span<const int64_t> records, int64_t max_read_bytes,
                                const FetchedBytes* fetched, AlignedBuffer& scratch,
                                RecordCallback callback) const {
  for (const int64_t record : records) SYSTOLE_RETURN_IF_ERROR(CheckNumber(record));
  Joining joining(*this, max_read_bytes, fetched, scratch);
  absl::Status ended;
  for (size_t place = 0; place < records.size() && ended.ok(); ++place) {
    bool outage = false;
    const absl::StatusOr<absl::string_view> payload = joining.Join(records[place], outage);
    ended = callback(place, payload);
    // After a failure of the storage no files are checked. CheckRead() would send further requests,
    // and each might take as long as the request that failed.
    if (outage) return ended.ok() ? payload.status() : ended;
  }
  SYSTOLE_RETURN_IF_ERROR(joining.CheckRead());
  return ended;
}

absl::StatusOr<absl::string_view> ZipSource::ReadRecord(int64_t record,
                                                        AlignedBuffer& scratch) const {
  SYSTOLE_RETURN_IF_ERROR(CheckNumber(record));
  Joining joining(*this, /*max_read_bytes=*/0, /*fetched=*/nullptr, scratch);
  bool outage = false;
  absl::StatusOr<absl::string_view> payload = joining.Join(record, outage);
  if (!outage) SYSTOLE_RETURN_IF_ERROR(joining.CheckRead());
  return payload;
}

absl::Status ZipSource::ReadRecords(absl::Span<const int64_t> records, RecordBytes /*bytes*/,
                                    int64_t max_read_bytes, AlignedBuffer& scratch,
                                    RecordCallback callback) const {
  return ReadAll(records, max_read_bytes, /*fetched=*/nullptr, scratch, callback);
}

absl::Status ZipSource::ReadFetched(absl::Span<const int64_t> records, FetchedBytes fetched,
                                    AlignedBuffer& scratch, RecordCallback callback) const {
  return ReadAll(records, /*max_read_bytes=*/0, &fetched, scratch, callback);
}

bool ZipSource::IsTooLarge(int64_t record) const {
  for (size_t i = 0; i < num_parts(); ++i) {
    const Part part = PartOf(record, i);
    if (part.source->IsTooLarge(part.record)) return true;
  }
  return false;
}

absl::Status ZipSource::CheckRecordUnchanged(int64_t record, bool skip_far) const {
  for (size_t i = 0; i < num_parts(); ++i) {
    const Part part = PartOf(record, i);
    const ReadsPart reads(i);
    SYSTOLE_RETURN_IF_ERROR(part.source->CheckRecordUnchanged(part.record, skip_far));
  }
  return absl::OkStatus();
}

void ZipSource::PrefetchSpan(int64_t record) const {
  for (size_t i = 0; i < num_parts(); ++i) {
    const Part part = PartOf(record, i);
    part.source->PrefetchSpan(part.record);
  }
}

void ZipSource::Prefetch(int64_t record) const {
  for (size_t i = 0; i < num_parts(); ++i) {
    const Part part = PartOf(record, i);
    part.source->Prefetch(part.record);
  }
}

}  // namespace systole
