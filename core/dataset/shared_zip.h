// Zips that feeds share. A zip takes memory for the names and a sample of its features. Making a
// zip takes time for each shard. So if a peer opens many feeds that differ, for example, only in
// their seed, all of these feeds get the same zip.
//
// Thread-safe: one table for the process, with a lock.
#ifndef SYSTOLE_CORE_DATASET_SHARED_ZIP_H_
#define SYSTOLE_CORE_DATASET_SHARED_ZIP_H_

#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "core/dataset/dataset.h"

namespace systole {

// The zip of these members with these prefixes, in this order. If nobody in the process uses this
// zip, it is made (Dataset::Zip()). When nobody uses it any more, it is freed. If two threads make
// the zip at the same time, one of the two zips is kept. Errors are those of Dataset::Zip().
absl::StatusOr<std::shared_ptr<const Dataset>> SharedZip(std::vector<ZippedMember> members);

}  // namespace systole

#endif  // SYSTOLE_CORE_DATASET_SHARED_ZIP_H_
