// Notes the columns of a shard, in a file beside the shard's index, and finds them there.
//
//   shard --one pass over all records--> columns --> <index>.columns --> ReadShardColumns()
//
// Thread-safe: no state. Several processes may use the same files: each write is a rename.
#ifndef SYSTOLE_CORE_COLUMN_SHARD_COLUMNS_H_
#define SYSTOLE_CORE_COLUMN_SHARD_COLUMNS_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "core/column/column.h"
#include "core/record/source/record_source.h"
#include "core/storage/byte_source.h"

namespace systole {

// The path of the columns of a shard, beside its index (IndexPath()).
std::string ColumnsPath(absl::string_view index_path);

struct NoteColumnsOptions {
  // Folder of index files. It must exist. Empty: beside the shard.
  std::string index_dir = {};
  // Whether to read the records even if the file has the columns.
  bool rebuild = false;
  // ShardOptions::write_index.
  bool write_index = false;
  // What an earlier call could not keep. Null: the file is read.
  std::shared_ptr<const ByteSource> unkept = nullptr;
};

struct NotedColumns {
  // By the order of `features`, numbers included.
  std::vector<Column> columns;
  // The whole file, if it was made and could not be kept. `note` says why.
  std::shared_ptr<const ByteSource> unkept;
  // For a person; not an error. Empty: there is none.
  std::string note;
};

// Checks names of features: at most kMaxColumns, each once, of 1 to kMaxColumnNameBytes bytes.
// InvalidArgument otherwise. Returns them sorted.
absl::StatusOr<std::vector<std::string>> CheckColumnNames(std::vector<std::string> features);

// Makes those columns of `features`, which passed CheckColumnNames(), that the shard's file does
// not have, and adds them to the file. Reads each record once, in order, in reads of up to
// kMostFarReadBytes. A record that is damaged, or no example, is marked in each column. Takes
// memory for one such read, and 24 bytes for each record and column of the file.
//   ResourceExhausted   the file would have more than kMaxColumns columns.
//   FailedPrecondition  the shard changed meanwhile.
//   Cancelled           InterruptRequested().
// Also the errors of reading the shard.
absl::StatusOr<NotedColumns> NoteColumns(const RecordSource& shard,
                                         const std::vector<std::string>& features,
                                         const NoteColumnsOptions& options);

// The columns of `features` from the shard's file, in this order. `unkept` is NotedColumns::unkept;
// null: the file is read.
//   NotFound  there is no file for this content of the shard, or it lacks a feature. The message
//             says why, without the file's folder.
// Also the errors of reading a file that is there.
absl::StatusOr<std::vector<Column>> ReadShardColumns(const RecordSource& shard,
                                                     absl::string_view index_dir,
                                                     const ByteSource* unkept,
                                                     const std::vector<std::string>& features);

}  // namespace systole

#endif  // SYSTOLE_CORE_COLUMN_SHARD_COLUMNS_H_
