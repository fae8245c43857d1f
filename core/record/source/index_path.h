// The paths of index files.
//
// Thread-safe: no state.
#ifndef SYSTOLE_CORE_RECORD_SOURCE_INDEX_PATH_H_
#define SYSTOLE_CORE_RECORD_SOURCE_INDEX_PATH_H_

#include <string>

#include "absl/strings/string_view.h"

namespace systole {

// `name` with `ending` after its base name: before the query, if it is an address of the web with a
// query. A server may ignore the query, and would then send the shard for its index.
std::string WithEnding(absl::string_view name, absl::string_view ending);

// The path of the index of `shard_path`: `<shard>.idx` or, in an index folder that serves shards of
// many folders, `<index_dir>/<base name>-<XXH3-64 of Store::FullName(), 16 hex digits>.idx`.
std::string IndexPath(const std::string& shard_path, absl::string_view index_dir);

// The path of a compressed shard's restart points, beside its index.
std::string RestartPath(absl::string_view index_path);

}  // namespace systole

#endif  // SYSTOLE_CORE_RECORD_SOURCE_INDEX_PATH_H_
