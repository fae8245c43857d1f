#include "core/record/source/span_source.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/interrupt/interrupt.h"
#include "core/record/source/foreign_kind.h"
#include "core/record/source/read_scratch.h"
#include "core/status/status_macros.h"
#include "core/text/foreign_text.h"

namespace systole {
namespace {

// Prefetch() loads this many bytes at the beginning of a record. The processor prefetches the later
// bytes by itself.
constexpr uint64_t kPrefetchBytes = 2 << 10;

// If records are made from far_pieces(), neighbouring records of up to this many bytes in all are
// made together. So small records share one look into the cache of decompressed chunks.
constexpr int64_t kMadeBytes = 256 << 10;

// The payload sizes of the smallest and of the largest record. Damaged stretches count as records.
PayloadRange RangeOf(const RecordIndex& index, uint64_t framing_bytes) {
  if (index.num_records() == 0) return {};
  uint64_t least = std::numeric_limits<uint64_t>::max();
  uint64_t most = 0;
  for (int64_t record = 0; record < index.num_records(); ++record) {
    const uint64_t size = index.span(record).size;
    least = std::min(least, size);
    most = std::max(most, size);
  }
  // A damaged stretch may have fewer than framing_bytes bytes.
  const auto payload = [framing_bytes](uint64_t size) {
    return static_cast<int64_t>(size - std::min(size, framing_bytes));
  };
  return {.least = payload(least), .most = payload(most)};
}

}  // namespace

SpanSource::SpanSource(IndexedFile file, uint64_t framing_bytes, absl::string_view format)
    : file_(std::move(file)),
      framing_bytes_(framing_bytes),
      max_span_bytes_(static_cast<uint64_t>(file_.max_record_bytes) + framing_bytes),
      format_(format),
      payload_bytes_(RangeOf(file_.index, framing_bytes)) {}

std::optional<ShardFacts> SpanSource::facts() const {
  ShardFacts facts = {.identity = file_.bytes->identity(),
                      .format = std::string(format_),
                      .bytes = file_.file_bytes,
                      .records = num_records(),
                      .payload = payload_bytes_,
                      .content_hash = file_.content_hash};
  // The next start makes a DeferredShard from the facts. A DeferredShard has no far_pieces(), so
  // the facts of a compressed file are not kept.
  const bool may_be_kept = far_bytes() != nullptr && far_pieces() == nullptr &&
                           file_.index_is_kept && num_damaged() == 0 && !facts.identity.empty();
  if (!may_be_kept) return std::nullopt;
  return facts;
}

std::string SpanSource::Place(int64_t record) const {
  return absl::StrCat("shard \"", ForeignName(base_name()), "\", ", PlaceOf(record));
}

absl::Status SpanSource::Damaged(int64_t record, absl::string_view cause) const {
  return absl::DataLossError(absl::StrCat(Place(record), ": ", cause));
}

absl::Status SpanSource::UnlessChanged(absl::Status error) const {
  if (!absl::IsDataLoss(error)) return error;
  SYSTOLE_RETURN_IF_ERROR(CheckUnchanged());
  return error;
}

absl::Status SpanSource::CheckHoldsRecords() const {
  if (!file_.index.all_damaged()) return absl::OkStatus();
  char begin[kMagicBytes];
  SYSTOLE_ASSIGN_OR_RETURN(const size_t read, ReadAt(0, absl::MakeSpan(begin)));
  const std::string kind = ForeignKind(absl::string_view(begin, read));
  if (!kind.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat("\"", ForeignName(base_name()), "\" is not a ", format_, " shard: ", kind));
  }
  return absl::DataLossError(
      absl::StrCat("shard \"", ForeignName(base_name()),
                   "\" holds no record that can be read (its first record: ",
                   file_.index.damaged().front().cause, "); want a whole ", format_,
                   " shard; if other files lie beside the shards, name the shards by a glob"));
}

absl::Status SpanSource::CheckUnchanged() const {
  return ReadFailure(file_.bytes->CheckUnchanged());
}

absl::StatusOr<size_t> SpanSource::ReadAt(uint64_t offset, absl::Span<char> out) const {
  absl::StatusOr<size_t> read = file_.bytes->ReadAt(offset, out);
  if (!read.ok()) return ReadFailure(read.status());
  return read;
}

absl::Status SpanSource::CheckNumber(int64_t record) const {
  if (record >= 0 && record < num_records()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("shard \"", ForeignName(base_name()), "\" has ",
                                                 num_records(), " records, so there is no record ",
                                                 record));
}

