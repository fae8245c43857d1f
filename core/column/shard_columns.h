// Makes the columns of a shard, keeps them in files beside the shard's index, and finds them there.
//
//   shard --one pass over its records--> MakeColumns() --> KeepColumn() --> <index>.<name>.column
//                                                      ReadShardColumn() <-'
//
// Thread-safe: no state. Several processes may read and write the same files at once, because each
// column has its own file, and each write replaces a whole file.
#ifndef SYSTOLE_CORE_COLUMN_SHARD_COLUMNS_H_
#define SYSTOLE_CORE_COLUMN_SHARD_COLUMNS_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "core/column/column.h"
#include "core/record/source/record_source.h"

namespace systole {

// The path of the column's file, beside the shard's index (IndexPath()), such as
// "a.tfrecord.idx.label-0123456789abcdef.column". The file's name has the beginning of the
// feature's name for people, and a hash of the whole name, because a feature's name may have any
// bytes.
std::string ColumnPath(absl::string_view index_path, absl::string_view feature);

// Columns of a shard that are kept only in memory, by feature.
using ColumnsInMemory = std::map<std::string, std::shared_ptr<const Column>, std::less<>>;

struct MakeColumnsOptions {
  // Folder of index files. Empty: beside the shard.
  std::string index_dir = {};
  // Whether to make all columns anew, even columns that exist already.
  bool rebuild = false;
  ColumnsInMemory in_memory = {};
};

struct ColumnCounts {
  int64_t present = 0;  // Records that have the feature.
  int64_t damaged = 0;  // Records that are damaged, or are not examples.
};

struct MadeColumns {
  // The columns that this call made, in the order of `features`. Lacks the features that had a
  // column already, if `rebuild` is false.
  std::vector<Column> columns;
  // The counts of all features, in the order of `features`.
  std::vector<ColumnCounts> counts;
  // Why the file of a column was not used, as a note for a person. Not an error. Empty: no note.
  std::string note;
};

// Returns the names of features, sorted. InvalidArgument if there are more than kMaxColumns names,
// if a name occurs twice, or if a name does not have 1 to kMaxColumnNameBytes bytes.
absl::StatusOr<std::vector<std::string>> CheckColumnNames(std::vector<std::string> features);

// Makes the columns of `features` that are neither in a file nor in memory. Does not write them to
// files; KeepColumn() does. Reads each record once, in order, in reads of up to kMostFarReadBytes.
// A record that is damaged, or is not an example, counts as damaged in each column.
// Takes memory for one read, 12 bytes for each record and each column that is made, and 24 bytes
// for each record while a column is read from a file. REQUIRES: `features` passed
// CheckColumnNames().
//   FailedPrecondition  the shard changed meanwhile.
//   Cancelled           InterruptRequested().
// Also the errors of reading the shard, and of reading a column's file if the next try may succeed
// (Unavailable, DeadlineExceeded, Cancelled). After any other error of reading a column's file, the
// column is made anew.
absl::StatusOr<MadeColumns> MakeColumns(const RecordSource& shard,
                                        const std::vector<std::string>& features,
                                        const MakeColumnsOptions& options);

// Writes the file of a column of `shard`, and replaces an earlier file. `write_index` is that of
// ShardOptions. Takes up to 12 bytes of memory for each record. REQUIRES: the shard has an
// indexed_path().
//   FailedPrecondition  the file may not be written at its path (CheckMayKeep()).
// Also the errors of writing.
absl::Status KeepColumn(const RecordSource& shard, const Column& column,
                        absl::string_view index_dir, bool write_index);

// The column of `feature`, from memory or from its file.
//   NotFound            the column is not in memory and has no file.
//   FailedPrecondition  the column's file is for another content of the shard.
//   InvalidArgument     the column's file is damaged.
//   PermissionDenied    the column's file cannot be opened.
// The messages of the first three errors name no folder. Also the errors of reading.
absl::StatusOr<Column> ReadShardColumn(const RecordSource& shard, absl::string_view index_dir,
                                       const ColumnsInMemory& in_memory,
                                       const std::string& feature);

}  // namespace systole

#endif  // SYSTOLE_CORE_COLUMN_SHARD_COLUMNS_H_
