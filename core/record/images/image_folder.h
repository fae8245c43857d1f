// Image files as a format of records. All files of a group are one shard, and each file is a record
// (image_record.h).
//
// Thread-compatible: immutable, so any number of threads may read. Keeps no file open.
#ifndef SYSTOLE_CORE_RECORD_IMAGES_IMAGE_FOLDER_H_
#define SYSTOLE_CORE_RECORD_IMAGES_IMAGE_FOLDER_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "core/example/example_builder.h"
#include "core/example/example_format.h"
#include "core/memory/aligned_buffer.h"
#include "core/record/images/image_group.h"
#include "core/record/images/image_index.h"
#include "core/record/images/image_record.h"
#include "core/record/images/packed_texts.h"
#include "core/record/images/read_images.h"
#include "core/record/source/record_source.h"
#include "core/record/source/shard_format.h"

namespace systole {

// The row for images in the table of formats (core/record/shard_formats.h).
const ShardFormat& ImageFormat();

// Every read of a record opens the record's file. The read compares the file's size, its identity
// and the CRC-32C of all its bytes with the values from the time when the group was opened.
class ImageFolder final : public RecordSource {
 public:
  absl::string_view path() const override { return path_; }
  std::string indexed_path() const override;
  uint64_t file_bytes() const override { return ends_.empty() ? 0 : ends_.back(); }
  uint64_t size_bytes() const override { return file_bytes(); }
  const std::string& note() const override { return note_; }
  const ExampleFormat& examples() const override;
  int64_t num_records() const override { return static_cast<int64_t>(files_.size()); }
  RecordSpan span(int64_t record) const override;
  std::string FileOf(int64_t record) const override;
  PayloadRange payload_bytes() const override { return payload_bytes_; }
  uint64_t content_hash() const override { return content_hash_; }
  int64_t num_damaged() const override { return num_damaged_; }
  const std::vector<DamagedRecord>& damaged() const override { return damaged_; }

  // Messages of errors name the file, such as "rose/1.jpg", in place of a byte offset.
  absl::StatusOr<absl::string_view> ReadRecord(int64_t record,
                                               AlignedBuffer& scratch) const override;
  // Reads one file after the other, into `scratch`.
  absl::Status ReadRecords(absl::Span<const int64_t> records, RecordBytes bytes,
                           int64_t max_read_bytes, AlignedBuffer& scratch,
                           RecordCallback callback) const override;
  // The bytes of all files as one source, in which the files follow each other. Null if the files
  // are on this machine. A read reads one file after the other, and makes the checks of
  // ReadRecord(), except that of the CRC.
  const ByteSource* far_bytes() const override { return far_bytes_.get(); }
  bool ReadsEachRecord() const override { return true; }
  bool IsTooLarge(int64_t record) const override;
  absl::Status ReadFetched(absl::Span<const int64_t> records, FetchedBytes fetched,
                           AlignedBuffer& scratch, RecordCallback callback) const override;
  void PrefetchSpan(int64_t record) const override;
  void Prefetch(int64_t /*record*/) const override {}
  // Returns OK without a check: a check of a million files would take too long, and every read of a
  // record checks the record's file.
  absl::Status CheckUnchanged() const override { return absl::OkStatus(); }
  absl::Status CheckHoldsRecords() const override;

 private:
  friend const ShardFormat& ImageFormat();

  struct File {
    std::string name;            // The name as it was given.
    uint64_t identity_hash = 0;  // XXH3-64 of the file's identity.
    uint32_t class_index = 0;    // Index into classes_.
    ImageFacts facts;
  };

  ImageFolder(ImageGroup group, std::vector<ImageClass> classes, ReadImages read,
              int64_t max_record_bytes);
  static absl::StatusOr<std::unique_ptr<RecordSource>> Open(FileGroup group,
                                                            const ShardOptions& options);

  const File& file(int64_t record) const { return files_[static_cast<size_t>(record)]; }
  absl::Status CheckNumber(int64_t record) const;
  // 'shard "flowers", record 3, the file "rose/1.jpg"'.
  std::string Place(int64_t record) const;
  // Why the file is damaged.
  std::string CauseOf(int64_t record) const;
  // `bytes` and `identity` are the state of the file now. FailedPrecondition if the state has
  // changed since the group was opened.
  absl::Status CheckState(int64_t record, uint64_t bytes, absl::string_view identity) const;
  absl::Status Changed(int64_t record, absl::string_view how) const;
  // The error for a file that cannot be opened.
  absl::Status CannotOpen(int64_t record, const absl::Status& error) const;
  class FarBytes;  // The class of far_bytes().
  std::unique_ptr<const ByteSource> MakeFarBytes() const;

  RecordAround Around(int64_t record) const;
  // For a record whose file is damaged: OK if the file's state has not changed since the group was
  // opened.
  absl::Status CheckDamagedFile(int64_t record) const;
  absl::Status Damaged(int64_t record) const;
  absl::Status TooLarge(int64_t record) const;
  // Opens the file and compares its state with the state at the time when the group was opened. For
  // an object on a server, sends no request if each read of the object shows whether the object has
  // changed.
  absl::StatusOr<std::unique_ptr<ByteSource>> OpenFile(int64_t record) const;
  // OK if `image` has the CRC-32C that the file had when the group was opened, else DataLoss.
  absl::Status CheckBytes(int64_t record, absl::string_view image) const;
  // RoomFor() returns memory in `scratch` for the record's image. Before and after this memory is
  // room for `around`. PutAround() writes `around` into this room, and returns the record.
  absl::StatusOr<absl::Span<char>> RoomFor(int64_t record, const RecordAround& around,
                                           AlignedBuffer& scratch) const;
  static absl::string_view PutAround(const RecordAround& around, absl::Span<char> image);
  // ReadRecord() of a record that exists. `outage` says whether an error is an outage (IsOutage).
  absl::StatusOr<absl::string_view> ReadOne(int64_t record, AlignedBuffer& scratch,
                                            bool& outage) const;
  absl::StatusOr<absl::string_view> ReadFile(int64_t record, AlignedBuffer& scratch,
                                             bool& outage) const;
  absl::StatusOr<absl::string_view> TakeFetched(int64_t record, FetchedBytes fetched,
                                                AlignedBuffer& scratch, bool& outage) const;

  std::string path_;
  std::vector<ImageClass> classes_;
  std::vector<File> files_;
  std::vector<uint64_t> ends_;  // Where each file would end if the files followed each other.
  PackedTexts identities_;      // Only for objects on a server, by record.
  std::vector<DamagedRecord> damaged_;
  int64_t num_damaged_ = 0;
  PayloadRange payload_bytes_;
  uint64_t content_hash_ = 0;
  std::string note_;
  int64_t max_record_bytes_ = kDefaultMaxRecordBytes;
  std::unique_ptr<const ByteSource> far_bytes_;
};

}  // namespace systole

#endif  // SYSTOLE_CORE_RECORD_IMAGES_IMAGE_FOLDER_H_
