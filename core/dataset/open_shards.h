// Opens the shards of a dataset, and compares them with manifests and expected numbers.
//
// Thread-safe: no state.
#ifndef SYSTOLE_CORE_DATASET_OPEN_SHARDS_H_
#define SYSTOLE_CORE_DATASET_OPEN_SHARDS_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "core/record/source/record_source.h"
#include "core/record/source/shard_format.h"

namespace systole {

// The content that a dataset should have. A comparison with it shows whether a shard or record is
// lost.
struct ExpectedContent {
  // Records of all shards together. 0: any number.
  int64_t records = 0;
  // Sizes of the shards' files, added up. 0: any number.
  int64_t bytes = 0;
};

using OpenedShards = std::vector<std::unique_ptr<const RecordSource>>;

// The shards of the dataset `name`, as Dataset::Open() describes them and with its errors. `note`
// is Dataset::note().
absl::StatusOr<OpenedShards> OpenShards(absl::string_view name,
                                        absl::Span<const std::string> patterns,
                                        const ShardOptions& options,
                                        const ExpectedContent& expected, std::string& note);

}  // namespace systole

#endif  // SYSTOLE_CORE_DATASET_OPEN_SHARDS_H_
