#include "core/record/tfrecord/record_writer.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "core/compression/compressing_sink.h"
#include "core/record/tfrecord/record_format.h"
#include "core/status/status_macros.h"
#include "core/storage/local/file_sink.h"

namespace systole {

absl::StatusOr<RecordWriter> RecordWriter::Create(const std::string& path,
                                                  Compression compression) {
  SYSTOLE_ASSIGN_OR_RETURN(std::unique_ptr<FileSink> file, FileSink::Create(path));
  return Create(std::move(file), compression);
}

absl::StatusOr<RecordWriter> RecordWriter::Create(std::unique_ptr<ByteSink> sink,
                                                  Compression compression) {
  SYSTOLE_ASSIGN_OR_RETURN(sink, CompressingSink(std::move(sink), compression));
  return RecordWriter(std::move(sink));
}

absl::Status RecordWriter::Write(absl::string_view payload) {
  SYSTOLE_RETURN_IF_ERROR(status_);
  char header[kRecordHeaderBytes];
  EncodeRecordHeader(payload.size(), header);
  char footer[kRecordFooterBytes];
  StoreU32Le(PayloadFooter(payload), footer);
  for (const absl::string_view part : {absl::string_view(header, sizeof(header)), payload,
                                       absl::string_view(footer, sizeof(footer))}) {
    status_ = sink_->Append(part);
    SYSTOLE_RETURN_IF_ERROR(status_);
  }
  ++num_records_;
  bytes_written_ += kRecordFramingBytes + payload.size();
  return absl::OkStatus();
}

absl::Status RecordWriter::Close() {
  SYSTOLE_RETURN_IF_ERROR(status_);
  const absl::Status closed = sink_->Close();
  status_ = closed.ok() ? absl::FailedPreconditionError(
                              absl::StrCat("shard \"", sink_->name(), "\" is closed already"))
                        : closed;
  return closed;
}

}  // namespace systole
