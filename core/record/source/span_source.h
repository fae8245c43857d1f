// A RecordSource whose records are stretches of one file. Each record can be checked by itself.
// Formats of this kind derive from SpanSource and define the check.
//
// Thread-compatible: immutable, so any number of threads may read. Owns its bytes.
#ifndef SYSTOLE_CORE_RECORD_SOURCE_SPAN_SOURCE_H_
#define SYSTOLE_CORE_RECORD_SOURCE_SPAN_SOURCE_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "core/memory/aligned_buffer.h"
#include "core/record/source/record_index.h"
#include "core/record/source/record_source.h"
#include "core/storage/byte_source.h"
#include "core/storage/mapping.h"
#include "core/storage/stored_pieces.h"

namespace systole {

// A file of records, opened and indexed.
struct IndexedFile {
  std::unique_ptr<ByteSource> bytes;  // Decompressed.
  uint64_t size_bytes = 0;            // Size of `bytes`.
  uint64_t file_bytes = 0;            // Size of the file as it is stored.
  RecordIndex index;
  uint64_t content_hash = 0;
  bool index_is_kept = false;  // Whether files hold the index for later starts.
  std::string note;
  int64_t max_record_bytes = kDefaultMaxRecordBytes;
};

class SpanSource : public RecordSource {
 public:
  absl::string_view path() const final { return file_.bytes->name(); }
  uint64_t file_bytes() const final { return file_.file_bytes; }
  uint64_t size_bytes() const final { return file_.size_bytes; }
  const std::string& note() const final { return file_.note; }
  int64_t num_records() const final { return file_.index.num_records(); }
  RecordSpan span(int64_t record) const final { return file_.index.span(record); }
  PayloadRange payload_bytes() const final { return payload_bytes_; }
  uint64_t content_hash() const final { return file_.content_hash; }
  std::optional<ShardFacts> facts() const final;
  int64_t num_damaged() const final { return file_.index.num_damaged(); }
  const std::vector<DamagedRecord>& damaged() const final { return file_.index.damaged(); }
  const RecordIndex& index() const { return file_.index; }

  // Takes one positioned read.
  absl::StatusOr<absl::string_view> ReadRecord(int64_t record, AlignedBuffer& scratch) const final;
  absl::Status ReadRecords(absl::Span<const int64_t> records, RecordBytes bytes,
                           int64_t max_read_bytes, AlignedBuffer& scratch,
                           RecordCallback callback) const final;
  const ByteSource* far_bytes() const final {
    if (far_pieces() != nullptr) return &far_pieces()->stored();
    return file_.bytes->may_wait() ? file_.bytes.get() : nullptr;
  }
  const StoredPieces* far_pieces() const final { return file_.bytes->pieces(); }
  absl::Status ReadFetched(absl::Span<const int64_t> records, FetchedBytes fetched,
                           AlignedBuffer& scratch, RecordCallback callback) const final;
  bool IsTooLarge(int64_t record) const final { return span(record).size > max_span_bytes_; }
  void PrefetchSpan(int64_t record) const final { file_.index.PrefetchSpan(record); }
  void Prefetch(int64_t record) const final;
  absl::Status CheckUnchanged() const final;
  absl::Status CheckHoldsRecords() const final;

 protected:
  // In each record, `framing_bytes` bytes are not payload. `format` is the format's name.
  SpanSource(IndexedFile file, uint64_t framing_bytes, absl::string_view format);

  // The check of the format. `bytes` are all bytes of the record, and may change during the call.
  // Returns the payload, a view into `bytes`. Errors are made with Damaged().
  virtual absl::StatusOr<absl::string_view> Check(int64_t record,
                                                  absl::string_view bytes) const = 0;
  // Called for a record that is larger than the limit. Returns why the record is damaged, or "" if
  // the record seems whole. Does not read the whole record.
  virtual absl::StatusOr<std::string> CauseIfTooLarge(int64_t record) const = 0;

  // DataLoss.
  absl::Status Damaged(int64_t record, absl::string_view cause) const;
  // ByteSource::ReadAt() with the error codes of ReadRecord().
  absl::StatusOr<size_t> ReadAt(uint64_t offset, absl::Span<char> out) const;

 private:
  // Returns `error`. But if it is DataLoss and the file has changed, returns the error of
  // CheckUnchanged(), because bytes that fail their check after the file was replaced are not
  // damage.
  absl::Status UnlessChanged(absl::Status error) const;
  absl::Status CheckNumber(int64_t record) const;
  // The bytes of records [first, last] in one read. `outage` becomes true if the read fails because
  // of an outage (IsOutage()).
  absl::StatusOr<absl::string_view> ReadSpans(int64_t first, int64_t last, AlignedBuffer& scratch,
                                              bool& outage) const;
  // The bytes that ReadSpans() gives, made of far_pieces(). `fetched` returns these pieces, which
  // were read before, so nothing is read here.
  absl::StatusOr<absl::string_view> MakeSpans(int64_t first, int64_t last, FetchedBytes fetched,
                                              AlignedBuffer& scratch, bool& outage) const;
  // How records are read: `read` calls ReadSpans() or MakeSpans(), or takes fetched bytes. If a
  // record fails its check and `asks` is true, CheckUnchanged() finds out whether the file was
  // replaced.
  struct SpanReader {
    absl::FunctionRef<absl::StatusOr<absl::string_view>(int64_t first, int64_t last, bool& outage)>
        read;
    bool asks = true;
  };
  // ReadRecords() without a mapping. Each run of neighbouring records takes one reader.read().
  absl::Status ReadRuns(absl::Span<const int64_t> records, int64_t max_read_bytes,
                        const SpanReader& reader, RecordCallback callback) const;
  // ReadRecord() of a record that exists. `outage` is as for ReadSpans().
  absl::StatusOr<absl::string_view> ReadOne(int64_t record, const SpanReader& reader,
                                            bool& outage) const;
  // ReadOne() with ReadSpans() as the reader.
  absl::StatusOr<absl::string_view> ReadOne(int64_t record, AlignedBuffer& scratch,
                                            bool& outage) const;
  // Check(). If the check fails and `asks` is true, CheckUnchanged() finds out whether the file was
  // replaced.
  absl::StatusOr<absl::string_view> CheckAndAsk(int64_t record, absl::string_view bytes, bool asks,
                                                bool& outage) const;
  // The error for a record that is too large to be read.
  absl::Status TooLarge(int64_t record) const;
  // ReadRecords() of a file that can be read in place. REQUIRES: `mapped` has bytes.
  absl::Status ReadInPlace(absl::Span<const int64_t> records, const MappedRead& mapped,
                           AlignedBuffer& scratch, RecordCallback callback) const;
  // "shard .., record .. at byte offset ..".
  std::string Place(int64_t record) const;

  IndexedFile file_;
  uint64_t framing_bytes_;
  uint64_t max_span_bytes_;
  absl::string_view format_;
  PayloadRange payload_bytes_;
};

}  // namespace systole

#endif  // SYSTOLE_CORE_RECORD_SOURCE_SPAN_SOURCE_H_
