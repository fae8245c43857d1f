// Files of protobuf messages, one to a TFRecord record, so that each has its length and CRC-32C;
// the first one says what the file is. proto/systole/v1/message_file.proto tells other languages.
//
//   FileHeader  message  message ..       which ones, in which order, is the format's business
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
#include "core/record/record_reader.h"
#include "core/record/record_writer.h"
#include "core/storage/byte_sink.h"
#include "core/storage/byte_source.h"
#include "google/protobuf/message_lite.h"

namespace systole::emulator {

// Largest message of a file. A format cuts what is larger into several, so that a file of any size
// is written and read in so much memory beside the values themselves, far from protobuf's 2 GiB.
inline constexpr int64_t kMaxMessageBytes = (int64_t{1} << 20) + (int64_t{64} << 10);

struct FileFormat {
  absl::string_view name;  // FileHeader.format: "systole checkpoint".
  absl::string_view noun;  // For messages: "checkpoint".
  uint32_t version = 1;
  // What files began with that 0.1.0 wrote before it was released. Nothing reads them any more.
  absl::string_view unreleased_magic;
};

class MessageFileWriter {
 public:
  // Writes the header. `systole_version` is the program's. Errors of `sink`.
  static absl::StatusOr<MessageFileWriter> Create(std::unique_ptr<ByteSink> sink,
                                                  const FileFormat& format,
                                                  absl::string_view systole_version);

  // ResourceExhausted if the message has more than kMaxMessageBytes; errors of the sink. The first
  // one sticks.
  absl::Status Write(const google::protobuf::MessageLite& message);
  // Must be called for the file to exist.
  absl::Status Close() { return records_.Close(); }

 private:
  explicit MessageFileWriter(std::unique_ptr<ByteSink> sink) : records_(std::move(sink)) {}

  RecordWriter records_;
  std::string bytes_;  // Reused.
};

class MessageFileReader {
 public:
  // Reads the header. Borrows `source`, which must outlive the reader.
  //   InvalidArgument  no file of this format, or of a version that is not `format.version`: names
  //                    the Systole that wrote it.
  static absl::StatusOr<MessageFileReader> Open(const ByteSource& source, const FileFormat& format);

  // The next message. `what` is for the error: "an epoch". Takes memory of kMaxMessageBytes and of
  // what one message of so many bytes holds.
  //   DataLoss  the file is cut short or damaged there, or has another message.
  absl::Status Next(absl::string_view what, google::protobuf::MessageLite& message);
  // DataLoss if messages follow.
  absl::Status ExpectEnd();

 private:
  explicit MessageFileReader(RecordReader records) : records_(std::move(records)) {}

  RecordReader records_;
};

}  // namespace systole::emulator

#endif  // SYSTOLE_CLIENT_EMULATOR_MESSAGE_FILE_MESSAGE_FILE_H_
