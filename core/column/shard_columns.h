// Makes the columns of a shard, keeps them in files beside the shard's index, and finds them there.
//
//   shard --one pass over its records--> MakeColumns() --> KeepColumn() --> <index>.<name>.column
//                                                      ReadShardColumn() <-'
//
// Thread-safe: no state. Several processes may use the same files, because each column has its own
// file, and each write replaces a whole file.
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

// The path of the column of `feature`, beside the shard's index (IndexPath()). The file's name
// holds the beginning of the feature's name, which a person can read, and a hash of the whole name,
// because a feature's name may have any bytes: "a.tfrecord.idx.label-0123456789abcdef.column".
std::string ColumnPath(absl::string_view index_path, absl::string_view feature);

// Columns of a shard that are kept only in memory, by feature.
using ColumnsInMemory = std::map<std::string, std::shared_ptr<const Column>, std::less<>>;

struct MakeColumnsOptions {
  // Folder of index files. Empty: beside the shard.
  std::string index_dir = {};
  // Whether to make columns anew that exist already.
  bool rebuild = false;
  ColumnsInMemory in_memory = {};
};

struct ColumnCounts {
  int64_t present = 0;  // Records that have the feature.
  int64_t damaged = 0;  // Records that are damaged, or no examples.
};

struct MadeColumns {
  // The columns that were made, in the order of `features`. Unless all were made anew (`rebuild`),
  // a feature that had a column already is left out.
  std::vector<Column> columns;
  // For all features, in the order of `features`.
  std::vector<ColumnCounts> counts;
  // For a person: why a file was not used. Not an error. Empty: there is no note.
  std::string note;
};

// Checks names of features: at most kMaxColumns, each once, of 1 to kMaxColumnNameBytes bytes.
// InvalidArgument otherwise. Returns them sorted.
absl::StatusOr<std::vector<std::string>> CheckColumnNames(std::vector<std::string> features);

// Makes the columns of `features` that are neither in a file nor in memory. Does not keep them (see
// KeepColumn()). REQUIRES: `features` passed CheckColumnNames(). Reads each record once, in order,
// in reads of up to kMostFarReadBytes. A record that is damaged, or is no example, is marked in
// each column. Takes memory for one read. In addition takes 12 bytes for each record and each
// column that is made, and 24 bytes for each record while a column is read from a file.
//   FailedPrecondition  the shard changed meanwhile.
//   Cancelled           InterruptRequested().
// Also the errors of reading the shard, and errors of reading a file that may be gone at the next
// try. A file that is damaged, or of another content, counts as missing.
absl::StatusOr<MadeColumns> MakeColumns(const RecordSource& shard,
                                        const std::vector<std::string>& features,
                                        const MakeColumnsOptions& options);

// Writes the file of a column of `shard`, and replaces an earlier one. `write_index` as in
// ShardOptions. Takes up to 12 bytes of memory for each record. REQUIRES: the shard has an
// indexed_path().
//   FailedPrecondition  the file may not be written there (CheckMayKeep()).
// Also the errors of writing.
absl::Status KeepColumn(const RecordSource& shard, const Column& column,
                        absl::string_view index_dir, bool write_index);

// The column of `feature`, from memory or from its file.
//   NotFound            it is in neither.
//   FailedPrecondition  its file is for another content of the shard.
//   InvalidArgument     its file is damaged.
//   PermissionDenied    its file cannot be opened.
// The messages of the first three errors name no folder. Also the errors of reading.
absl::StatusOr<Column> ReadShardColumn(const RecordSource& shard, absl::string_view index_dir,
                                       const ColumnsInMemory& in_memory,
                                       const std::string& feature);

}  // namespace systole

#endif  // SYSTOLE_CORE_COLUMN_SHARD_COLUMNS_H_
