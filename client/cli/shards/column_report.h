// Which columns the shards of a set have. `systole inspect` prints this.
//
// Thread-safe: no state.
#ifndef SYSTOLE_CLIENT_CLI_SHARDS_COLUMN_REPORT_H_
#define SYSTOLE_CLIENT_CLI_SHARDS_COLUMN_REPORT_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "client/cli/shards/shard_inspector.h"
#include "core/column/column.h"
#include "core/json/json_writer.h"

namespace systole {

// The columns of one feature, over all shards.
struct ColumnSummary {
  std::string feature;
  int64_t shards = 0;   // Shards that have the column.
  int64_t records = 0;  // Records of these shards that have the feature.
  int64_t damaged = 0;  // Records of these shards that were damaged or were not examples.
  // Which kinds of values occur in the column.
  bool bytes = false;
  bool floats = false;
  bool int64s = false;
  bool lists = false;  // Lists of two values or more.
};

struct ColumnReport {
  std::vector<ColumnSummary> columns;  // By feature.
  // Column files that cannot be used, and why: "a.tfrecord: file of a column is damaged: ..".
  std::vector<std::string> unusable;
};

// Lists the folders of the index files of `shards`, and reads the columns there, one at a time.
// Takes 24 bytes of memory for each record of the largest shard. A folder that is missing or may
// not be listed has no columns. Any other error of listing a folder is returned.
absl::StatusOr<ColumnReport> ReportColumns(absl::Span<const ShardSummary> shards,
                                           absl::string_view index_dir);

// A line for each column. Empty if there are no columns.
std::string ColumnsAsText(const ColumnReport& report, size_t num_shards);
// Adds the fields "columns" and "unusable_columns" to the JSON object that is open.
void AppendColumns(const ColumnReport& report, JsonWriter& json);

}  // namespace systole

#endif  // SYSTOLE_CLIENT_CLI_SHARDS_COLUMN_REPORT_H_
