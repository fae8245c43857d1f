// Writes payloads as one TFRecord shard, with both checksums.
//
// Thread-compatible. Owns its sink.
#ifndef SYSTOLE_CORE_RECORD_TFRECORD_RECORD_WRITER_H_
#define SYSTOLE_CORE_RECORD_TFRECORD_RECORD_WRITER_H_

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "core/compression/compression.h"
#include "core/storage/byte_sink.h"

namespace systole {

class RecordWriter {
 public:
  // Writes to the file `path`. The file appears, whole, when Close() returns OK. Returns the errors
  // of FileSink::Create and CompressingSink.
  static absl::StatusOr<RecordWriter> Create(const std::string& path,
                                             Compression compression = Compression::kNone);

  // Writes to any sink.
  static absl::StatusOr<RecordWriter> Create(std::unique_ptr<ByteSink> sink,
                                             Compression compression);

  explicit RecordWriter(std::unique_ptr<ByteSink> sink) : sink_(std::move(sink)) {}

  // Appends one record. After an error every call returns that error.
  absl::Status Write(absl::string_view payload);

  // Must be called for the shard to exist. FailedPrecondition if called twice.
  absl::Status Close();

  int64_t num_records() const { return num_records_; }
  // Bytes before compression.
  uint64_t bytes_written() const { return bytes_written_; }

 private:
  std::unique_ptr<ByteSink> sink_;
  int64_t num_records_ = 0;
  uint64_t bytes_written_ = 0;
  absl::Status status_;
};

}  // namespace systole

#endif  // SYSTOLE_CORE_RECORD_TFRECORD_RECORD_WRITER_H_
