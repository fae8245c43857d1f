// Makes the index files of shards: the work of `systole index`.
//
// Thread-safe: no state.
#ifndef SYSTOLE_CLIENT_CLI_SHARDS_INDEXER_H_
#define SYSTOLE_CLIENT_CLI_SHARDS_INDEXER_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/cli/shards/shard_inspector.h"
#include "core/dataset/known_shards.h"
#include "core/storage/stores/list_shards.h"

namespace systole {

struct IndexerOptions {
  // Folder for index files. It must exist. Empty: beside each shard.
  std::string index_dir = {};
  // Whether index files that are valid are made again. The index of a group of images is always
  // made again.
  bool rebuild = false;
  // How many shards are read at a time. For a group of images, how many files are read at a time.
  // Each shard that is not on this machine takes up to 8 MiB of memory, and 8 bytes for each of its
  // records.
  int threads = 1;
  // Features for which the caller will write column files beside the indexes. IndexShards() writes
  // no column file, but removes unfinished column files of these features.
  std::vector<std::string> columns = {};
  // The list that the shards come from. It must outlive the call. IndexShards() takes the states
  // (size, identity) of shards and images from this list, as far as the list has them. It asks the
  // store for each other state, and for all states if the list is null.
  const ShardList* list = nullptr;
};

struct IndexedShard {
  std::string path;        // From ShownName(): without secrets.
  std::string index_path;  // From ShownName(): without secrets.
  int64_t records = 0;
  uint64_t bytes = 0;
  int64_t damaged = 0;
  std::vector<PlacedDamage> first_damaged;
  std::string note;  // See RecordSource.
  std::optional<KnownShard> known;
};

// Makes the index of each shard that has no valid one. `paths` come from ListShards(). The results
// are in the order of the shards, and do not depend on the number of threads. Calls `progress` from
// any thread, with the number of files that were done since the previous call of `progress`. Each
// index is written as soon as its shard has been read. So after an error or an interruption the
// finished indexes stay, and another IndexShards() makes only the rest. First removes the
// unfinished index files of killed processes.
//   PermissionDenied  an index file cannot be written.
//   Cancelled         InterruptRequested(). The message says how many shards have an index.
// Also the errors of GroupShards(), OpenShard() and RecordSource::CheckHoldsRecords(). After an
// error no further shard is begun. Returns the error of the first shard in `paths` that has one.
absl::StatusOr<std::vector<IndexedShard>> IndexShards(
    std::vector<std::string> paths, const IndexerOptions& options,
    absl::FunctionRef<void(int64_t files)> progress);

// Writes the index of each folder in `list` (KnownShards::Keep()). `shards` are the results of
// IndexShards() for that list.
absl::Status IndexFolders(const ShardList& list, const std::vector<IndexedShard>& shards,
                          const std::string& index_dir);

}  // namespace systole

#endif  // SYSTOLE_CLIENT_CLI_SHARDS_INDEXER_H_
