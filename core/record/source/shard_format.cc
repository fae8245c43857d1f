#include "core/record/source/shard_format.h"

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace systole {

absl::Status CheckShardOptions(const ShardOptions& options) {
  if (options.max_record_bytes >= 0) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("ShardOptions.max_record_bytes is ", options.max_record_bytes, ", want >= 0"));
}

}  // namespace systole
