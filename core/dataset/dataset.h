// A named set of shards of any format, or several such sets, joined or zipped. Reads any record by
// its number.
//
// Thread-safe: immutable except for the log of damage and the columns, which have locks.
#ifndef SYSTOLE_CORE_DATASET_DATASET_H_
#define SYSTOLE_CORE_DATASET_DATASET_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "core/column/condition.h"
#include "core/dataset/damage_cause.h"
#include "core/dataset/damage_log.h"
#include "core/dataset/dataset_columns.h"
#include "core/dataset/dataset_sample.h"
#include "core/dataset/open_shards.h"
#include "core/example/example_parser.h"
#include "core/order/shard_map.h"
#include "core/record/source/record_source.h"
#include "core/record/source/shard_format.h"

namespace systole {

class Dataset;

// A member of a zip. In the zip, `prefix` stands before the names of the member's features.
struct ZippedMember {
  std::shared_ptr<const Dataset> dataset;
  std::string prefix;
};

class Dataset {
 public:
  // Opens the shards that the globs in `patterns` match, sorted by base name and then by path, and
  // reads or builds their indexes. But a shard that the index of its folder lists (known_shards.h)
  // is opened only when it is first read. All image files together are one shard (GroupShards()),
  // and several threads look at these files. Compares the shards with `expected` and with the
  // manifests beside the shards (manifest.h). Most errors name files by base name. Errors about
  // patterns, image files and shards on servers may have the names as they were given, and the
  // names of servers. The ReasonForClients() of these errors has only base names.
  //   InvalidArgument  some files are images and others are not, the shards hold no record at all,
  //                    a file is not a shard (but an archive, for example), a manifest is
  //                    malformed, or a number in `expected` is negative.
  //   DataLoss         a shard is not empty, but nothing in it can be read; or a shard has other
  //                    numbers of records or bytes than a manifest says.
  //   NotFound         a pattern matches nothing, or a shard that a manifest lists is missing.
  //   FailedPrecondition  the shards have another number of records or bytes than expected. The
  //                       message has both numbers.
  //   Cancelled        this thread was interrupted (InterruptRequested()). Any other error is then
  //                    dropped.
  // Also returns the errors of reading a shard.
  static absl::StatusOr<std::shared_ptr<Dataset>> Open(std::string name,
                                                       absl::Span<const std::string> patterns,
                                                       const ShardOptions& options = {},
                                                       const ExpectedContent& expected = {});
  // Makes a dataset of shards that are open already. Does not compare the shards with manifests or
  // expected numbers. If the storage fails (IsOutage) before the features of a record are known,
  // returns the storage's error.
  static absl::StatusOr<std::shared_ptr<Dataset>> Create(
      std::string name, std::vector<std::unique_ptr<const RecordSource>> shards);
  // Makes a dataset of the records of all `members`, one member after the other. The new dataset
  // shares the members' shards, and its name is made of their names. features() and sample() are
  // those of the first member. REQUIRES: at least one member, none of them joined or zipped.
  //   InvalidArgument  more than 2^62 records.
  static absl::StatusOr<std::shared_ptr<Dataset>> Join(
      std::vector<std::shared_ptr<const Dataset>> members);
  // Makes a dataset whose record i has the features of record i of each member (core/record/zip). A
  // dataset may be a member twice, with different prefixes. Reads nothing: features() and sample()
  // are put together from those of the members. A zip does not list damage that indexing found,
  // because its members list this damage. Takes O(shards) time. REQUIRES: at least one member, none
  // of them joined or zipped.
  //   InvalidArgument  the members have different numbers of records; two members have a feature of
  //                    the same name (the message has the field of the spec); or the shards change
  //                    their kind too often (kMaxZipSources).
  static absl::StatusOr<std::shared_ptr<Dataset>> Zip(std::vector<ZippedMember> members);

  const std::string& name() const { return name_; }
  // The members that Join() got; empty for other datasets.
  absl::Span<const std::shared_ptr<const Dataset>> members() const { return members_; }
  // The members that Zip() got; empty for other datasets. Record i of the zip has the features of
  // record i of each member.
  absl::Span<const ZippedMember> zipped() const { return zipped_; }
  // The number of the member of a zip that this feature belongs to (FindZipFeature()). Nullopt if
  // this dataset is not a zip, or if the feature's name begins with no member's prefix.
  std::optional<size_t> PartOfFeature(absl::string_view feature) const;
  absl::Span<const std::shared_ptr<const RecordSource>> shards() const { return shards_; }
  int64_t num_records() const { return map_.num_records(); }
  const ShardMap& map() const { return map_; }
  // The number of records of each shard, in order.
  absl::Span<const int64_t> records_per_shard() const { return records_per_shard_; }
  // The mean size of a stored record, framing included.
  int64_t mean_record_bytes() const { return mean_record_bytes_; }
  // The stored bytes of all shards that can be read ahead (RecordSource::far_size()). 0: no shard
  // can be read ahead.
  uint64_t far_bytes() const { return far_bytes_; }
  // A hash over the number of records and the RecordSource::content_hash() of each shard, in order.
  uint64_t fingerprint() const { return fingerprint_; }

  // Reads record `record` (see RecordSource::ReadRecord). Errors name the shard, the offset and the
  // record's number in the shard. REQUIRES: 0 <= record < num_records().
  absl::StatusOr<absl::string_view> ReadRecord(int64_t record, AlignedBuffer& scratch) const;

