// The interface between a file of records and the code that reads the records. The interface gives
// records by number, for any format of the file. Code that reads records does not depend on the
// format. A format whose records are whole files has one RecordSource for a group of files.
//
// Thread-compatible: immutable, so any number of threads may read.
#ifndef SYSTOLE_CORE_RECORD_SOURCE_RECORD_SOURCE_H_
#define SYSTOLE_CORE_RECORD_SOURCE_RECORD_SOURCE_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "core/example/example_format.h"
#include "core/memory/aligned_buffer.h"
#include "core/record/source/record_index.h"
#include "core/record/source/shard_facts.h"
#include "core/storage/byte_source.h"
#include "core/storage/stored_pieces.h"

namespace systole {

// Largest payload accepted by default, in bytes.
inline constexpr int64_t kDefaultMaxRecordBytes = int64_t{256} << 20;

// Where the bytes for a RecordCallback may lie.
enum class RecordBytes {
  // In `scratch`: a copy that no other program can change.
  kCopied,
  // In the file itself, if the file can be mapped and the format allows it; otherwise as kCopied. A
  // read checks bytes in the file as it would check a copy, but spends no time on copying. The
  // caller must keep the rules of core/storage/mapping.h.
  kInPlace,
};

// `error` is the error of reading a record. Returns whether it is an outage: an error of the
// storage and not of the record. Examples are a server that does not answer, a signed address that
// has expired, a file that was replaced, and an interruption. After an outage, a read of any other
// record would fail, too, perhaps after minutes of retries. A bad sector of a disk (EIO, with the
// code Unknown) is not an outage, because the records in other sectors can perhaps be read.
inline bool IsOutage(const absl::Status& error) {
  switch (error.code()) {
    case absl::StatusCode::kCancelled:
    case absl::StatusCode::kDeadlineExceeded:
    case absl::StatusCode::kFailedPrecondition:
    case absl::StatusCode::kPermissionDenied:
    case absl::StatusCode::kUnavailable:
      return true;
    default:
      return false;
  }
}

// Marks `damage` as the error of a checksum that does not match. Changes neither code nor message.
absl::Status MarkedAsChecksumMismatch(absl::Status damage);
bool IsChecksumMismatch(const absl::Status& error);

// Marks `error` as an error of part `part` of a record (RecordSource::PartOf()). Changes neither
// code nor message. If `part` is nullopt, returns `error` as it is.
absl::Status MarkedAsOfPart(absl::Status error, std::optional<size_t> part);
// The part that MarkedAsOfPart() noted. Nullopt: there is no such mark.
std::optional<size_t> PartAtFault(const absl::Status& error);

class RecordSource {
 public:
  virtual ~RecordSource() = default;

  // The file, or the common folder of a group of files.
  virtual absl::string_view path() const = 0;
  // The name from which the path of an index is made (IndexPath()): path() or, in a group of files,
  // a name in the common folder. Empty: the records lie in memory, and nothing is kept beside them.
  virtual std::string indexed_path() const { return std::string(path()); }
  // The part of path() that clients may see.
  absl::string_view base_name() const { return NameForClients(path()); }
  // The size of the file as it is stored, in bytes. If the shard has several files, the sum of
  // their sizes.
  virtual uint64_t file_bytes() const = 0;
  // The size of the file after decompression, in bytes.
  virtual uint64_t size_bytes() const = 0;
  // A note for a person: why an index was not used, or could not be kept. A note is not an error.
  // Empty: there is no note.
  virtual const std::string& note() const = 0;

  // How a record's payload holds features.
  virtual const ExampleFormat& examples() const = 0;

