// The file of one column of a shard. It begins with two lines of text:
//   systole-column-1 <content hash of the shard, 16 hex> <records> <XXH3-64 of the second line, 16
//   hex>\n
//   <first bytes> <first float> <first int64> <first long> <length> <XXH3-64 of the numbers, 16
//   hex> <size of the name> <name of the feature>\n
// The first four fields of the second line are those of ColumnFacts, each plus 1. The fifth field
// is the length of every record's list, or `each` if the lengths differ. After the two lines come
// the numbers, least significant byte first: if the lengths differ, all lengths, 4 bytes each; then
// the values, if the column has any, 8 bytes each for int64s and 4 for floats.
//
// A column's file belongs to the content of the shard, not to one state (copy and time of change)
// of the shard's file. So the column is valid for every copy of the shard. The shard's index says
// which content the shard's file has now. So a column can be used before the shard is opened.
//
// Each column has its own file. So processes that write different columns of a shard at the same
// time never replace each other's files. Processes that write the same column write the same bytes.
//
// Thread-safe: no state.
#ifndef SYSTOLE_CORE_COLUMN_COLUMN_FILE_H_
#define SYSTOLE_CORE_COLUMN_COLUMN_FILE_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "core/column/column.h"
#include "core/storage/byte_source.h"

namespace systole {

// Identifies the content of a shard.
struct ShardContent {
  uint64_t hash = 0;  // RecordSource::content_hash().
  int64_t num_records = 0;
};

// The bytes of the column's file: the lines, and at most 12 bytes for each record. REQUIRES:
// column.feature has 1 to kMaxColumnNameBytes bytes.
std::string ColumnFileText(uint64_t content_hash, const Column& column);

// Reads the column of `feature` from its file. If `feature` is empty, any feature is accepted.
//   FailedPrecondition  the column belongs to another content of the shard.
//   InvalidArgument     the file is malformed or damaged, or has another feature. The message says
//                       what is wrong.
// Also the errors of reading. Takes at most 24 bytes of memory for each record. A file on a server
// may claim bytes that it does not have, so memory is taken only as bytes arrive.
absl::StatusOr<Column> ReadColumnFile(const ByteSource& file, const ShardContent& content,
                                      absl::string_view feature);

}  // namespace systole

#endif  // SYSTOLE_CORE_COLUMN_COLUMN_FILE_H_