  // The member that `record` belongs to, and the number of the record in that member. For a dataset
  // without members: this dataset and `record`.
  std::pair<const Dataset*, int64_t> MemberOf(int64_t record) const;

  // The place of a record, for messages: "shard 'a.tfrecord', offset 1234, record 3 (record_id 17)"
  // or "file 'rose/1.jpg', record ..". In a zip, the place in member `part`, or the places in all
  // members if `part` is nullopt.
  std::string Where(int64_t record, std::optional<size_t> part = std::nullopt) const;

  // The log entry for record `index` of `shard`, which has the number `record` in the dataset.
  static DamageLog::Entry DamageAt(const RecordSource& shard, int64_t index, int64_t record,
                                   std::string cause, DamageCause kind = DamageCause::kRecord);

  // The number of damaged records that indexing found, and a list of the first `at_most` of them.
  // The list has at most kMaxDamagedListed records of each shard.
  int64_t num_damaged_records() const { return num_damaged_records_; }
  std::vector<DamageLog::Entry> DamagedRecords(size_t at_most) const;

  // A note for a person: why the index of the shards' folder was not used or could not be kept.
  // Empty: there is no note.
  const std::string& note() const { return note_; }
  // Adds to the note. Call AddNote() before other threads have the dataset.
  void AddNote(absl::string_view note);

  // Makes and keeps the columns of these features that shards do not have yet
  // (DatasetColumns::Note()). RecordsThatMeet() uses the columns. Reads all records of the shards
  // that lack a column. In a zip, the member that has the feature gets the column. REQUIRES: not
  // joined.
  absl::StatusOr<NotedColumns> NoteColumns(const std::vector<std::string>& features,
                                           const NoteColumnsOptions& options = {}) const;
  // Keeps the columns of features that no record has (DatasetColumns::Keep()). REQUIRES: not joined
  // or zipped.
  void KeepColumns(const NotedColumns& noted) const { columns_->Keep(shards_, noted); }
  // The records that meet the condition: bit i % 64 of word i / 64 is set if record i meets it.
  // `bytes` and `found` are those of DatasetColumns::RecordsThatMeet(). If the dataset is joined,
  // `found` gets the features that at least one record of any member has. Returns the errors of
  // DatasetColumns::RecordsThatMeet(), with the name of the dataset.
  absl::StatusOr<std::vector<uint64_t>> RecordsThatMeet(const Condition& condition, int64_t bytes,
                                                        std::set<std::string>& found) const;
  // A number that no other dataset of this process has or had.
  uint64_t number() const { return number_; }

  // The name of a record in the first shard's format, such as "tf.train.Example".
  absl::string_view example_name() const { return shards_.front()->examples().name(); }
  // The features of the first record that can be described (DatasetSample). Empty: none of the
  // first 16 records can be.
  const std::vector<FeatureDescription>& features() const { return sample_.features(); }
  const DatasetSample& sample() const { return sample_; }

  // The bytes of the smallest and of the largest record's payload (see RecordSource).
  int64_t min_payload_bytes() const { return min_payload_bytes_; }
  int64_t max_payload_bytes() const { return max_payload_bytes_; }

  // The damage that NoteDamage() has noted.
  DamageLog& damage() const { return damage_; }
  // Notes that a feed masked `record`. The damage is also noted in the record's member (in a zip:
  // member `part`), under the record's number in this member.
  void NoteDamage(int64_t record, std::string cause, DamageCause kind,
                  std::optional<size_t> part) const;

 private:
  Dataset(std::string name, std::vector<std::shared_ptr<const RecordSource>> shards, ShardMap map);
  // Like Create(), but without the sample and the sizes of payloads.
  static absl::StatusOr<std::shared_ptr<Dataset>> Of(
      std::string name, std::vector<std::shared_ptr<const RecordSource>> shards);
  // Where(), NoteColumns() and RecordsThatMeet() of a zip.
  std::string WhereInZip(int64_t record, std::optional<size_t> part) const;
  absl::StatusOr<NotedColumns> NoteColumnsOfZip(const std::vector<std::string>& features,
                                                const NoteColumnsOptions& options) const;
  absl::StatusOr<std::vector<uint64_t>> RecordsOfZip(const Condition& condition, int64_t bytes,
                                                     std::set<std::string>& found) const;

  const std::string name_;
  const std::vector<std::shared_ptr<const RecordSource>> shards_;
  const ShardMap map_;
  std::vector<int64_t> records_per_shard_;               // Set by Of().
  int64_t mean_record_bytes_ = 1;                        // Set by Of().
  uint64_t far_bytes_ = 0;                               // Set by Of().
  uint64_t fingerprint_ = 0;                             // Set by Of().
  int64_t num_damaged_records_ = 0;                      // Set by Of().
  int64_t min_payload_bytes_ = 0;                        // Set by Create(), Join() and Zip().
  int64_t max_payload_bytes_ = 0;                        // Set by Create(), Join() and Zip().
  std::string note_;                                     // Set by Open().
  DatasetSample sample_;                                 // Set by Create(), Join() and Zip().
  std::vector<std::shared_ptr<const Dataset>> members_;  // Set by Join().
  std::vector<ZippedMember> zipped_;                     // Set by Zip().
  mutable DamageLog damage_;                             // Written by const methods.
  // Where shards keep their columns. Set by Open().
  std::unique_ptr<const DatasetColumns> columns_ = std::make_unique<DatasetColumns>("", false);
  const uint64_t number_;
};

}  // namespace systole

#endif  // SYSTOLE_CORE_DATASET_DATASET_H_