absl::StatusOr<absl::string_view> SpanSource::ReadSpans(int64_t first, int64_t last,
                                                        AlignedBuffer& scratch,
                                                        bool& outage) const {
  const uint64_t begin = span(first).offset;
  const uint64_t bytes = span(last).offset + span(last).size - begin;
  SYSTOLE_RETURN_IF_ERROR(GrowScratch(bytes + kCopyAlignment, scratch));
  const absl::Span<char> out(reinterpret_cast<char*>(scratch.data()) + begin % kCopyAlignment,
                             bytes);
  const absl::StatusOr<size_t> read = file_.bytes->ReadAt(begin, out);
  absl::Status status = read.status();
  if (status.ok() && *read < bytes) {
    status = UnlessChanged(Damaged(first, absl::StrCat("the shard ends after ", *read, " of the ",
                                                       bytes, " bytes to be read")));
    outage = IsOutage(status);
    return status;
  }
  // The storage's own status code decides whether the error is an outage. The code from
  // ReadFailure() cannot decide this: it is Unavailable also for an error of this read alone, such
  // as ENOMEM.
  outage = IsOutage(status);
  if (!status.ok()) return ReadFailure(status);
  return absl::string_view(out.data(), bytes);
}

absl::Status SpanSource::TooLarge(int64_t record) const {
  SYSTOLE_ASSIGN_OR_RETURN(const std::string cause, CauseIfTooLarge(record));
  if (!cause.empty()) return UnlessChanged(Damaged(record, cause));
  return absl::ResourceExhaustedError(absl::StrCat(
      Place(record), " has ", span(record).size - framing_bytes_,
      " bytes of payload, the limit is ", file_.max_record_bytes, "; make this record smaller"));
}

absl::StatusOr<absl::string_view> SpanSource::CheckAndAsk(int64_t record, absl::string_view bytes,
                                                          bool asks, bool& outage) const {
  absl::StatusOr<absl::string_view> payload = Check(record, bytes);
  if (!payload.ok() && asks) payload = UnlessChanged(payload.status());
  outage = IsOutage(payload.status());
  return payload;
}

absl::StatusOr<absl::string_view> SpanSource::ReadOne(int64_t record, const SpanReader& reader,
                                                      bool& outage) const {
  if (IsTooLarge(record)) {
    absl::Status status = TooLarge(record);
    outage = IsOutage(status);
    return status;
  }
  SYSTOLE_ASSIGN_OR_RETURN(const absl::string_view frame, reader.read(record, record, outage));
  return CheckAndAsk(record, frame, reader.asks, outage);
}

absl::StatusOr<absl::string_view> SpanSource::ReadOne(int64_t record, AlignedBuffer& scratch,
                                                      bool& outage) const {
  const auto read = [&](int64_t first, int64_t last, bool& is_outage) {
    return ReadSpans(first, last, scratch, is_outage);
  };
  return ReadOne(record, {.read = read}, outage);
}

absl::StatusOr<absl::string_view> SpanSource::ReadRecord(int64_t record,
                                                         AlignedBuffer& scratch) const {
  SYSTOLE_RETURN_IF_ERROR(CheckNumber(record));
  bool outage = false;
  return ReadOne(record, scratch, outage);
}

