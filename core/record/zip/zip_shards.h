// Cuts a zip of datasets into stretches.
//
// Thread-safe: no state.
#ifndef SYSTOLE_CORE_RECORD_ZIP_ZIP_SHARDS_H_
#define SYSTOLE_CORE_RECORD_ZIP_ZIP_SHARDS_H_

#include <memory>
#include <vector>

#include "absl/types/span.h"
#include "core/record/source/record_source.h"
#include "core/record/zip/zip_names.h"

namespace systole {

// The shards of a member, in order.
using ZipShards = absl::Span<const std::shared_ptr<const RecordSource>>;

// The joined records of all members, in stretches (ZipSource) in which no member changes its shard.
// There are at most as many as all members have shards together. Shards without records are left
// out. REQUIRES: each member has the same number of records, and `names` has the members.
std::vector<std::shared_ptr<const RecordSource>> ZippedShards(
    absl::Span<const ZipShards> members, const std::shared_ptr<const ZipNames>& names);

}  // namespace systole

#endif  // SYSTOLE_CORE_RECORD_ZIP_ZIP_SHARDS_H_
