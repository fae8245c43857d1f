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

// The name of a file beside shards. Its lines are the names of the classes of labels 0, 1, ..
inline constexpr char kLabelsFileName[] = "labels.txt";
// The ending of a manifest's name. A manifest lists the shards in its folder
// (core/dataset/manifest.h).
inline constexpr char kManifestSuffix[] = ".manifest";
// The ending of the name of a file that holds a column of a shard (core/column/shard_columns.h).
inline constexpr char kColumnSuffix[] = ".column";

// The files that `patterns` (see Store::List) name, each once. Sorted by base name, and by path if
// base names are the same. The order of shards decides the numbers of their records, so names are
// compared by bytes, not by locale. Leaves out hidden files and files that belong to shards: index
// files (`*.idx`, `*.idx.hash`, `*.idx.restart`), files whose names end in kColumnSuffix,
// kLabelsFileName or kManifestSuffix, and `*.json`.
//   NotFound           a pattern names nothing, or only files that are left out.
//   InvalidArgument    no pattern, a pattern of an unknown store, or a pattern that matches a
//                      folder or anything else that is not a file. For a folder, the message also
//                      suggests a glob, in case each class has its own folder of images there.
//   PermissionDenied   a folder on the path cannot be read.
//   Cancelled          InterruptRequested().
absl::StatusOr<std::vector<std::string>> ListShards(absl::Span<const std::string> patterns);

struct ShardList {
  std::vector<ListedFile> shards;  // As ListShards() returns them.
  // To find the shards, a store may list a whole folder. These are those folders, each once, sorted
  // by name.
  std::vector<FolderList> folders;

  // The state of the shard `name` as the list showed it. Null: `name` is not one of `shards`, or
  // the list showed no identity for it. O(log shards).
  const StoredState* StateOf(absl::string_view name) const;
};

// Like ListShards(), but also returns the states and folders of Store::ListStates().
absl::StatusOr<ShardList> ListShardStates(absl::Span<const std::string> patterns);

// `path` is the path of a file that does not exist. Returns whether ListShards() would return this
// path for `pattern` if the file existed. The folder in `path` must be written as in the paths that
// ListShards() returns.
bool PatternTakes(const std::string& pattern, const std::string& path);

}  // namespace systole

#endif  // SYSTOLE_CORE_STORAGE_STORES_LIST_SHARDS_H_