  virtual int64_t num_records() const = 0;
  // A stretch of the decompressed file that holds the record, for messages and for reading ahead.
  // The stretch never begins before the stretch of the previous record. In a group of files,
  // offsets count as if the files followed each other. If unread_index() is not null, the stretch
  // is empty and at offset 0. REQUIRES: 0 <= record < num_records().
  virtual RecordSpan span(int64_t record) const = 0;
  // For messages: in a group of files, the file that is this record, such as "rose/1.jpg". Empty if
  // all records are in the one file path(). REQUIRES: as for span().
  virtual std::string FileOf(int64_t /*record*/) const { return ""; }
  // For messages: "record 3 at byte offset 1234", or `record 3, the file "rose/1.jpg"`. REQUIRES:
  // as for span().
  std::string PlaceOf(int64_t record) const;
  // The stored bytes, if a read of them may wait for a server. Then blocks of these bytes can be
  // read ahead, and ReadFetched() takes records from the blocks. A record lies at its span(), or is
  // made of far_pieces(). Null: a read of the bytes waits for no server. Valid while the shard
  // exists.
  virtual const ByteSource* far_bytes() const { return nullptr; }
  // If the places of the records in far_bytes() are not known yet: a source whose first read makes
  // them known. Read 0 bytes at offset 0 of this source before you fetch records. Null: the places
  // are known. Valid while the shard exists.
  virtual const ByteSource* unread_index() const { return nullptr; }
  // The pieces of far_bytes() from which the bytes of span() are made, if the file is compressed.
  // Null: span() is a place in far_bytes(). Valid while the shard exists.
  virtual const StoredPieces* far_pieces() const { return nullptr; }
  // How many bytes far_bytes() has; 0 if far_bytes() is null.
  uint64_t far_size() const;

  // A record of another source.
  struct Part {
    const RecordSource* source = nullptr;
    int64_t record = 0;
  };
  // The number of a record's parts: the records of other sources from which the record is joined.
  // 1: records are not joined, and the only part of a record is the record itself. For joined
  // records, call far_bytes(), far_pieces(), span() and unread_index() of the parts' sources. The
  // results of this source mean nothing then.
  virtual size_t num_parts() const { return 1; }
  // REQUIRES: part < num_parts(), and `record` as for span().
  virtual Part PartOf(int64_t record, size_t /*part*/) const { return {this, record}; }
  // Whether a part has far_bytes(), so that blocks can be read ahead for ReadFetched().
  virtual bool is_far() const { return far_bytes() != nullptr; }

  // The sizes of the smallest and of the largest payload, in bytes. Found without reading payloads,
  // so the two sizes are exact only if the format says how large each payload is. Otherwise they
  // are bounds. 0 and 0 if there are no records.
  virtual PayloadRange payload_bytes() const = 0;
  // A hash of the records and their order, for the fingerprint of a dataset. Does not depend on the
  // names and times of files.
  virtual uint64_t content_hash() const = 0;
  // The facts that may be kept, so that a later start need not open the shard (DeferShard()).
  // Nullopt if no facts may be kept:
  //   - the shard is on this machine, is compressed, is damaged or is a group of files, or
  //   - the file's state has no identity, or
  //   - the shard's index is not kept, so that the first read after a later start would have to
  //     make the index.
  virtual std::optional<ShardFacts> facts() const { return std::nullopt; }
  // The number of records that were found unreadable when the file was opened. damaged() has those
  // with the lowest numbers, in order, at most kMaxDamagedListed.
  virtual int64_t num_damaged() const = 0;
  virtual const std::vector<DamagedRecord>& damaged() const = 0;

  // Reads record `record` and checks it. The view is the payload. The payload lies in `scratch`,
  // which grows as needed and may be used again for the next record.
  //   InvalidArgument     `record` is not in [0, num_records()).
  //   DataLoss            the record is damaged. The message has the file's base name, the
  //                       record, its offset in bytes and the cause.
  //   ResourceExhausted   the record is larger than ShardOptions.max_record_bytes. This is checked
  //                       before memory is taken.
  //   FailedPrecondition  the record is damaged, and the file has changed since it was opened.
  //   Unavailable         there is no memory, or the storage reported DataLoss or
  //                       ResourceExhausted. So ReadRecord() returns DataLoss and ResourceExhausted
  //                       only if the record is at fault.
  // If a read of the storage fails, other codes are those of the storage.
  virtual absl::StatusOr<absl::string_view> ReadRecord(int64_t record,
                                                       AlignedBuffer& scratch) const = 0;

