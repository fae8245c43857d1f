#include "core/record/tfrecord/tfrecord_shard.h"

#include <optional>
#include <utility>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "core/example/tensorflow_example.h"
#include "core/record/tfrecord/index_file.h"
#include "core/record/tfrecord/record_format.h"
#include "core/record/tfrecord/scan_shard.h"
#include "core/status/status_macros.h"

namespace systole {
namespace {

constexpr absl::string_view kName = "TFRecord";

bool BeginsWithHeader(absl::string_view begin) {
  return begin.size() >= kRecordHeaderBytes && DecodeRecordHeader(begin.data()).has_value();
}

}  // namespace

const ShardFormat& TfRecordFormat() {
  static constexpr ShardFormat format = {.name = kName,
                                         .begins = BeginsWithHeader,
                                         .ending = {},
                                         .open = TfRecordShard::Open,
                                         .examples = TensorFlowExample};
  return format;
}

TfRecordShard::TfRecordShard(IndexedFile file)
    : SpanSource(std::move(file), kRecordFramingBytes, kName) {}

absl::StatusOr<std::unique_ptr<RecordSource>> TfRecordShard::Open(ShardFile file,
                                                                  const ShardOptions& options) {
  LoadedIndex loaded;
  if (options.index_use == IndexUse::kIgnore) {
    SYSTOLE_ASSIGN_OR_RETURN(ScannedShard scanned,
                             ScanShard(*file.bytes, {.max_records = file.max_records}));
    loaded.index = std::move(scanned.index);
    loaded.content_hash = scanned.content_hash;
  } else {
    const bool rebuild = options.index_use == IndexUse::kRebuild;
    SYSTOLE_ASSIGN_OR_RETURN(loaded, LoadIndex(*file.bytes, file.state.identity,
                                               {.index_dir = options.index_dir,
                                                .rebuild = rebuild,
                                                .write_index = options.write_index,
                                                .max_records = file.max_records}));
    if (MustKeepIndex(options.index_use) && !loaded.kept) {
      return absl::PermissionDeniedError(loaded.note);
    }
    if (!file.note.empty() && !loaded.note.empty()) file.note += "; ";
  }
  const uint64_t bytes = loaded.index.end();
  return std::unique_ptr<RecordSource>(
      new TfRecordShard({.bytes = std::move(file.bytes),
                         .size_bytes = bytes,
                         .file_bytes = file.state.size_bytes,
                         .index = std::move(loaded.index),
                         .content_hash = loaded.content_hash,
                         .index_is_kept = options.index_use != IndexUse::kIgnore && loaded.kept,
                         .note = file.note + loaded.note,
                         .max_record_bytes = options.max_record_bytes}));
}

absl::StatusOr<TfRecordShard> TfRecordShard::Create(std::unique_ptr<ByteSource> source,
                                                    const ShardOptions& options) {
  SYSTOLE_RETURN_IF_ERROR(CheckShardOptions(options));
  SYSTOLE_ASSIGN_OR_RETURN(ScannedShard scanned, ScanShard(*source));
  const uint64_t bytes = scanned.index.end();
  return TfRecordShard({.bytes = std::move(source),
                        .size_bytes = bytes,
                        .file_bytes = bytes,
                        .index = std::move(scanned.index),
                        .content_hash = scanned.content_hash,
                        .note = {},
                        .max_record_bytes = options.max_record_bytes});
}

const ExampleFormat& TfRecordShard::examples() const { return TensorFlowExample(); }

absl::StatusOr<absl::string_view> TfRecordShard::Check(int64_t record,
                                                       absl::string_view frame) const {
  if (frame.size() < kRecordFramingBytes ||
      DecodeRecordHeader(frame.data()) != frame.size() - kRecordFramingBytes) {
    // FramingCause() looks at the bytes a second time. They may have changed in between, and may be
    // good now.
    std::string cause = FramingCause(frame.data(), frame.size());
    return Damaged(record, cause.empty() ? "its header changed while it was read" : cause);
  }
  const absl::string_view payload =
      frame.substr(kRecordHeaderBytes, frame.size() - kRecordFramingBytes);
  const uint32_t stored = LoadU32Le(payload.data() + payload.size());
  const uint32_t computed = PayloadFooter(payload);
  if (computed != stored) {
    return MarkedAsChecksumMismatch(Damaged(record, PayloadCrcCause(computed, stored)));
  }
  return payload;
}

absl::StatusOr<std::string> TfRecordShard::CauseIfTooLarge(int64_t record) const {
  // A stretch that is too large may be damaged bytes instead of a record. The stretch is a record
  // only if its header is valid.
  char header[kRecordHeaderBytes];
  SYSTOLE_ASSIGN_OR_RETURN(const size_t read, ReadAt(span(record).offset, absl::MakeSpan(header)));
  if (read < kRecordHeaderBytes) return NoHeaderCause(read);
  const uint64_t payload_bytes = span(record).size - kRecordFramingBytes;
  const std::optional<uint64_t> length = DecodeRecordHeader(header);
  if (!length.has_value()) return HeaderCrcCause(header);
  if (*length > payload_bytes) return TooLongCause(*length, payload_bytes + kRecordFooterBytes);
  return "";
}

}  // namespace systole
