// Finds the listed shards that need not be opened at a start. The index of their folder
// (folder_index.h) has the facts of each of these shards, and the list of the folder shows that the
// shard's file is still in the same state.
//
//   ListShardStates() --> KnownShards::Read --> Find(file) --> DeferShard()
//                                         \--> Keep(shards that were opened), for the next start
//
// Only folders that were listed as a whole have an index of this kind. These are folders of
// buckets. In other stores, getting the state of a file costs as much as opening the file, so an
// index would not make a start faster.
#ifndef SYSTOLE_CORE_DATASET_KNOWN_SHARDS_H_
#define SYSTOLE_CORE_DATASET_KNOWN_SHARDS_H_

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "core/dataset/folder_index.h"
#include "core/record/source/record_source.h"
#include "core/record/source/shard_facts.h"
#include "core/storage/stores/list_shards.h"

namespace systole {

// A folder with fewer shards in the list gets no index, because a start opens all of these shards
// at the same time (kShardsOpenedAtOnce).
inline constexpr size_t kLeastKnownShards = 16;

// The facts of a shard that was opened.
struct KnownShard {
  std::string path;  // As ListShards() gave it.
  ShardFacts facts;
};

// The facts of `shard`. Nullopt if its facts may not be kept.
std::optional<KnownShard> KnownShardOf(const RecordSource& shard);

// Thread-compatible.
class KnownShards {
 public:
  // Reads the indexes of the list's folders. The indexes lie in these folders or in `index_dir`.
  // note() says which index cannot be read. `list` must outlive this object.
  static KnownShards Read(const ShardList& list, const std::string& index_dir);

  // The facts of a file of the list. Null: the facts are not known, or belong to another state of
  // the file. Valid as long as this object.
  const ShardFacts* Find(const ListedFile& file) const;

  // Writes a folder's index anew if the index's lines change, and if at least kLeastKnownShards of
  // `shards` are in the folder. `shards` are those shards of the list whose facts may be kept, in
  // any order. A line of another shard stays if the shard's file is still there, because another
  // glob over the same folder may match this shard. Returns the first error of writing an index or
  // of CheckMayKeep(). The error names the index. After an error, the indexes of the other folders
  // are still written.
  absl::Status Keep(absl::Span<const KnownShard> shards, bool write_index) const;

  // A note for a person: why an index was not used. Empty: there is no note.
  const std::string& note() const { return note_; }

 private:
  struct Folder {
    const FolderList* list = nullptr;
    std::string path;                    // The path of the index.
    std::vector<FolderIndexLine> lines;  // Sorted by name.
  };

  // Null if the folder was not listed as a whole.
  const Folder* FolderOf(const std::string& path) const;
  absl::Status KeepIn(const Folder& folder, std::vector<FolderIndexLine> lines,
                      bool write_index) const;

  std::vector<Folder> folders_;  // Sorted by FolderList::folder.
  std::string note_;
};

}  // namespace systole

#endif  // SYSTOLE_CORE_DATASET_KNOWN_SHARDS_H_
