#include "core/record/shard.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/interrupt/interrupt.h"
#include "core/memory/scratch_scope.h"
#include "core/record/foreign_kind.h"
#include "core/record/index_file.h"
#include "core/record/scan_shard.h"
#include "core/record/shard_file.h"
#include "core/status/foreign_text.h"
#include "core/status/status_macros.h"

namespace systole {
namespace {

// The part of a record that Prefetch() asks for: further on the processor sees by itself what comes
// next.
constexpr uint64_t kPrefetchBytes = 2 << 10;

// What a read that failed leaves as. The codes that say something of the record are Shard's alone:
// an errno of the moment such as ENOMEM comes as ResourceExhausted too.
absl::Status ReadFailure(const absl::Status& status) {
  if (!absl::IsDataLoss(status) && !absl::IsResourceExhausted(status)) return status;
  return absl::UnavailableError(
      absl::StrCat(status.message(),
                   "; the record may be whole: look at the machine's memory and its storage, and "
                   "try again"));
}

// A buffer of at least `bytes`, in `scratch`. Grows by half at least, so that records of rising
// size do not each ask for memory.
absl::Status Grow(uint64_t bytes, AlignedBuffer& scratch) {
  if (bytes <= static_cast<uint64_t>(scratch.size())) return absl::OkStatus();
  const int64_t wanted = std::max<int64_t>(bytes, scratch.size() + scratch.size() / 2);
  if (!NeedScratch(ScratchUse::kReads, wanted)) return InterruptedError();
  scratch = AlignedBuffer();  // First, so that the two do not stand side by side.
  absl::StatusOr<AlignedBuffer> larger = AlignedBuffer::Create(wanted);
  if (!larger.ok()) return ReadFailure(larger.status());
  scratch = *std::move(larger);
  return absl::OkStatus();
}

absl::Status CheckOptions(const ShardOptions& options) {
  if (options.max_record_bytes >= 0) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("ShardOptions.max_record_bytes is ", options.max_record_bytes, ", want >= 0"));
}

}  // namespace

absl::StatusOr<Shard> Shard::Open(const std::string& path, const ShardOptions& options) {
  SYSTOLE_RETURN_IF_ERROR(CheckOptions(options));
  SYSTOLE_ASSIGN_OR_RETURN(
      ShardFile file,
      OpenShardFile(path, {.compression = options.compression,
                           .chunks = options.chunks,
                           .restart_path = RestartPath(IndexPath(path, options.index_dir))}));
  SYSTOLE_ASSIGN_OR_RETURN(LoadedIndex loaded, LoadIndex(*file.bytes, file.state.identity,
                                                         {.index_dir = options.index_dir}));
  if (!file.note.empty() && !loaded.note.empty()) file.note += "; ";
  return Shard(std::move(file.bytes), std::move(loaded.index), loaded.content_hash,
               file.note + loaded.note, file.state.size_bytes, options.max_record_bytes);
}

absl::StatusOr<Shard> Shard::Scan(const std::string& path, const ShardOptions& options) {
  SYSTOLE_ASSIGN_OR_RETURN(ShardFile file, OpenShardFile(path, {.compression = options.compression,
                                                                .chunks = options.chunks}));
  SYSTOLE_ASSIGN_OR_RETURN(Shard shard, Create(std::move(file.bytes), options));
  shard.file_bytes_ = file.state.size_bytes;
  return shard;
}

absl::StatusOr<Shard> Shard::Create(std::unique_ptr<ByteSource> source,
                                    const ShardOptions& options) {
  SYSTOLE_RETURN_IF_ERROR(CheckOptions(options));
  SYSTOLE_ASSIGN_OR_RETURN(ScannedShard scanned, ScanShard(*source));
  const uint64_t bytes = scanned.index.shard_bytes();
  return Shard(std::move(source), std::move(scanned.index), scanned.content_hash,
               /*index_note=*/"", bytes, options.max_record_bytes);
}

Shard::Shard(std::unique_ptr<ByteSource> source, RecordIndex index, uint64_t content_hash,
             std::string index_note, uint64_t file_bytes, int64_t max_record_bytes)
    : source_(std::move(source)),
      index_(std::move(index)),
      content_hash_(content_hash),
      index_note_(std::move(index_note)),
      file_bytes_(file_bytes),
      max_record_bytes_(max_record_bytes) {}

