// The paths of index files.
//
// Thread-safe: no state.
#ifndef SYSTOLE_CORE_RECORD_SOURCE_INDEX_PATH_H_
#define SYSTOLE_CORE_RECORD_SOURCE_INDEX_PATH_H_

#include <string>

#include "absl/strings/string_view.h"

namespace systole {

// `name` with `ending` after its base name. In a web address with a query, `ending` comes before
// the query. If `ending` came after the query, a server that ignores the query would send the shard
// in place of its index.
std::string WithEnding(absl::string_view name, absl::string_view ending);

// The path of the index of `shard_path`. If `index_dir` is empty: `<shard>.idx`. Otherwise:
// `<index_dir>/<base name>-<XXH3-64 of Store::FullName(), 16 hex digits>.idx`, because one index
// folder may serve shards of many folders.
std::string IndexPath(const std::string& shard_path, absl::string_view index_dir);

// The path of a compressed shard's restart points, beside its index.
std::string RestartPath(absl::string_view index_path);

}  // namespace systole

#endif  // SYSTOLE_CORE_RECORD_SOURCE_INDEX_PATH_H_
