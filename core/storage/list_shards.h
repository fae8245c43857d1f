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

// The file beside shards that names the class of label 0, 1, .., one on each line.
inline constexpr char kLabelsFileName[] = "labels.txt";

// The files that `patterns` (paths, or POSIX globs with *, ? and [..]) name, each once. Sorted by
// bytes, not by locale, because the order of shards numbers their records. An existing path is
// taken as it stands, even with glob characters. Files that lie beside shards are left out: index
// files (`*.idx`, `*.idx.hash`) and kLabelsFileName.
//   NotFound           a pattern names nothing, or only files that are left out.
//   InvalidArgument    no pattern, or one that names a folder or anything else that is no file.
//   PermissionDenied   a folder on the way cannot be read.
absl::StatusOr<std::vector<std::string>> ListShards(absl::Span<const std::string> patterns);

}  // namespace systole

#endif  // SYSTOLE_CORE_STORAGE_LIST_SHARDS_H_