std::string Shard::Place(int64_t record) const {
  return absl::StrCat("shard \"", ForeignName(base_name()), "\", record ", record,
                      " at byte offset ", index_.span(record).offset);
}

absl::Status Shard::Damaged(int64_t record, absl::string_view cause) const {
  // Bytes that fail because the file is another one by now are not damage.
  SYSTOLE_RETURN_IF_ERROR(CheckUnchanged());
  return absl::DataLossError(absl::StrCat(Place(record), ": ", cause));
}

absl::Status Shard::CheckHoldsRecords() const {
  if (!index_.all_damaged()) return absl::OkStatus();
  char begin[kMagicBytes];
  SYSTOLE_ASSIGN_OR_RETURN(const size_t read, ReadAt(0, absl::MakeSpan(begin)));
  const std::string kind = ForeignKind(absl::string_view(begin, read));
  if (!kind.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("\"", ForeignName(base_name()), "\" is no TFRecord shard: ", kind));
  }
  return absl::DataLossError(absl::StrCat(
      "shard \"", ForeignName(base_name()),
      "\" holds no record that can be read (the first: ", index_.damaged().front().cause,
      "); want TFRecord, whole; name shards by a glob if other files lie beside them"));
}

absl::Status Shard::CheckUnchanged() const { return ReadFailure(source_->CheckUnchanged()); }

absl::StatusOr<size_t> Shard::ReadAt(uint64_t offset, absl::Span<char> out) const {
  absl::StatusOr<size_t> read = source_->ReadAt(offset, out);
  if (!read.ok()) return ReadFailure(read.status());
  return read;
}

absl::Status Shard::CheckNumber(int64_t record) const {
  if (record >= 0 && record < num_records()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("shard \"", ForeignName(base_name()), "\" has ",
                                                 num_records(), " records; no record ", record));
}

absl::StatusOr<absl::string_view> Shard::CheckFrame(int64_t record, absl::string_view frame) const {
  if (frame.size() < kRecordFramingBytes ||
      DecodeRecordHeader(frame.data()) != frame.size() - kRecordFramingBytes) {
    // Once more, and only now: the bytes may change meanwhile, and may be good by then.
    std::string cause = FramingCause(frame.data(), frame.size());
    return Damaged(record, cause.empty() ? "its header changed while it was read" : cause);
  }
  const absl::string_view payload =
      frame.substr(kRecordHeaderBytes, frame.size() - kRecordFramingBytes);
  const uint32_t stored = LoadU32Le(payload.data() + payload.size());
  const uint32_t computed = PayloadFooter(payload);
  if (computed != stored) return Damaged(record, PayloadCrcCause(computed, stored));
  return payload;
}

absl::StatusOr<absl::string_view> Shard::ReadFrames(int64_t first, int64_t last,
                                                    AlignedBuffer& scratch) const {
  const uint64_t begin = index_.span(first).offset;
  const uint64_t bytes = index_.span(last).offset + index_.span(last).size - begin;
  SYSTOLE_RETURN_IF_ERROR(Grow(bytes + kCopyAlignment, scratch));
  const absl::Span<char> out(reinterpret_cast<char*>(scratch.data()) + begin % kCopyAlignment,
                             bytes);
  SYSTOLE_ASSIGN_OR_RETURN(const size_t read, ReadAt(begin, out));
  if (read < bytes) {
    return Damaged(first,
                   absl::StrCat("the shard ends ", read, " bytes behind its begin, want ", bytes));
  }
  return absl::string_view(out.data(), bytes);
}

