#include "core/record/tfrecord/record_reader.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/status/status_macros.h"

namespace systole {

absl::StatusOr<RecordReader> RecordReader::Create(const ByteSource& source,
                                                  const RecordReaderOptions& options) {
  if (options.read_bytes < 4096) {
    return absl::InvalidArgumentError(
        absl::StrCat("RecordReaderOptions.read_bytes is ", options.read_bytes, ", want >= 4096"));
  }
  if (options.max_record_bytes < 0) {
    return absl::InvalidArgumentError(absl::StrCat("RecordReaderOptions.max_record_bytes is ",
                                                   options.max_record_bytes, ", want >= 0"));
  }
  SYSTOLE_ASSIGN_OR_RETURN(const uint64_t source_bytes, source.Size());
  return RecordReader(&source, source_bytes, options);
}

absl::StatusOr<std::optional<absl::string_view>> RecordReader::Next() & {
  SYSTOLE_RETURN_IF_ERROR(status_);
  absl::StatusOr<std::optional<absl::string_view>> payload = ReadNext();
  status_ = payload.status();
  return payload;
}

absl::StatusOr<std::optional<absl::string_view>> RecordReader::ReadNext() {
  const uint64_t left = source_bytes_ - offset_;
  if (left == 0) return std::nullopt;
  if (left < kRecordHeaderBytes) return Damaged(NoHeaderCause(left));
  SYSTOLE_RETURN_IF_ERROR(Fill(kRecordHeaderBytes));
  const std::optional<uint64_t> length = DecodeRecordHeader(data());
  if (!length.has_value()) return Damaged(HeaderCrcCause(data()));
  if (left < kRecordFramingBytes || *length > left - kRecordFramingBytes) {
    return Damaged(TooLongCause(*length, left - kRecordHeaderBytes));
  }
  if (*length > static_cast<uint64_t>(options_.max_record_bytes)) {
    return absl::ResourceExhaustedError(
        absl::StrCat(Place(), " has ", *length, " bytes of payload, the limit is ",
                     options_.max_record_bytes, "; raise RecordReaderOptions.max_record_bytes"));
  }
  const uint64_t frame_bytes = kRecordFramingBytes + *length;
  SYSTOLE_RETURN_IF_ERROR(Fill(frame_bytes));
  const absl::string_view payload(data() + kRecordHeaderBytes, *length);
  const uint32_t stored = LoadU32Le(payload.data() + payload.size());
  const uint32_t computed = PayloadFooter(payload);
  if (computed != stored) return Damaged(PayloadCrcCause(computed, stored));
  begin_ += frame_bytes;
  offset_ += frame_bytes;
  ++num_read_;
  return payload;
}

absl::Status RecordReader::Fill(uint64_t bytes) {
  if (end_ - begin_ >= bytes) return absl::OkStatus();
  const uint64_t kept = end_ - begin_;
  const uint64_t capacity = std::max<uint64_t>(bytes, options_.read_bytes);
  if (capacity > static_cast<uint64_t>(buffer_.size())) {
    SYSTOLE_ASSIGN_OR_RETURN(AlignedBuffer larger, AlignedBuffer::Create(capacity));
    if (kept > 0) std::memcpy(larger.data(), data(), kept);
    buffer_ = std::move(larger);
  } else if (kept > 0) {
    std::memmove(buffer_.data(), data(), kept);
  }
  begin_ = 0;
  end_ = kept;
  const uint64_t wanted = std::min(buffer_.size() - kept, source_bytes_ - offset_ - kept);
  SYSTOLE_RETURN_IF_ERROR(
      ReadExactlyAt(*source_, offset_ + kept,
                    absl::MakeSpan(reinterpret_cast<char*>(buffer_.data()) + kept, wanted)));
  end_ += wanted;
  return absl::OkStatus();
}

std::string RecordReader::Place() const {
  return absl::StrCat(options_.noun, " \"", BaseName(source_->name()), "\", record ", num_read_,
                      " at byte offset ", offset_);
}

absl::Status RecordReader::Damaged(absl::string_view cause) const {
  return absl::DataLossError(absl::StrCat(Place(), ": ", cause));
}

}  // namespace systole