absl::Status SpanSource::ReadInPlace(absl::Span<const int64_t> records, const MappedRead& mapped,
                                     AlignedBuffer& scratch, RecordCallback callback) const {
  for (size_t place = 0; place < records.size(); ++place) {
    const int64_t record = records[place];
    const RecordSpan at = span(record);
    if (!mapped.failed() && !IsTooLarge(record)) {
      const absl::StatusOr<absl::string_view> payload =
          Check(record, mapped.bytes().substr(at.offset, at.size));
      if (payload.ok() && !mapped.failed()) {
        const absl::Status wants_more = callback(place, payload);
        // If the mapping failed during the callback, the callback may have read wrong bytes. So its
        // result is not used, even if the result is an error that would end ReadRecords().
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
    // Reads the record into a copy. If the mapping has failed, the error of this read says what is
    // wrong with the storage.
    bool outage = false;
    const absl::StatusOr<absl::string_view> payload = ReadOne(record, scratch, outage);
    SYSTOLE_RETURN_IF_ERROR(callback(place, payload));
    if (outage) return payload.status();
  }
  return absl::OkStatus();
}

absl::Status SpanSource::ReadRecords(absl::Span<const int64_t> records, RecordBytes bytes,
                                     int64_t max_read_bytes, AlignedBuffer& scratch,
                                     RecordCallback callback) const {
  for (const int64_t record : records) SYSTOLE_RETURN_IF_ERROR(CheckNumber(record));
  if (bytes == RecordBytes::kInPlace) {
    const MappedRead mapped(file_.bytes->mapping());
    // The index has no record beyond size_bytes, so each record lies in the mapping.
    if (mapped.bytes().size() == file_.size_bytes && !mapped.bytes().empty()) {
      return ReadInPlace(records, mapped, scratch, callback);
    }
  }
  const auto read = [&](int64_t first, int64_t last, bool& outage) {
    return ReadSpans(first, last, scratch, outage);
  };
  return ReadRuns(records, max_read_bytes, {.read = read}, callback);
}

absl::Status SpanSource::ReadRuns(absl::Span<const int64_t> records, int64_t max_read_bytes,
                                  const SpanReader& reader, RecordCallback callback) const {
  for (size_t begin = 0; begin < records.size();) {
    // records[begin, end) are neighbours in the file, and are read together.
    size_t end = begin + 1;
    const uint64_t offset = span(records[begin]).offset;
    while (end < records.size() && records[end] == records[end - 1] + 1 &&
           span(records[end]).offset + span(records[end]).size - offset <=
               static_cast<uint64_t>(std::max<int64_t>(max_read_bytes, 0)) &&
           !IsTooLarge(records[begin]) && !IsTooLarge(records[end])) {
      ++end;
    }
    bool outage = false;
    absl::StatusOr<absl::string_view> frames = absl::string_view();
    if (end - begin > 1) frames = reader.read(records[begin], records[end - 1], outage);
    for (size_t place = begin; place < end; ++place) {
      absl::StatusOr<absl::string_view> payload = frames;
      if (frames.ok() && end - begin > 1) {
        const RecordSpan at = span(records[place]);
        payload = CheckAndAsk(records[place], frames->substr(at.offset - offset, at.size),
                              reader.asks, outage);
      } else if (!outage) {
        // If a shared read failed, its records are read one by one, because perhaps only one of
        // them cannot be read.
        payload = ReadOne(records[place], reader, outage);
      }
      SYSTOLE_RETURN_IF_ERROR(callback(place, payload));
      if (outage) return payload.status();
    }
    begin = end;
  }
  return absl::OkStatus();
}

absl::StatusOr<absl::string_view> SpanSource::MakeSpans(int64_t first, int64_t last,
                                                        FetchedBytes fetched,
                                                        AlignedBuffer& scratch,
                                                        bool& outage) const {
  const uint64_t begin = span(first).offset;
  const uint64_t bytes = span(last).offset + span(last).size - begin;
  SYSTOLE_RETURN_IF_ERROR(GrowScratch(bytes, scratch));
  const absl::Span<char> out(reinterpret_cast<char*>(scratch.data()), bytes);
  const absl::Status made = far_pieces()->Make(begin, out, [&](const ByteStretch& place) {
    return fetched(*far_bytes(), {.offset = place.begin, .size = place.end - place.begin});
  });
  outage = IsOutage(made);  // As in ReadSpans(), the storage's own code decides.
  if (!made.ok()) return ReadFailure(made);
  return absl::string_view(out.data(), bytes);
}

absl::Status SpanSource::ReadFetched(absl::Span<const int64_t> records, FetchedBytes fetched,
                                     AlignedBuffer& scratch, RecordCallback callback) const {
  for (const int64_t record : records) SYSTOLE_RETURN_IF_ERROR(CheckNumber(record));
  if (far_pieces() != nullptr) {
    const auto make = [&](int64_t first, int64_t last, bool& outage) {
      return MakeSpans(first, last, fetched, scratch, outage);
    };
    return ReadRuns(records, kMadeBytes, {.read = make, .asks = false}, callback);
  }
  const auto find = [&](int64_t first, int64_t /*last*/,
                        bool& outage) -> absl::StatusOr<absl::string_view> {
    absl::StatusOr<absl::string_view> frame = fetched(*far_bytes(), span(first));
    outage = IsOutage(frame.status());
    if (!frame.ok()) return ReadFailure(frame.status());
    return frame;
  };
  return ReadRuns(records, /*max_read_bytes=*/0, {.read = find, .asks = false}, callback);
}

void SpanSource::Prefetch(int64_t record) const {
  const Mapping* const mapping = file_.bytes->mapping();
  if (mapping == nullptr) return;
  const RecordSpan place = span(record);
  mapping->Prefetch(place.offset, std::min(place.size, kPrefetchBytes));
}

}  // namespace systole
