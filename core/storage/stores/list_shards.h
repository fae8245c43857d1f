// From patterns to shard files, in whatever store they lie.
//
// Thread-safe: no state.
#ifndef SYSTOLE_CORE_STORAGE_STORES_LIST_SHARDS_H_
#define SYSTOLE_CORE_STORAGE_STORES_LIST_SHARDS_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"

namespace systole {

// The file beside shards that names the class of label 0, 1, .., one on each line.
inline constexpr char kLabelsFileName[] = "labels.txt";
// How the name of a manifest ends, a file that says which shards lie beside it: see
// core/dataset/manifest.h.
inline constexpr char kManifestSuffix[] = ".manifest";

// The files that `patterns` (see Store::List) name, each once. Sorted by name, and by path where
// names are the same; by bytes, not by locale, because the order of shards numbers their records.
// Left out are hidden files and those that lie beside shards: index files (`*.idx`, `*.idx.hash`,
// `*.idx.restart`), names that end in kLabelsFileName or kManifestSuffix, and `*.json`.
//   NotFound           a pattern names nothing, or only files that are left out.
//   InvalidArgument    no pattern, a pattern of an unknown store, or one that matches a folder
//                      or anything else that is no file.
//   PermissionDenied   a folder on the way cannot be read.
absl::StatusOr<std::vector<std::string>> ListShards(absl::Span<const std::string> patterns);

// Whether ListShards() would take the file `path` for `pattern` if it were there: for a file that
// is missing. Its folder must be written as ListShards() returns it.
bool PatternTakes(const std::string& pattern, const std::string& path);

}  // namespace systole

#endif  // SYSTOLE_CORE_STORAGE_STORES_LIST_SHARDS_H_
