// Checks shards from end to end, for `systole verify`. Checks each record for damage, as far as the
// shard's format shows damage (TFRecord: framing and both CRCs). Each record must hold features,
// and every value that looks like a JPEG must decode. Index files are not used.
//
// Thread-safe: no state.
#ifndef SYSTOLE_CLIENT_CLI_SHARDS_VERIFIER_H_
#define SYSTOLE_CLIENT_CLI_SHARDS_VERIFIER_H_

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "core/dataset/manifest.h"

namespace systole {

struct VerifyOptions {
  // Checks only framing and checksums. For records whose payloads hold no features.
  bool framing_only = false;
  int threads = 1;  // At least 1.
};

struct BadRecord {
  std::string shard;    // Path.
  int64_t record = 0;   // Its number in the shard, from 0.
  uint64_t offset = 0;  // Where the record begins in the shard, in bytes.
  std::string file;     // The file, "rose/1.jpg", in a group of files; otherwise empty.
  std::string place;    // RecordSource::PlaceOf().
  std::string cause;
};

struct VerifyReport {
  std::vector<ShardCount> shards;
  // All files together are the only shard, a group of files. Manifests do not list groups.
  bool is_group = false;
  // Includes bad records. A stretch of bytes without a readable record header counts as one record.
  int64_t records = 0;
  uint64_t bytes = 0;
  int64_t jpegs = 0;  // JPEGs that decoded without an error.
  // How many values are bytes but not JPEGs, by their kind (KindOfBytes). Their content was not
  // checked and may be damaged. Empty with `framing_only`.
  std::map<std::string, int64_t> not_decoded;
  std::vector<BadRecord> bad;  // Sorted by shard, then by record.
  // How many entries of `bad` are stretches without a readable header. Such a stretch may have been
  // several records.
  int64_t stretches = 0;
};

// `paths` are files. All files that hold one record each, such as images, form one shard
// (GroupShards()). Damage is in the report and is not an error. `progress` is called from any
// thread, each time with the number of bytes that were just checked. These numbers add up to the
// shards' sizes. A file of such a group is read twice, and each time half of the file's size is
// reported.
//   Errors are those of opening and reading the files, and FailedPrecondition if a file changed.
absl::StatusOr<VerifyReport> Verify(absl::Span<const std::string> paths,
                                    const VerifyOptions& options,
                                    absl::FunctionRef<void(int64_t bytes)> progress);

}  // namespace systole

#endif  // SYSTOLE_CLIENT_CLI_SHARDS_VERIFIER_H_
