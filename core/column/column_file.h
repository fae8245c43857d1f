// The file of one column of a shard. It begins with two lines of text:
//   systole-column-1 <content hash of the shard, 16 hex> <records> <XXH3-64 of the second line, 16
//   hex>\n
//   <first bytes> <first float> <first int64> <first long> <length> <XXH3-64 of the numbers, 16
//   hex> <size of the name> <name of the feature>\n
// The first four are ColumnFacts, each plus 1. The fifth field is the length of every record's
// list, or `each` if the lengths differ. The numbers follow, least significant byte first. If the
// lengths differ, the lengths come first, 4 bytes each. Then come the values, 8 bytes each for
// int64s and 4 for floats.
//
// A column's file belongs to the content of the shard, not to the present state of the shard's
// file. So it holds for every copy of the shard, and for shards that are not open yet. An index
// says which content the shard's file has in its present state.
//
// Each column has a file of its own, so that processes that note different columns of a shard at
// once never replace each other's files. Processes that note the same column write the same bytes.
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

// The content of a shard, to which its columns belong.
struct ShardContent {
  uint64_t hash = 0;  // RecordSource::content_hash().
  int64_t num_records = 0;
};

// REQUIRES: a name of 1 to kMaxColumnNameBytes bytes. Takes memory for the file: at most 12 bytes
// for each record, and the lines.
std::string ColumnFileText(uint64_t content_hash, const Column& column);

// Reads the column of `feature` from such a file. If `feature` is empty, reads the column of
// whichever feature the file has.
//   FailedPrecondition  the column belongs to another content.
//   InvalidArgument     the file is malformed or damaged, or has another feature. The message says
//                       what is wrong.
// Also the errors of reading. Takes memory only for bytes that have been read, and no more than 24
// bytes for each record.
absl::StatusOr<Column> ReadColumnFile(const ByteSource& file, const ShardContent& content,
                                      absl::string_view feature);

}  // namespace systole

#endif  // SYSTOLE_CORE_COLUMN_COLUMN_FILE_H_
