// The file of a shard's columns. It begins with text:
//   systole-columns-1 <content hash of the shard, 16 hex> <records> <columns> <XXH3-64 of the
//   lines that follow, 16 hex>\n
// and for each column, sorted by feature by bytes, a line
//   <first bytes> <first float> <first int64> <first long> <length> <XXH3-64 of its numbers, 16
//   hex> <size of the name> <name>\n
// The first four are ColumnFacts, each plus 1. The length is that of every record's list, or `each`
// if they differ. Then the numbers of each column follow: if they differ, the lengths, 4 bytes
// each; then the values, 8 bytes each for int64s and 4 for floats, least significant byte first.
//
// The file is tied to the content of the shard, not to the state of a file. So it holds for every
// copy of the shard, and for shards that are not open yet. An index tells from the state of a file
// which content the file has.
//
// Thread-safe: no state.
#ifndef SYSTOLE_CORE_COLUMN_COLUMN_FILE_H_
#define SYSTOLE_CORE_COLUMN_COLUMN_FILE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "core/column/column.h"
#include "core/storage/byte_source.h"

namespace systole {

// The content of a shard, to which its columns belong.
struct ShardContent {
  uint64_t hash = 0;  // RecordSource::content_hash().
  int64_t num_records = 0;
};

// REQUIRES: at most kMaxColumns columns of content.num_records records, sorted by feature, each
// once; names of 1 to kMaxColumnNameBytes bytes.
std::string ColumnFileText(const ShardContent& content, absl::Span<const Column> columns);

// Reads the columns of `features` from such a file, in this order; a feature that the file does not
// have is left out. Reads the numbers of no other column. Null: all columns.
//   FailedPrecondition  the columns are those of another content.
//   InvalidArgument     the file is malformed or damaged. The message says what is wrong.
// Also the errors of reading. Takes memory only for bytes that have come, and no more than 12 bytes
// for each record and feature.
absl::StatusOr<std::vector<Column>> ReadColumnFile(const ByteSource& file,
                                                   const ShardContent& content,
                                                   const std::vector<std::string>* features);

}  // namespace systole

#endif  // SYSTOLE_CORE_COLUMN_COLUMN_FILE_H_
