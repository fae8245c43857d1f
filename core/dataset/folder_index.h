// The text of shards.manifest.idx, the index of a folder of shards. For each shard the index has
// the facts that a dataset needs before it reads a record (ShardFacts), and the state of the file
// for which these facts are true. The first line is:
//   systole-shards-1 <shards> <XXH3-64 of all that follows, 16 hex>\n
// Then follows a line for each shard, sorted by the bytes of the shards' names:
//   <bytes> <records> <least payload> <most payload> <content hash, 16 hex> <sizes of the three
//   texts> <texts>\n
// The three texts follow each other without a separator. They are the format's name, the identity
// of the file (StoredState), and the base name of the file.
//
// The name of the index file ends with ".idx" like the names of other indexes, so the file does not
// count as a shard. No shard's own index has this name, because a file "shards.manifest" is a
// manifest and not a shard (kManifestSuffix).
//
// Thread-safe: no state.
#ifndef SYSTOLE_CORE_DATASET_FOLDER_INDEX_H_
#define SYSTOLE_CORE_DATASET_FOLDER_INDEX_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "core/record/source/shard_facts.h"

namespace systole {

// The most shards of a folder. A bucket's list may have as many names.
inline constexpr size_t kMaxFolderShards = 1'000'000;
// The most bytes of a line, without the shard's name.
inline constexpr size_t kMaxFolderLineBytes = 512;
// The most bytes of a shard's base name.
inline constexpr size_t kMaxShardNameBytes = 1024;

struct FolderIndexLine {
  std::string name;  // Base name.
  ShardFacts facts;

  friend bool operator==(const FolderIndexLine&, const FolderIndexLine&) = default;
};

// The path of the index of `folder`, which ends with '/'. If `index_dir` is not empty, the index is
// in that folder, like other indexes (IndexPath()).
std::string FolderIndexPath(absl::string_view folder, absl::string_view index_dir);

// Whether an index of a folder can have this line.
bool FitsFolderIndex(const FolderIndexLine& line);

// The text with these lines. REQUIRES: at most kMaxFolderShards lines, sorted by name, each name
// once, and FitsFolderIndex() is true for each line.
std::string FolderIndexText(absl::Span<const FolderIndexLine> lines);

// The lines of a text. InvalidArgument if `text` is malformed. The message says what is wrong.
absl::StatusOr<std::vector<FolderIndexLine>> ParseFolderIndex(absl::string_view text);

}  // namespace systole

#endif  // SYSTOLE_CORE_DATASET_FOLDER_INDEX_H_
