// Joins datasets record by record.
//
// Thread-safe: no state.
#ifndef SYSTOLE_CORE_RECORD_ZIP_ZIP_SHARDS_H_
#define SYSTOLE_CORE_RECORD_ZIP_ZIP_SHARDS_H_

#include <cstddef>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "core/record/source/record_source.h"
#include "core/record/zip/zip_names.h"
#include "core/record/zip/zip_source.h"

namespace systole {

// The most sources into which the records of a zip are split. Each source takes less than 1 KB.
inline constexpr size_t kMaxZipSources = 1000;

// The joined records of all members. They lie in one source (ZipSource), or in several if shards of
// a member have several formats: a source ends where the format of any member changes. The memory
// does not depend on how many shards or records there are. O(shards + sources * members). REQUIRES:
// each member has the same number of records, and `names` was made for these members.
//   InvalidArgument  there would be more than `max_sources` sources.
absl::StatusOr<std::vector<std::shared_ptr<const RecordSource>>> ZippedShards(
    std::vector<ZipMember> members, const std::shared_ptr<const ZipNames>& names,
    size_t max_sources = kMaxZipSources);

}  // namespace systole

#endif  // SYSTOLE_CORE_RECORD_ZIP_ZIP_SHARDS_H_
