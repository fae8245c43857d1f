// The columns of a dataset's shards. Makes and keeps columns, which is called "noting" them. Finds
// in columns which records meet a condition.
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
  // Whether to make columns anew that exist already.
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
  // Features that no record of the dataset has. Probably their names are misspelt. So no condition
  // can use their columns until DatasetColumns::Keep() has kept these columns.
  std::vector<std::string> absent;
  struct AbsentColumn {
    size_t shard = 0;
    std::shared_ptr<const Column> column;
  };
  std::vector<AbsentColumn> absent_columns;  // Of all shards, for the features in `absent`.
  // Records that are damaged, or no examples. No condition selects them.
  int64_t damaged = 0;
  // Whether all columns are in files, except those of `absent`. If not, `note` says why.
  bool kept = true;
  // A note for a person, which says why columns are not kept, and what damage was met. A note is
  // not an error. Empty: there is no note.
  std::string note;
};

// How many shards DatasetColumns::RecordsThatMeet() tests at a time, if the largest shard has
// `most_records` records: as many as fit into `bytes`, but at least one. A shard takes
// kTestedRecordBytes for each record: 36 for a column while the column is read, and 8 for the bits
// of 64 tests. So the memory depends neither on the number of shards nor on the number of features.
// Up to kShardsOpenedAtOnce threads test far shards, because these threads mostly wait. Only
// kNearShardsTestedAtOnce threads test shards on this machine, because these threads take
// processors from the feeds.
inline constexpr int kNearShardsTestedAtOnce = 4;
inline constexpr int64_t kTestedRecordBytes = 44;
int ShardsTestedAtOnce(int64_t most_records, bool are_far, int64_t bytes);
// The bytes of a look-up that shares no memory with others: the first share of LookUpMemory.
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
  // Takes up to 256 MiB of memory for columns, or the memory for the columns of one shard, if they
  // take more. The columns of a shard take 12 bytes for each record and column, and 24 more bytes
  // for each record. Besides these 256 MiB, each shard that is read takes up to kMostFarReadBytes.
  // Columns that wait until all shards are done do not count in the 256 MiB, either. A waiting
  // column takes a few bytes, or 4 bytes for each record if its shard has damaged records.
  //
  //   InvalidArgument  the errors of CheckColumnNames().
  // Also the errors of MakeColumns().
  absl::StatusOr<NotedColumns> Note(Shards shards, std::vector<std::string> features,
                                    const NoteColumnsOptions& options = {}) const
      ABSL_LOCKS_EXCLUDED(mu_);

  // Keeps the columns of features that no record has, in the way in which Note() keeps other
  // columns. `noted` is what Note() returned for these shards.
  void Keep(Shards shards, const NotedColumns& noted) const ABSL_LOCKS_EXCLUDED(mu_);

  // For each shard, which of its records meet the condition (RecordsThatMeet()). Reads no record,
  // only the files of columns, ShardsTestedAtOnce() shards at a time. Takes `bytes` bytes of memory
  // for columns, or the memory for one shard, if one shard takes more. Adds to `found` those
  // features of the condition that at least one record has.
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