  // ReadRecords() calls this function for each record. `place` is the record's index in `records`.
  // `payload` is a view that is valid only during the call, or the error that ReadRecord() would
  // return. If the callback returns an error, ReadRecords() ends and returns this error. But if the
  // callback may have seen wrong bytes, ReadRecords() returns the error for the wrong bytes (see
  // below). After an outage (IsOutage), ReadRecords() calls the callback with the error for this
  // record, and then ends with this error.
  using RecordCallback =
      absl::FunctionRef<absl::Status(size_t place, absl::StatusOr<absl::string_view> payload)>;

  // Reads several records, in the order given. Records that are neighbours both in the file and in
  // `records` share one read of at most `max_read_bytes`. A larger record is read alone. With
  // kInPlace, the storage may fail, or the file may be cut, while the callback reads a record. Then
  // the callback sees bytes that are not the record's, and ReadRecords() ends after this call with
  //   FailedPrecondition  the file has changed.
  //   Unavailable         the file has not changed. The message has the record's place.
  // A change of the file that leaves the records valid is not noticed here: call CheckUnchanged()
  // after the last callback.
  virtual absl::Status ReadRecords(absl::Span<const int64_t> records, RecordBytes bytes,
                                   int64_t max_read_bytes, AlignedBuffer& scratch,
                                   RecordCallback callback) const = 0;

  // Whether a read of far_bytes() takes one request for each record, because each record is a file.
  // If so, each record is read alone, and a failure affects only this record.
  virtual bool ReadsEachRecord() const { return false; }
  // Whether the record is larger than ShardOptions.max_record_bytes, so that it is never read.
  // REQUIRES: 0 <= record < num_records().
  virtual bool IsTooLarge(int64_t record) const = 0;
  // Returns the bytes of a stretch of `far`, or the error of reading them. `far` is the far_bytes()
  // of a part. The stretch is the span() of a record, or one of far_pieces(). A view stays valid
  // until ReadFetched() returns.
  using FetchedBytes = absl::FunctionRef<absl::StatusOr<absl::string_view>(const ByteSource& far,
                                                                           const RecordSpan& span)>;
  // ReadRecords() for records whose bytes were fetched before. A payload lies in the fetched bytes
  // or in `scratch`. ReadFetched() reads the storage of far_bytes() only to find the cause if a
  // record is damaged or too large. If unread_index() could not be read, `fetched` returns the
  // error of this read for any span. Parts without far_bytes() are read as by ReadRecords() with
  // kInPlace. If the file of such a part has changed, ReadFetched() returns the error of
  // CheckUnchanged(). REQUIRES: is_far().
  virtual absl::Status ReadFetched(absl::Span<const int64_t> records, FetchedBytes fetched,
                                   AlignedBuffer& scratch, RecordCallback callback) const;

  // Hints, which may do nothing. PrefetchSpan() loads the memory that span() reads into the
  // processor's cache. Prefetch() loads the beginning of the record, if the record can be read in
  // place. REQUIRES: 0 <= record < num_records().
  virtual void PrefetchSpan(int64_t record) const = 0;
  virtual void Prefetch(int64_t record) const = 0;

  // FailedPrecondition if the file was replaced, resized or rewritten since it was opened. If the
  // storage does not answer, the error has another code, but never DataLoss or ResourceExhausted.
  // The source of a group of files may return OK without a check if every read compares the file's
  // state with that at the time when the group was opened, and if no read is in place.
  virtual absl::Status CheckUnchanged() const = 0;
  // CheckUnchanged() of the sources of the record's parts. If `skip_far`, leaves out the parts that
  // have far_bytes(), because the reader of these bytes has checked their sources. REQUIRES: 0 <=
  // record < num_records().
  virtual absl::Status CheckRecordUnchanged(int64_t /*record*/, bool skip_far) const {
    return skip_far && is_far() ? absl::OkStatus() : CheckUnchanged();
  }

  // OK if the file is empty or at least one record is not known to be damaged. Otherwise the file
  // is not a shard, or none of its records can be read. Then the message says what the file looks
  // like, and what to do.
  //   InvalidArgument  a file of another kind: an image, or a compressed file that was not
  //                    decompressed.
  //   DataLoss         unknown bytes. The message says what is wrong with the first record.
  virtual absl::Status CheckHoldsRecords() const = 0;
};

}  // namespace systole

#endif  // SYSTOLE_CORE_RECORD_SOURCE_RECORD_SOURCE_H_
