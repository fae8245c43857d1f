// A set of shards that this process writes: the shards `PREFIX-..tfrecord`, and their manifest
// `PREFIX.manifest`, in a folder of this machine or in a bucket. `systole pack` and Python's
// systole.write write such sets.
//
// Thread-compatible; calls of CreateShard() may be concurrent.
#ifndef SYSTOLE_CLIENT_SHARD_SET_SHARD_SET_H_
#define SYSTOLE_CLIENT_SHARD_SET_SHARD_SET_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "core/compression/compression.h"
#include "core/dataset/manifest.h"
#include "core/record/tfrecord/record_writer.h"

namespace systole {

// "PREFIX-00003-of-00016.tfrecord".
std::string NumberedShardPath(absl::string_view prefix, int64_t shard, int64_t shards);
// Whether `rest`, the part of a shard's name after "PREFIX-", has the form that NumberedShardPath()
// gives it.
bool IsNumberedShard(absl::string_view rest);

class ShardSet {
 public:
  // FailedPrecondition if the store of `prefix` can only be read.
  static absl::StatusOr<ShardSet> Create(const std::string& prefix);

  // Whether the set lies on this machine.
  bool is_local() const { return is_local_; }
  const std::string& folder() const { return folder_; }  // With '/' at its end.
  const std::string& manifest_path() const { return manifest_path_; }

  // Makes the folder, and removes unfinished files of `shards` that a killed run left.
  //   AlreadyExists  the folder has a shard of another set with this prefix, so a glob over the
  //                  prefix would match the shards of two sets. A file "PREFIX-REST.tfrecord" is
  //                  such a shard if it is not among `shards`, and of_set("REST.tfrecord") is true.
  absl::Status MakeRoomFor(const std::vector<std::string>& shards,
                           absl::FunctionRef<bool(absl::string_view rest)> of_set) const;

  // Removes the old manifest, which describes other shards. Call this before the first shard gets
  // its name.
  void RemoveOldManifest() const;

  absl::StatusOr<RecordWriter> CreateShard(const std::string& path, Compression compression) const;

  // Whether a file may exist after its write or Close() returned `closed`: if this succeeded or was
  // cancelled, or if the server's last answer was lost.
  static bool MayBeThere(const absl::Status& closed);

  // Writes a whole file of the set. In a bucket, sets `may_be_there` to whether the file may exist
  // now. For a set on this machine, does not change `may_be_there`.
  absl::Status WriteWhole(const std::string& path, absl::string_view text,
                          bool& may_be_there) const;
  absl::Status WriteManifest(absl::Span<const ShardCount> shards);
  // Whether WriteManifest() may have made an object in a bucket.
  bool wrote_manifest() const { return wrote_manifest_; }

  // What Remove() could not remove.
  struct Leftover {
    std::vector<std::string> files;  // As they are shown to a person.
    absl::Status outage;             // The error of a server that did not answer.
  };
  // Removes the shards, and in a bucket the manifest that WriteManifest() wrote. Goes on even if
  // the thread is interrupted. If a server does not answer, no further request is sent to it.
  Leftover Remove(absl::Span<const ShardCount> shards) const;
  // Returns `error`, the reason for the removal, and adds to its message the first files in `left`
  // and the number of the others. If `error` is Cancelled and no file is left, the message says so.
  static absl::Status WithLeft(const absl::Status& error, std::vector<std::string> left);

  // Whether `removed`, the result of RemoveStored(), means that the file is gone.
  static bool IsGoneAfter(const absl::Status& removed);

 private:
  explicit ShardSet(const std::string& prefix);

  std::string prefix_;
  std::string folder_;
  bool is_local_;
  std::string manifest_path_;
  bool wrote_manifest_ = false;  // Always false on this machine.
};

}  // namespace systole

#endif  // SYSTOLE_CLIENT_SHARD_SET_SHARD_SET_H_
