// Shards that differ from the manifest beside them, as `inspect` and `verify` show them.
//
// Thread-safe: no state.
#ifndef SYSTOLE_CLIENT_CLI_SHARDS_SHARD_DIFFERENCES_H_
#define SYSTOLE_CLIENT_CLI_SHARDS_SHARD_DIFFERENCES_H_

#include <cstddef>
#include <ostream>
#include <string>

#include "absl/types/span.h"
#include "core/dataset/manifest.h"
#include "core/json/json_writer.h"

namespace systole {

// Prints a line for each difference.
void PrintShardDifferences(absl::Span<const ShardDifference> differences, std::ostream& out);

// Adds the field `differences`, a list, to the JSON object that is open.
void AppendShardDifferences(absl::Span<const ShardDifference> differences, JsonWriter& json);

// "2 shards are not what the manifest beside them says". REQUIRES: number > 0.
std::string ShardDifferencesText(size_t number);

}  // namespace systole

#endif  // SYSTOLE_CLIENT_CLI_SHARDS_SHARD_DIFFERENCES_H_
