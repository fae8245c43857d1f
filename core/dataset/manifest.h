// Compares the shards that were opened with the manifests beside them. A manifest says which shards
// there are and how many records each shard has. Two kinds of manifest are read:
//   *.manifest         a ShardManifest (proto/systole/v1/manifest.proto): `systole pack` writes one
//   dataset_info.json  a file of TensorFlow Datasets, with the shard lengths of its splits
//
// Thread-safe: no state.
#ifndef SYSTOLE_CORE_DATASET_MANIFEST_H_
#define SYSTOLE_CORE_DATASET_MANIFEST_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "core/storage/store.h"

namespace systole {

// A shard that was opened.
struct ShardCount {
  std::string path;  // As ListShards() gave it.
  int64_t records = 0;
  uint64_t bytes = 0;  // Size of the file.
};

// A shard that differs from what a manifest says.
struct ShardDifference {
  std::string shard;     // Base name.
  std::string manifest;  // Base name of the manifest.
  bool missing = false;  // The file is not there, although a pattern would match its name.
  std::string text;      // 'shard "a" has 28 records .., "x.manifest" says ..'.
};

// The most differences that one call lists. The limit is needed because a manifest from elsewhere
// could otherwise fill the memory.
inline constexpr size_t kMaxShardDifferences = 100;

// Compares `opened`, the shards that ListShards(patterns) names, with the manifests in their
// folders. Ignores a shard that no manifest lists, a shard in a manifest that matches no pattern,
// and a missing shard for which the manifest says 0 records. The differences are in the order of
// the folders, of the manifests in a folder, and of the entries in a manifest. The folders in
// `listed` have been listed already, and are not listed again.
//   InvalidArgument    a manifest is malformed. The message has its base name and the field.
//   ResourceExhausted  a file is larger than a manifest may be.
//   PermissionDenied   a manifest may not be read.
// Also the errors of listing a folder. No error names a folder of this machine.
absl::StatusOr<std::vector<ShardDifference>> CompareWithManifests(
    absl::Span<const std::string> patterns, absl::Span<const ShardCount> opened,
    absl::Span<const FolderList> listed = {});

// OK if there is no difference. NotFound if the first difference is a missing shard. DataLoss if
// the first difference is of another kind. The message has the first difference, the number of
// further differences, and what to do.
absl::Status CheckNoDifferences(absl::Span<const ShardDifference> differences);

// The text of a manifest that lies in the folder of these shards.
std::string ManifestText(absl::Span<const ShardCount> shards);

// One entry of a manifest's list. Public for tests and fuzzers.
struct ListedShard {
  std::string name;
  int64_t records = 0;
  int64_t bytes = -1;  // -1: not given.
};
// The entries of a manifest's text. `source` is the file's base name, and decides the manifest's
// kind.
absl::StatusOr<std::vector<ListedShard>> ParseManifest(absl::string_view text,
                                                       absl::string_view source);

}  // namespace systole

#endif  // SYSTOLE_CORE_DATASET_MANIFEST_H_
