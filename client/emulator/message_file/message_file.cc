#include "client/emulator/message_file/message_file.h"

#include <optional>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "core/status/status_macros.h"
#include "systole/v1/message_file.pb.h"

namespace systole::emulator {
namespace {

// The first 40 bytes of a text from a file, escaped for printing.
std::string Quoted(absl::string_view text) {
  return absl::StrCat("'", absl::CEscape(text.substr(0, 40)), "'");
}

absl::Status Not(const FileFormat& format, absl::string_view cause) {
  return absl::InvalidArgumentError(absl::StrCat("no ", format.noun, ": ", cause));
}

absl::Status CheckHeader(const FileFormat& format, const v1::FileHeader& header) {
  if (header.format() != format.name) {
    return Not(format, absl::StrCat("it is a file of the format ", Quoted(header.format()),
                                    ", want '", format.name, "'"));
  }
  if (header.version() == format.version) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("a ", format.noun, " of version ", header.version(), ", written by Systole ",
                   Quoted(header.written_by()), "; this Systole reads version ", format.version,
                   ": use the Systole that wrote the file"));
}

}  // namespace

absl::StatusOr<MessageFileWriter> MessageFileWriter::Create(std::unique_ptr<ByteSink> sink,
                                                            const FileFormat& format,
                                                            absl::string_view systole_version) {
  MessageFileWriter writer(std::move(sink));
  v1::FileHeader header;
  header.set_format(std::string(format.name));
  header.set_version(format.version);
  header.set_written_by(std::string(systole_version));
  SYSTOLE_RETURN_IF_ERROR(writer.Write(header));
  return writer;
}

absl::Status MessageFileWriter::Write(const google::protobuf::MessageLite& message) {
  const size_t bytes = message.ByteSizeLong();
  if (bytes > static_cast<size_t>(kMaxMessageBytes)) {
    return absl::ResourceExhaustedError(absl::StrCat("a ", message.GetTypeName(), " of ", bytes,
                                                     " bytes, want at most ", kMaxMessageBytes));
  }
  bytes_.clear();
  message.AppendToString(&bytes_);
  return records_.Write(bytes_);
}

absl::StatusOr<MessageFileReader> MessageFileReader::Open(const ByteSource& source,
                                                          const FileFormat& format) {
  SYSTOLE_ASSIGN_OR_RETURN(
      RecordReader records,
      RecordReader::Create(source, {.max_record_bytes = kMaxMessageBytes, .noun = "file"}));
  MessageFileReader reader(std::move(records));
  v1::FileHeader header;
  const absl::Status begin = reader.Next("its header", header);
  if (begin.code() == absl::StatusCode::kDataLoss) return Not(format, begin.message());
  SYSTOLE_RETURN_IF_ERROR(begin);
  SYSTOLE_RETURN_IF_ERROR(CheckHeader(format, header));
  return reader;
}

absl::Status MessageFileReader::Next(absl::string_view what,
                                     google::protobuf::MessageLite& message) {
  const absl::StatusOr<std::optional<absl::string_view>> record = records_.Next();
  if (record.status().code() == absl::StatusCode::kResourceExhausted) {
    return absl::DataLossError(absl::StrCat("record ", records_.num_read(), ", ", what,
                                            ", has more than the ", kMaxMessageBytes,
                                            " bytes that a record may have"));
  }
  SYSTOLE_RETURN_IF_ERROR(record.status());
  if (!record->has_value()) {
    return absl::DataLossError(absl::StrCat("cut short: the file ends after ", records_.num_read(),
                                            " records, where ", what, " should be"));
  }
  if (message.ParseFromArray((*record)->data(), static_cast<int>((*record)->size()))) {
    return absl::OkStatus();
  }
  return absl::DataLossError(
      absl::StrCat("record ", records_.num_read() - 1, " is not ", what, " but something else"));
}

absl::Status MessageFileReader::ExpectEnd() {
  const absl::StatusOr<std::optional<absl::string_view>> record = records_.Next();
  SYSTOLE_RETURN_IF_ERROR(record.status());
  if (!record->has_value()) return absl::OkStatus();
  return absl::DataLossError(absl::StrCat(
      "something was added to the file after its last record, number ", records_.num_read() - 2));
}

}  // namespace systole::emulator
