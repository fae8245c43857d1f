// Finds the shard files that patterns match, in any store.
//
// Thread-safe: no state.
#ifndef SYSTOLE_CORE_STORAGE_STORES_LIST_SHARDS_H_
#define SYSTOLE_CORE_STORAGE_STORES_LIST_SHARDS_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "core/storage/store.h"

namespace systole {

// The file beside shards that names the class of label 0, 1, .., one on each line.
inline constexpr char kLabelsFileName[] = "labels.txt";
// The ending of a manifest's name. A manifest lists the shards in its folder
// (core/dataset/manifest.h).
inline constexpr char kManifestSuffix[] = ".manifest";
// The ending of the name of a shard's column (core/column/shard_columns.h).
inline constexpr char kColumnSuffix[] = ".column";

// The files that `patterns` (see Store::List) name, each once. Sorted by name, and by path if names
// are the same. They are sorted by bytes, not by locale, because the order of shards decides the
// numbers of their records. Hidden files are left out, and so are files that belong to shards:
// index files (`*.idx`, `*.idx.hash`, `*.idx.restart`), names that end in kColumnSuffix,
// kLabelsFileName or kManifestSuffix, and `*.json`.
//   NotFound           a pattern names nothing, or only files that are left out.
//   InvalidArgument    no pattern, a pattern of an unknown store, or a pattern that matches a
//                      folder or anything else that is not a file. The message says which pattern
//                      would match images in class folders.
//   PermissionDenied   a folder on the path cannot be read.
//   Cancelled          InterruptRequested().
absl::StatusOr<std::vector<std::string>> ListShards(absl::Span<const std::string> patterns);

struct ShardList {
  std::vector<ListedFile> shards;  // As ListShards() returns them.
  // The folders of shards that were listed as a whole, each once, sorted by name.
  std::vector<FolderList> folders;

  // The state of the shard `name` as the list showed it. Null: `name` is not one of `shards`, or
  // the list showed too little to tell its states apart. O(log shards).
  const StoredState* StateOf(absl::string_view name) const;
};

// ListShards(), with the states and folders that Store::ListStates() returns.
absl::StatusOr<ShardList> ListShardStates(absl::Span<const std::string> patterns);

// `path` is a file that does not exist. Whether ListShards() would return this path for `pattern`
// if the file existed. The folder in `path` must be written as ListShards() returns it.
bool PatternTakes(const std::string& pattern, const std::string& path);

}  // namespace systole

#endif  // SYSTOLE_CORE_STORAGE_STORES_LIST_SHARDS_H_
