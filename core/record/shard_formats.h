// The formats that shards may have, and the only way to open a shard.
//
// Thread-safe: no state.
#ifndef SYSTOLE_CORE_RECORD_SHARD_FORMATS_H_
#define SYSTOLE_CORE_RECORD_SHARD_FORMATS_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "core/record/source/record_source.h"
#include "core/record/source/shard_format.h"

namespace systole {

// All formats. A shard has the first format whose bytes it begins with. If there is none, it has
// the first format whose ending its name has. If there is none either, it has the first of all.
absl::Span<const ShardFormat* const> ShardFormats();

// Opens the shard `path`: undoes its compression, finds its format, reads its index or builds it.
//   InvalidArgument   an option is out of range.
//   PermissionDenied  with IndexUse::kRebuild: an index file cannot be written.
// Also the errors of OpenShardFile() and of ShardFormat::open.
absl::StatusOr<std::unique_ptr<RecordSource>> OpenShard(const std::string& path,
                                                        const ShardOptions& options = {});

}  // namespace systole

#endif  // SYSTOLE_CORE_RECORD_SHARD_FORMATS_H_
