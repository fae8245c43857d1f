// From patterns to shard files.
//
// Thread-safe: no state.
#ifndef SYSTOLE_CORE_STORAGE_LIST_SHARDS_H_
#define SYSTOLE_CORE_STORAGE_LIST_SHARDS_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"

namespace systole {

// The file beside shards that names the class of label 0, 1, .., one a line.
inline constexpr char kLabelsFileName[] = "labels.txt";

// The files that `patterns` (paths, or POSIX globs with *, ? and [..]) name, sorted by bytes (not
// by locale: the order of shards numbers their records), each once. A path that exists is taken as
// it stands, glob characters or not. What lies beside shards is left out: index files (`*.idx`,
// `*.idx.hash`) and kLabelsFileName.
//   NotFound           a pattern names nothing, or nothing but these.
//   InvalidArgument    no pattern, or one that names a folder or anything else that is no file.
//   PermissionDenied   a folder on the way cannot be read.
absl::StatusOr<std::vector<std::string>> ListShards(absl::Span<const std::string> patterns);

}  // namespace systole

#endif  // SYSTOLE_CORE_STORAGE_LIST_SHARDS_H_
