// The columns of a dataset's shards: notes them, and answers conditions from them.
//
// Thread-safe.
#ifndef SYSTOLE_CORE_DATASET_DATASET_COLUMNS_H_
#define SYSTOLE_CORE_DATASET_DATASET_COLUMNS_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "core/column/condition.h"
#include "core/concurrency/mutex.h"
#include "core/record/source/record_source.h"
#include "core/storage/byte_source.h"

namespace systole {

class DatasetColumns {
 public:
  using Shards = absl::Span<const std::shared_ptr<const RecordSource>>;

  // `index_dir` and `write_index` as in ShardOptions.
  DatasetColumns(std::string index_dir, bool write_index)
      : index_dir_(std::move(index_dir)), write_index_(write_index) {}

  // Makes those columns of `features` that the shards do not have (NoteColumns()), up to
  // kShardsOpenedAtOnce shards at a time. Columns that cannot be kept in a file are kept in memory.
  // Returns a note for a person, or "": why columns are not kept, and what damage was met.
  //   InvalidArgument  the errors of CheckColumnNames().
  // Also the errors of NoteColumns().
  absl::StatusOr<std::string> Note(Shards shards, std::vector<std::string> features) const
      ABSL_LOCKS_EXCLUDED(mu_);

  // For each shard, which of its records meet the condition (RecordsThatMeet()). Reads the files of
  // columns, up to kShardsOpenedAtOnce at a time, and no record.
  //   FailedPrecondition  a shard has no column of a feature. The message has the command that notes
  //                       it.
  //   InvalidArgument     the errors of CheckComparable().
  // Also the errors of reading files of columns.
  absl::StatusOr<std::vector<std::vector<uint64_t>>> RecordsThatMeet(
      Shards shards, const Condition& condition) const ABSL_LOCKS_EXCLUDED(mu_);

 private:
  std::shared_ptr<const ByteSource> UnkeptOf(const RecordSource* shard) const
      ABSL_LOCKS_EXCLUDED(mu_);

  const std::string index_dir_;
  const bool write_index_;
  mutable Mutex mu_;
  // Files of columns that could not be kept.
  mutable std::map<const RecordSource*, std::shared_ptr<const ByteSource>> unkept_
      ABSL_GUARDED_BY(mu_);
};

}  // namespace systole

#endif  // SYSTOLE_CORE_DATASET_DATASET_COLUMNS_H_
