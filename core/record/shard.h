// One TFRecord file, in any store, and its index: records in any order, each checked.
//
// Thread-compatible: immutable, so any number of threads may read. Owns its source.
#ifndef SYSTOLE_CORE_RECORD_SHARD_H_
#define SYSTOLE_CORE_RECORD_SHARD_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "core/compression/chunk_cache.h"
#include "core/compression/compression.h"
#include "core/memory/aligned_buffer.h"
#include "core/record/record_format.h"
#include "core/record/record_index.h"
#include "core/storage/byte_source.h"
#include "core/storage/mapping.h"

namespace systole {

struct ShardOptions {
  // Folder for index files; empty = beside each shard.
  std::string index_dir = {};
  // Largest payload accepted, in bytes. Stops a hostile record from taking all memory.
  int64_t max_record_bytes = kDefaultMaxRecordBytes;
  // How the shards are compressed, and where their decompressed bytes are held: see
  // ShardFileOptions.
  Compression compression = Compression::kDetect;
  std::shared_ptr<ChunkCache> chunks = {};
};

// Where the bytes that a RecordCallback sees may lie.
enum class RecordBytes {
  // In `scratch`: a copy that nobody else can change.
  kCopied,
  // In the file itself, if it can be mapped. The bytes are checked like a copy, and one pass over
  // them is saved. The reader must keep the rules of mapping.h.
  kInPlace,
};

class Shard {
 public:
  // Opens the file `path`; reads its index or builds it (see LoadIndex).
  static absl::StatusOr<Shard> Open(const std::string& path, const ShardOptions& options = {});

  // The same, but scans the file itself, whatever files lie beside it, and writes none.
  static absl::StatusOr<Shard> Scan(const std::string& path, const ShardOptions& options = {});

  // A shard that is no file: scans `source` and keeps the index in memory.
  static absl::StatusOr<Shard> Create(std::unique_ptr<ByteSource> source,
                                      const ShardOptions& options = {});

  // Reads record `record` with one positioned read and checks both CRCs. The view is the payload.
  // It lies in `scratch`, which grows as needed and may be used for the next record after that.
  //   InvalidArgument    not 0 <= record < num_records().
  //   DataLoss            damaged; names the shard's base name, record, byte offset and cause.
  //   ResourceExhausted   payload > max_record_bytes, checked before allocating.
  //   FailedPrecondition  the record is damaged, and the shard has changed since it was opened.
  //   Unavailable         no memory, or the storage's own DataLoss or ResourceExhausted: those two
  //                       codes always mean that something is wrong with the record.
  // Other codes are the storage's, for a read that failed.
  absl::StatusOr<absl::string_view> ReadRecord(int64_t record, AlignedBuffer& scratch) const;

  // Called for each record asked for, with its place in `records` and its payload (valid only
  // during the call) or the error that ReadRecord has for it. A return value that is not OK ends
  // ReadRecords, which returns it, unless the bytes of this very call could not be trusted.
  using RecordCallback =
      absl::FunctionRef<absl::Status(size_t place, absl::StatusOr<absl::string_view> payload)>;

  // Reads several records, in the order given. Records that are neighbours both in the shard and in
  // `records` share one read of at most `max_read_bytes` (a larger record is read alone). With
  // kInPlace the storage may fail, or the shard be cut, while a callback reads it. The callback
  // then sees bytes that are not the record's. After that callback ReadRecords ends with
  //   FailedPrecondition  the shard has changed.
  //   Unavailable         the shard has not changed; names the place.
  // A change that does not cut the shard is not noticed here: call CheckUnchanged() after the last
  // callback.
  absl::Status ReadRecords(absl::Span<const int64_t> records, RecordBytes bytes,
                           int64_t max_read_bytes, AlignedBuffer& scratch,
                           RecordCallback callback) const;

  // Hint: lets the processor load the beginning of record `record` into its cache, if the record
  // can be read in place. REQUIRES: 0 <= record < num_records().
  void Prefetch(int64_t record) const;

  // FailedPrecondition if the file was replaced, resized or rewritten since it was opened. Another
  // code, but never DataLoss or ResourceExhausted, if the storage cannot tell.
  absl::Status CheckUnchanged() const;

  // OK if the shard is empty or the framing of at least one record holds. Otherwise it is no shard,
  // or nothing of it can be read; says what the file looks like, and what to do.
  //   InvalidArgument  a file of another kind: an image, or compressed though that was ruled out.
  //   DataLoss         unknown bytes; gives the cause of the first record.
  absl::Status CheckHoldsRecords() const;

  int64_t num_records() const { return index_.num_records(); }
  // Decompressed.
  uint64_t size_bytes() const { return index_.shard_bytes(); }
  // Of the file as it lies there.
  uint64_t file_bytes() const { return file_bytes_; }
  // Record sizes and stored payload CRCs as one number (see ScannedShard): what the shard
  // contributes to its dataset's fingerprint.
  uint64_t content_hash() const { return content_hash_; }
  const RecordIndex& index() const { return index_; }
  // See LoadedIndex::note and ShardFile::note.
  const std::string& index_note() const { return index_note_; }
  absl::string_view path() const { return source_->name(); }
  absl::string_view base_name() const { return BaseName(source_->name()); }

 private:
  Shard(std::unique_ptr<ByteSource> source, RecordIndex index, uint64_t content_hash,
        std::string index_note, uint64_t file_bytes, int64_t max_record_bytes);

  absl::Status CheckNumber(int64_t record) const;
  // ByteSource::ReadAt() with the codes of ReadRecord().
  absl::StatusOr<size_t> ReadAt(uint64_t offset, absl::Span<char> out) const;
  bool IsTooLarge(int64_t record) const {
    return index_.span(record).size >
           static_cast<uint64_t>(max_record_bytes_) + kRecordFramingBytes;
  }
  // The bytes of records [first, last] in one read.
  absl::StatusOr<absl::string_view> ReadFrames(int64_t first, int64_t last,
                                               AlignedBuffer& scratch) const;
  // ReadRecords() of a shard that can be read in place: `mapped` has bytes.
  absl::Status ReadInPlace(absl::Span<const int64_t> records, const MappedRead& mapped,
                           AlignedBuffer& scratch, RecordCallback callback) const;
  // The payload in `frame`, the bytes of record `record`, which may change meanwhile.
  absl::StatusOr<absl::string_view> CheckFrame(int64_t record, absl::string_view frame) const;
  // DataLoss, or FailedPrecondition if the shard has changed.
  absl::Status Damaged(int64_t record, absl::string_view cause) const;
  // "shard .., record .. at byte offset ..".
  std::string Place(int64_t record) const;

  std::unique_ptr<ByteSource> source_;
  RecordIndex index_;
  uint64_t content_hash_;
  std::string index_note_;
  uint64_t file_bytes_;
  int64_t max_record_bytes_;
};

}  // namespace systole

#endif  // SYSTOLE_CORE_RECORD_SHARD_H_
