// Where `systole pack` writes: the shards of a prefix, the labels.txt of their folder, and their
// manifest. The folder is on this machine or in a bucket.
//
// Thread-compatible; calls of CreateShard() may be concurrent.
#ifndef SYSTOLE_CLIENT_CLI_SHARDS_PACK_OUTPUT_H_
#define SYSTOLE_CLIENT_CLI_SHARDS_PACK_OUTPUT_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "client/shard_set/shard_set.h"
#include "core/compression/compression.h"
#include "core/dataset/manifest.h"
#include "core/record/tfrecord/record_writer.h"

namespace systole {

class PackOutput {
 public:
  // FailedPrecondition if the store of `prefix` can only be read.
  static absl::StatusOr<PackOutput> Create(const std::string& prefix);

  const std::string& labels_path() const { return labels_path_; }
  const std::string& manifest_path() const { return set_.manifest_path(); }

  // AlreadyExists if there is a labels.txt with another text. In a bucket this function writes
  // labels.txt at once, so that a missing permission is found before all images are read.
  absl::Status BeginWith(const std::string& labels);

  // Makes the folder, and removes the old manifest, which describes other shards. AlreadyExists if
  // the folder holds shards of the prefix that are not among `shards`.
  absl::Status MakeRoomFor(const std::vector<std::string>& shards);

  absl::StatusOr<RecordWriter> CreateShard(const std::string& path, Compression compression) const {
    return set_.CreateShard(path, compression);
  }

  // Writes labels.txt and the manifest.
  absl::Status Finish(absl::Span<const ShardCount> shards);

  // Removes `shards`. In a bucket, also removes what BeginWith() and Finish() wrote. But labels.txt
  // stays if the folder has shards or a manifest of another run, which may need labels.txt.
  // Returns `error`, the reason for the removal, with a list of what could not be removed. Does not
  // stop if the thread is interrupted. A server that does not answer is not asked again.
  absl::Status Undo(const absl::Status& error, absl::Span<const ShardCount> shards) const;

 private:
  explicit PackOutput(ShardSet set);

  // Whether no other run has shards or a manifest in the folder. `ours` are the shards that this
  // run has removed.
  absl::StatusOr<bool> IsAloneInFolder(absl::Span<const ShardCount> ours) const;

  ShardSet set_;
  std::string labels_path_;
  std::string labels_;
  // Whether BeginWith() wrote labels.txt or may have written it. This is so only in a bucket. If
  // true, Undo() may remove the file.
  bool wrote_labels_ = false;
};

}  // namespace systole

#endif  // SYSTOLE_CLIENT_CLI_SHARDS_PACK_OUTPUT_H_
