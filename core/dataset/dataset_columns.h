// The columns of a dataset's shards. A column has one feature of all records of a shard: the
// lengths of its lists, and perhaps its values (core/column). To "note" a column means to make it
// and keep it. Also finds in columns which records meet a condition.
//
// Thread-safe.
#ifndef SYSTOLE_CORE_DATASET_DATASET_COLUMNS_H_
#define SYSTOLE_CORE_DATASET_DATASET_COLUMNS_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "core/column/condition.h"
#include "core/column/shard_columns.h"
#include "core/concurrency/mutex.h"
#include "core/record/each_shard.h"
#include "core/record/source/record_source.h"

namespace systole {

struct NoteColumnsOptions {
  // Whether to make existing columns anew.
  bool rebuild = false;
  // The most shards that are read at a time.
  int at_once = kShardsOpenedAtOnce;
  // Called when a shard is done, from any thread. May be null.
  std::function<void()> shard_done = {};
};

struct NotedColumns {
  struct Feature {
    std::string name;
    int64_t records = 0;  // Records that have the feature.
  };
  std::vector<Feature> features;  // Sorted by name.
  // Features that no record of the dataset has. Because their names are probably misspelt, Note()
  // does not keep their columns. A condition can use these columns only after
  // DatasetColumns::Keep().
  std::vector<std::string> absent;
  struct AbsentColumn {
    size_t shard = 0;
    std::shared_ptr<const Column> column;
  };
  std::vector<AbsentColumn> absent_columns;  // Of all shards, for the features in `absent`.
  // The number of records that are damaged or are not examples. No condition selects such records.
  int64_t damaged = 0;
  // Whether all columns are in files, except those of `absent`. If not, `note` says why.
  bool kept = true;
  // A note for a person: why columns are not kept, and what damage was met. Empty: there is no
  // note.
  std::string note;
};

// How many shards DatasetColumns::RecordsThatMeet() tests at a time: as many as fit into `bytes`,
// but at least one. `most_records` is the number of records of the largest shard. A shard takes
// kTestedRecordBytes bytes for each record: 36 for a column while it is read, and 8 for the results
// of 64 tests, a bit each. If `are_far`, the result is at most kShardsOpenedAtOnce, because threads
// that test far shards mostly wait. If not, the result is at most kNearShardsTestedAtOnce, because
// threads that test shards on this machine take processors from the feeds.
inline constexpr int kNearShardsTestedAtOnce = 4;
inline constexpr int64_t kTestedRecordBytes = 44;
int ShardsTestedAtOnce(int64_t most_records, bool are_far, int64_t bytes);
// The `bytes` of RecordsThatMeet() for a caller that has no LookUpMemory. The first share of a
// LookUpMemory is as large.
inline constexpr int64_t kLookUpBytes = int64_t{64} << 20;

class DatasetColumns {
 public:
  using Shards = absl::Span<const std::shared_ptr<const RecordSource>>;

  // `index_dir` and `write_index` as in ShardOptions.
  DatasetColumns(std::string index_dir, bool write_index)
      : index_dir_(std::move(index_dir)), write_index_(write_index) {}

  // Makes those columns of `features` that the shards do not have (MakeColumns()), several shards
  // at a time, and keeps them in files. Columns that cannot be kept in files are kept in memory. If
  // no record of a shard has a feature, the shard's column of this feature waits until all shards
  // are done. Then the column is kept if another shard has the feature. Columns of
  // NotedColumns::absent are not kept.
  //
  // The columns that are being made take up to 256 MiB of memory, or as much as the columns of one
  // shard if these take more. The columns of a shard take 12 bytes for each record and column, and
  // 24 more bytes for each record. Two kinds of memory are not part of the 256 MiB. Each shard that
  // is read takes up to kMostFarReadBytes. A column that waits until all shards are done takes a
  // few bytes, or 4 bytes for each record if its shard has damaged records.
  //
  //   InvalidArgument  the errors of CheckColumnNames().
  // Also the errors of MakeColumns().
  absl::StatusOr<NotedColumns> Note(Shards shards, std::vector<std::string> features,
                                    const NoteColumnsOptions& options = {}) const
      ABSL_LOCKS_EXCLUDED(mu_);

  // Keeps the columns of features that no record has, as Note() keeps other columns. `noted` is the
  // result of Note() for these shards.
  void Keep(Shards shards, const NotedColumns& noted) const ABSL_LOCKS_EXCLUDED(mu_);

  // For each shard, which of its records meet the condition, as bits (RecordsThatMeet() in
  // core/column). Reads only the files of columns, and no record. Tests ShardsTestedAtOnce() shards
  // at a time. The columns take up to `bytes` bytes of memory, or as much as those of one shard if
  // these take more. Adds to `found` those features of the condition that at least one record has.
  //   FailedPrecondition  a shard has no column of a feature. The message has the command that
  //                       makes the column.
  //   InvalidArgument     the errors of CheckComparable().
  // Also the errors of reading files of columns.
  absl::StatusOr<std::vector<std::vector<uint64_t>>> RecordsThatMeet(
      Shards shards, const Condition& condition, int64_t bytes, std::set<std::string>& found) const
      ABSL_LOCKS_EXCLUDED(mu_);

  // How many shards Note() reads at a time if it makes columns of `features` features: as many as
  // its memory bound allows, but at most kShardsOpenedAtOnce.
  static int ShardsAtOnce(Shards shards, size_t features);

 private:
  ColumnsInMemory InMemory(const RecordSource* shard) const ABSL_LOCKS_EXCLUDED(mu_);
  void Hold(const RecordSource* shard, std::shared_ptr<const Column> column) const
      ABSL_LOCKS_EXCLUDED(mu_);
  // Writes a column into its file. If that fails, the column stays in memory.
  absl::Status KeepOrHold(const RecordSource& shard, std::shared_ptr<const Column> column) const
      ABSL_LOCKS_EXCLUDED(mu_);

  const std::string index_dir_;
  const bool write_index_;
  mutable Mutex mu_;
  mutable std::map<const RecordSource*, ColumnsInMemory> in_memory_ ABSL_GUARDED_BY(mu_);
};

}  // namespace systole

#endif  // SYSTOLE_CORE_DATASET_DATASET_COLUMNS_H_