absl::StatusOr<absl::string_view> Shard::ReadRecord(int64_t record, AlignedBuffer& scratch) const {
  SYSTOLE_RETURN_IF_ERROR(CheckNumber(record));
  if (IsTooLarge(record)) {
    // A damaged stretch is as long as it is; only a header that holds makes it a large record.
    char header[kRecordHeaderBytes];
    SYSTOLE_ASSIGN_OR_RETURN(const size_t read,
                             ReadAt(index_.span(record).offset, absl::MakeSpan(header)));
    if (read < kRecordHeaderBytes) return Damaged(record, NoHeaderCause(read));
    const uint64_t payload_bytes = index_.span(record).size - kRecordFramingBytes;
    const std::optional<uint64_t> length = DecodeRecordHeader(header);
    if (!length.has_value()) return Damaged(record, HeaderCrcCause(header));
    if (*length > payload_bytes) {
      return Damaged(record, TooLongCause(*length, payload_bytes + kRecordFooterBytes));
    }
    return absl::ResourceExhaustedError(absl::StrCat(Place(record), " has ", payload_bytes,
                                                     " bytes of payload, the limit is ",
                                                     max_record_bytes_, "; pack it smaller"));
  }
  SYSTOLE_ASSIGN_OR_RETURN(const absl::string_view frame, ReadFrames(record, record, scratch));
  return CheckFrame(record, frame);
}

absl::Status Shard::ReadInPlace(absl::Span<const int64_t> records, const MappedRead& mapped,
                                AlignedBuffer& scratch, RecordCallback callback) const {
  for (size_t place = 0; place < records.size(); ++place) {
    const int64_t record = records[place];
    const RecordSpan span = index_.span(record);
    if (!mapped.failed() && !IsTooLarge(record)) {
      const absl::StatusOr<absl::string_view> payload =
          CheckFrame(record, mapped.bytes().substr(span.offset, span.size));
      if (payload.ok() && !mapped.failed()) {
        const absl::Status wants_more = callback(place, payload);
        // Also of the last record that it wants: what it made of it is not to be used.
        if (!mapped.failed()) {
          SYSTOLE_RETURN_IF_ERROR(wants_more);
          continue;
        }
        SYSTOLE_RETURN_IF_ERROR(CheckUnchanged());
        return absl::UnavailableError(
            absl::StrCat(Place(record), " could not be read to its end; look at the machine's ",
                         "storage, and try again"));
      }
    }
    // What is wrong is said of a copy: of the record or, if the mapping failed, of the storage.
    SYSTOLE_RETURN_IF_ERROR(callback(place, ReadRecord(record, scratch)));
  }
  return absl::OkStatus();
}

absl::Status Shard::ReadRecords(absl::Span<const int64_t> records, RecordBytes bytes,
                                int64_t max_read_bytes, AlignedBuffer& scratch,
                                RecordCallback callback) const {
  for (const int64_t record : records) SYSTOLE_RETURN_IF_ERROR(CheckNumber(record));
  if (bytes == RecordBytes::kInPlace) {
    const MappedRead mapped(source_->mapping());
    // An index covers its shard exactly, so every record lies within.
    if (mapped.bytes().size() == index_.shard_bytes() && !mapped.bytes().empty()) {
      return ReadInPlace(records, mapped, scratch, callback);
    }
  }
  for (size_t begin = 0; begin < records.size();) {
    // [begin, end) is one run of neighbours.
    size_t end = begin + 1;
    const uint64_t offset = index_.span(records[begin]).offset;
    while (end < records.size() && records[end] == records[end - 1] + 1 &&
           index_.span(records[end]).offset + index_.span(records[end]).size - offset <=
               static_cast<uint64_t>(std::max<int64_t>(max_read_bytes, 0)) &&
           !IsTooLarge(records[begin]) && !IsTooLarge(records[end])) {
      ++end;
    }
    absl::StatusOr<absl::string_view> frames = absl::string_view();
    if (end - begin > 1) frames = ReadFrames(records[begin], records[end - 1], scratch);
    for (size_t place = begin; place < end; ++place) {
      // A failed shared read is split up: what fails may be a single record.
      if (end - begin == 1 || !frames.ok()) {
        SYSTOLE_RETURN_IF_ERROR(callback(place, ReadRecord(records[place], scratch)));
        continue;
      }
      const RecordSpan span = index_.span(records[place]);
      SYSTOLE_RETURN_IF_ERROR(callback(
          place, CheckFrame(records[place], frames->substr(span.offset - offset, span.size))));
    }
    begin = end;
  }
  return absl::OkStatus();
}

void Shard::Prefetch(int64_t record) const {
  const Mapping* const mapping = source_->mapping();
  if (mapping == nullptr) return;
  const RecordSpan span = index_.span(record);
  mapping->Prefetch(span.offset, std::min(span.size, kPrefetchBytes));
}

}  // namespace systole
