// Reads the payloads of one TFRecord shard in file order and checks both checksums.
//   record := length:u64le  masked_crc32c(length):u32le  payload  masked_crc32c(payload):u32le
//
// Thread-compatible. Borrows `source`, which must outlive the reader.
#ifndef SYSTOLE_CORE_RECORD_TFRECORD_RECORD_READER_H_
#define SYSTOLE_CORE_RECORD_TFRECORD_RECORD_READER_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "core/memory/aligned_buffer.h"
#include "core/record/source/record_source.h"
#include "core/record/tfrecord/record_format.h"
#include "core/storage/byte_source.h"

namespace systole {

struct RecordReaderOptions {
  // Bytes of one read from the storage. A larger number makes fewer reads, but each reader takes at
  // least this many bytes of memory.
  int64_t read_bytes = 256 << 10;
  // Largest payload accepted, in bytes. A damaged or hostile length field may announce 2^64 bytes.
  int64_t max_record_bytes = kDefaultMaxRecordBytes;
  // What messages call the source.
  absl::string_view noun = "shard";
};

class RecordReader {
 public:
  // InvalidArgument if an option is out of range. Reads nothing yet.
  static absl::StatusOr<RecordReader> Create(const ByteSource& source,
                                             const RecordReaderOptions& options = {});

  // The next payload, or nullopt at a clean end (the shard stops exactly after a record).
  // The view is valid until the next call. After an error every call returns that error.
  //   DataLoss           checksum mismatch or record cut short; names shard, byte offset, record.
  //   ResourceExhausted  length > max_record_bytes, checked before allocating.
  absl::StatusOr<std::optional<absl::string_view>> Next() &;
  absl::StatusOr<std::optional<absl::string_view>> Next() && = delete;  // The view would dangle.

  // Records returned so far. This is also the number of the next record.
  int64_t num_read() const { return num_read_; }

 private:
  RecordReader(const ByteSource* source, uint64_t source_bytes, const RecordReaderOptions& options)
      : source_(source), source_bytes_(source_bytes), options_(options) {}

  absl::StatusOr<std::optional<absl::string_view>> ReadNext();
  // Brings the `bytes` bytes at offset_ into the buffer. REQUIRES: the source has these bytes.
  absl::Status Fill(uint64_t bytes);
  const char* data() const { return reinterpret_cast<const char*>(buffer_.data()) + begin_; }
  // The reader's place: "shard .., record .. at byte offset ..".
  std::string Place() const;
  absl::Status Damaged(absl::string_view cause) const;

  const ByteSource* source_;
  uint64_t source_bytes_;
  RecordReaderOptions options_;
  AlignedBuffer buffer_;
  uint64_t begin_ = 0;  // buffer_[begin_, end_) was read, but is not consumed yet.
  uint64_t end_ = 0;
  uint64_t offset_ = 0;  // Where the next record, buffer_[begin_], begins in the source.
  int64_t num_read_ = 0;
  absl::Status status_;  // The first error.
};

}  // namespace systole

#endif  // SYSTOLE_CORE_RECORD_TFRECORD_RECORD_READER_H_
