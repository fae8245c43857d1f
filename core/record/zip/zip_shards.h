// Cuts a zip of datasets into stretches.
//
// Thread-safe: no state.
#ifndef SYSTOLE_CORE_RECORD_ZIP_ZIP_SHARDS_H_
#define SYSTOLE_CORE_RECORD_ZIP_ZIP_SHARDS_H_

#include <cstddef>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "core/record/source/record_source.h"
#include "core/record/zip/zip_names.h"

namespace systole {

// The shards of a member, in order.
using ZipShards = absl::Span<const std::shared_ptr<const RecordSource>>;

// The most parts that the stretches of a zip have together. They take some 150 MB.
inline constexpr size_t kMaxZipParts = 1'000'000;

// The joined records of all members, in stretches (ZipSource) in which no member changes its shard.
// The number of stretches is at most the number of shards of all members together. Shards without
// records are left out. REQUIRES: each member has the same number of records, and `names` has the
// members.
//   InvalidArgument  the stretches would have more than `max_parts` parts.
absl::StatusOr<std::vector<std::shared_ptr<const RecordSource>>> ZippedShards(
    absl::Span<const ZipShards> members, const std::shared_ptr<const ZipNames>& names,
    size_t max_parts = kMaxZipParts);

}  // namespace systole

#endif  // SYSTOLE_CORE_RECORD_ZIP_ZIP_SHARDS_H_
