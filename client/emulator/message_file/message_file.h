// Files of protobuf messages. Each message is in a TFRecord record of its own, so it has a length
// and a CRC-32C. The first message, a FileHeader, names the file's format. Programs in other
// languages find the FileHeader in proto/systole/v1/message_file.proto.
//
//   FileHeader  message  message ..       each format says which messages follow, in which order
//
// Thread-compatible.
#ifndef SYSTOLE_CLIENT_EMULATOR_MESSAGE_FILE_MESSAGE_FILE_H_
#define SYSTOLE_CLIENT_EMULATOR_MESSAGE_FILE_MESSAGE_FILE_H_

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "core/record/tfrecord/record_reader.h"
#include "core/record/tfrecord/record_writer.h"
#include "core/storage/byte_sink.h"
#include "core/storage/byte_source.h"
#include "google/protobuf/message_lite.h"

namespace systole::emulator {

// The largest message of a file. Each format cuts larger values into several messages. So writing
// and reading take little memory besides the values.
inline constexpr int64_t kMaxMessageBytes = (int64_t{1} << 20) + (int64_t{64} << 10);

struct FileFormat {
  absl::string_view name;  // FileHeader.format: "systole checkpoint".
  absl::string_view noun;  // For error messages: "checkpoint".
  uint32_t version = 1;
};

class MessageFileWriter {
 public:
  // Writes the header. `systole_version` is the version of this program. Returns the sink's errors.
  static absl::StatusOr<MessageFileWriter> Create(std::unique_ptr<ByteSink> sink,
                                                  const FileFormat& format,
                                                  absl::string_view systole_version);

  // ResourceExhausted if the message has more than kMaxMessageBytes. Other errors are those of the
  // sink. After an error of the sink every call returns that error.
  absl::Status Write(const google::protobuf::MessageLite& message);
  // Completes the file. If Close() is not called, no file appears.
  absl::Status Close() { return records_.Close(); }

 private:
  explicit MessageFileWriter(std::unique_ptr<ByteSink> sink) : records_(std::move(sink)) {}

  RecordWriter records_;
  std::string bytes_;  // Reused.
};

class MessageFileReader {
 public:
  // Reads the header. Borrows `source`, which must outlive the reader.
  //   InvalidArgument  the file has another format, or another version than `format.version`. If
  //                    only the version differs, the error names the version of Systole that wrote
  //                    the file.
  static absl::StatusOr<MessageFileReader> Open(const ByteSource& source, const FileFormat& format);

  // Reads the next message. `what` is the message's name in errors, such as "an epoch". Takes
  // kMaxMessageBytes of memory, and the memory of one parsed message of this size.
  //   DataLoss  at this place, the file is cut short or damaged, or has another kind of message.
  absl::Status Next(absl::string_view what, google::protobuf::MessageLite& message);
  // DataLoss if the file has more messages.
  absl::Status ExpectEnd();

 private:
  explicit MessageFileReader(RecordReader records) : records_(std::move(records)) {}

  RecordReader records_;
};

}  // namespace systole::emulator

#endif  // SYSTOLE_CLIENT_EMULATOR_MESSAGE_FILE_MESSAGE_FILE_H_
