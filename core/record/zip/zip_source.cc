#include "core/record/zip/zip_source.h"

#include <algorithm>
#include <cstring>
#include <utility>

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

// A payload may be this much longer than its span: a row of arrays has no span, and an image's
// record has a label and a name beside the file.
constexpr int64_t kBesideSpanBytes = 512;

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
      : zip_(zip), max_read_bytes_(max_read_bytes), fetched_(fetched), joined_(joined) {}

  // The joined record. It lies in `joined` until the next call. `outage`: the storage failed.
  absl::StatusOr<absl::string_view> Join(int64_t record, bool& outage) {
    size_ = 0;
    SYSTOLE_RETURN_IF_ERROR(Begin(record));
    for (size_t i = 0; i < zip_.num_parts(); ++i) {
      absl::Status added = Add(i, zip_.PartOf(record, i), outage);
      if (!added.ok()) return MarkedAsOfPart(std::move(added), i);
    }
    return absl::string_view(data(), size_);
  }

 private:
  char* data() { return reinterpret_cast<char*>(joined_.data()); }

  // The most bytes that a part is likely to take. 0 for a part that is too large, because it is not
  // read.
  static int64_t LikelyBytes(const Part& part) {
    if (part.source->IsTooLarge(part.record)) return 0;
    return static_cast<int64_t>(part.source->span(part.record).size) + kBesideSpanBytes;
  }

  // Makes room for the record, as far as its size is known, and for the sizes of its parts.
  absl::Status Begin(int64_t record) {
    const size_t header = ZipHeaderBytes(zip_.num_parts());
    int64_t bytes = static_cast<int64_t>(header);
    for (size_t i = 0; i < zip_.num_parts(); ++i) {
      const ReadsPart reads(i);
      bytes += LikelyBytes(zip_.PartOf(record, i));
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
    // Three buffers exist at once.
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

  absl::Status Add(size_t i, const Part& part, bool& outage) {
    const ReadsPart reads(i);
    // The part's own read counts read_ alone.
    const int64_t read_bytes = std::max(LikelyBytes(part), read_.size() + read_.size() / 2);
    if (!NeedScratch(ScratchUse::kReads, joined_.size() + read_bytes)) return InterruptedError();
    absl::Status got = absl::InternalError("a part of a joined record was not read");
    const auto take = [&](size_t /*place*/, const absl::StatusOr<absl::string_view>& payload) {
      got = payload.ok() ? Append(i, *payload) : payload.status();
      return absl::OkStatus();
    };
    const absl::Status read =
        fetched_ != nullptr && part.source->is_far()
            ? part.source->ReadFetched({&part.record, 1}, *fetched_, read_, take)
            : part.source->ReadRecords({&part.record, 1}, RecordBytes::kInPlace, max_read_bytes_,
                                       read_, take);
    if (read.ok()) return got;
    // The storage failed, perhaps only after `take` saw bytes.
    outage = true;
    return read;
  }

  const ZipSource& zip_;
  const int64_t max_read_bytes_;
  const FetchedBytes* const fetched_;
  AlignedBuffer& joined_;
  size_t size_ = 0;     // Bytes of the record in joined_ so far.
  AlignedBuffer read_;  // For a part that cannot be read in place.
};

ZipSource::ZipSource(std::vector<ZipPart> parts, int64_t num_records,
                     std::shared_ptr<const ZipFormat> format)
    : parts_(std::move(parts)), num_records_(num_records), format_(std::move(format)) {
  Xxh3Hasher hasher;
  hasher.Update("systole zip 1");
  hasher.UpdateU64(static_cast<uint64_t>(num_records_));
  for (size_t i = 0; i < parts_.size(); ++i) {
    const auto& [source, first] = parts_[i];
    const std::string& prefix = format_->names().prefix(i);
    hasher.UpdateU64(source->content_hash());
    hasher.UpdateU64(static_cast<uint64_t>(first));
    hasher.UpdateU64(prefix.size());
    hasher.Update(prefix);
    file_bytes_ += ShareOf(source->file_bytes(), num_records_, source->num_records());
    size_bytes_ += ShareOf(source->size_bytes(), num_records_, source->num_records());
  }
  content_hash_ = hasher.Digest64();
}

const std::string& ZipSource::note() const {
  static const auto* const none = new std::string();
  return *none;
}

const std::vector<DamagedRecord>& ZipSource::damaged() const {
  static const auto* const none = new std::vector<DamagedRecord>();
  return *none;
}

bool ZipSource::is_far() const {
  return std::any_of(parts_.begin(), parts_.end(),
                     [](const ZipPart& part) { return part.source->is_far(); });
}

PayloadRange ZipSource::payload_bytes() const {
  const auto header = static_cast<int64_t>(ZipHeaderBytes(parts_.size()));
  PayloadRange sum = {.least = header, .most = header};
  for (const ZipPart& part : parts_) {
    const PayloadRange range = part.source->payload_bytes();
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
  for (size_t place = 0; place < records.size(); ++place) {
    bool outage = false;
    const absl::StatusOr<absl::string_view> payload = joining.Join(records[place], outage);
    SYSTOLE_RETURN_IF_ERROR(callback(place, payload));
    if (outage) return payload.status();
  }
  return absl::OkStatus();
}

absl::StatusOr<absl::string_view> ZipSource::ReadRecord(int64_t record,
                                                        AlignedBuffer& scratch) const {
  SYSTOLE_RETURN_IF_ERROR(CheckNumber(record));
  Joining joining(*this, /*max_read_bytes=*/0, /*fetched=*/nullptr, scratch);
  bool outage = false;
  return joining.Join(record, outage);
}

absl::Status ZipSource::ReadRecords(absl::Span<const int64_t> records, RecordBytes /*bytes*/,
                                    int64_t max_read_bytes, AlignedBuffer& scratch,
                                    RecordCallback callback) const {
  return ReadAll(records, max_read_bytes, /*fetched=*/nullptr, scratch, callback);
}

absl::Status ZipSource::ReadFetched(absl::Span<const int64_t> records, FetchedBytes fetched,
                                    AlignedBuffer& scratch, RecordCallback callback) const {
  absl::Status read = ReadAll(records, /*max_read_bytes=*/0, &fetched, scratch, callback);
  // The caller counts bytes that were read ahead as checked. The other parts were read in place
  // here, so their files are checked here.
  for (size_t i = 0; i < parts_.size(); ++i) {
    const ReadsPart reads(i);
    const RecordSource& source = *parts_[i].source;
    if (!source.is_far()) SYSTOLE_RETURN_IF_ERROR(source.CheckUnchanged());
  }
  return read;
}

bool ZipSource::IsTooLarge(int64_t record) const {
  return std::any_of(parts_.begin(), parts_.end(), [record](const ZipPart& part) {
    return part.source->IsTooLarge(part.first + record);
  });
}

void ZipSource::PrefetchSpan(int64_t record) const {
  for (const ZipPart& part : parts_) part.source->PrefetchSpan(part.first + record);
}

void ZipSource::Prefetch(int64_t record) const {
  for (const ZipPart& part : parts_) part.source->Prefetch(part.first + record);
}

absl::Status ZipSource::CheckUnchanged() const {
  for (size_t i = 0; i < parts_.size(); ++i) {
    const ReadsPart reads(i);
    SYSTOLE_RETURN_IF_ERROR(parts_[i].source->CheckUnchanged());
  }
  return absl::OkStatus();
}

}  // namespace systole
