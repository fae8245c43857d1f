// The records of a zip, or a range of them: record i of a ZipSource is made from record `first + i`
// of each member. The payloads of these parts are copied one after the other into the joined
// payload. While a part is read, PartInRead notes which part it is.
//
// Thread-compatible: immutable, so any number of threads may read. Reading takes memory for the
// joined record and, if a part cannot be read in place, for this part. Both are counted
// (ScratchUse::kReads).
#ifndef SYSTOLE_CORE_RECORD_ZIP_ZIP_SOURCE_H_
#define SYSTOLE_CORE_RECORD_ZIP_ZIP_SOURCE_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "core/example/example_format.h"
#include "core/memory/aligned_buffer.h"
#include "core/order/shard_map.h"
#include "core/record/source/record_source.h"
#include "core/record/zip/zip_format.h"

namespace systole {

// A member of a zip. A zip keeps the shards of its members alive.
struct ZipMember {
  using Shards = std::vector<std::shared_ptr<const RecordSource>>;

  std::shared_ptr<const Shards> shards;  // In order. None of them is a ZipSource.
  std::shared_ptr<const ShardMap> map;   // Which record lies in which shard.
};

// Sums over all shards of a member. If several ZipSources join the same members, the caller
// computes these sums once for all of them.
struct ZipMemberSums {
  bool is_far = false;  // Whether any shard is_far().
  uint64_t file_bytes = 0;
  uint64_t size_bytes = 0;
  uint64_t hash = 0;  // Hash of num_records() and content_hash() of all shards.
};
// O(shards).
ZipMemberSums SumsOf(const ZipMember& member);

// The most bytes of a joined record. This is also the default limit of a record that is not joined.
// The limit is needed because a peer may zip any datasets. Besides, each part must keep to the
// limit of its own dataset.
inline constexpr int64_t kMaxZipRecordBytes = kDefaultMaxRecordBytes;

class ZipSource final : public RecordSource {
 public:
  // O(members). REQUIRES: each member has `first + num_records` records or more, `sums` has the
  // SumsOf() of each member, and `format` has the formats of the members' records.
  ZipSource(std::shared_ptr<const std::vector<ZipMember>> members,
            absl::Span<const ZipMemberSums> sums, int64_t first, int64_t num_records,
            std::shared_ptr<const ZipFormat> format);

  absl::string_view path() const override { return "zip"; }
  // Empty: only the parts have indexes.
  std::string indexed_path() const override { return ""; }
  // The sum of the members' bytes. If this source joins only some of the records, it counts only
  // the share of these records, as if all records of a member had the same size.
  uint64_t file_bytes() const override { return file_bytes_; }
  uint64_t size_bytes() const override { return size_bytes_; }
  const std::string& note() const override;
  const ExampleFormat& examples() const override { return *format_; }
  int64_t num_records() const override { return num_records_; }
  // A joined record lies in no file.
  RecordSpan span(int64_t /*record*/) const override { return {}; }
  size_t num_parts() const override { return members_->size(); }
  // O(log shards).
  Part PartOf(int64_t record, size_t part) const override;
  bool is_far() const override { return is_far_; }
  PayloadRange payload_bytes() const override;
  // Hash of the members' shards, of the range of records, and of the prefixes.
  uint64_t content_hash() const override { return content_hash_; }
  // 0: known damage is counted by the sources of the parts, not here.
  int64_t num_damaged() const override { return 0; }
  const std::vector<DamagedRecord>& damaged() const override;

  // Returns the error of the first part that cannot be read, marked by MarkedAsOfPart().
  // ResourceExhausted also if the joined record is larger than kMaxZipRecordBytes.
  // FailedPrecondition if the file of a part has changed.
  absl::StatusOr<absl::string_view> ReadRecord(int64_t record,
                                               AlignedBuffer& scratch) const override;
  // Payloads are always copies. Each part is read by itself. Before ReadRecords() returns, it
  // checks that the files whose records it joined are unchanged. It skips this check if the storage
  // failed.
  absl::Status ReadRecords(absl::Span<const int64_t> records, RecordBytes bytes,
                           int64_t max_read_bytes, AlignedBuffer& scratch,
                           RecordCallback callback) const override;
  bool IsTooLarge(int64_t record) const override;
  absl::Status ReadFetched(absl::Span<const int64_t> records, FetchedBytes fetched,
                           AlignedBuffer& scratch, RecordCallback callback) const override;
  void PrefetchSpan(int64_t record) const override;
  void Prefetch(int64_t record) const override;
  // OK without a check. Each read checks the files that it reads, because a zip may have very many
  // files.
  absl::Status CheckUnchanged() const override { return absl::OkStatus(); }
  absl::Status CheckRecordUnchanged(int64_t record, bool skip_far) const override;
  absl::Status CheckHoldsRecords() const override { return absl::OkStatus(); }

 private:
  class Joining;

  absl::Status CheckNumber(int64_t record) const;
  // `fetched` is null if nothing was read ahead.
  absl::Status ReadAll(absl::Span<const int64_t> records, int64_t max_read_bytes,
                       const FetchedBytes* fetched, AlignedBuffer& scratch,
                       RecordCallback callback) const;

  const std::shared_ptr<const std::vector<ZipMember>> members_;
  const int64_t first_;
  const int64_t num_records_;
  const std::shared_ptr<const ZipFormat> format_;
  bool is_far_ = false;
  uint64_t file_bytes_ = 0;
  uint64_t size_bytes_ = 0;
  uint64_t content_hash_ = 0;
};

}  // namespace systole

#endif  // SYSTOLE_CORE_RECORD_ZIP_ZIP_SOURCE_H_
