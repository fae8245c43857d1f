// Opens a shard that must be good.
//
// Thread-compatible.
#ifndef SYSTOLE_TESTS_CORE_RECORD_MUST_OPEN_H_
#define SYSTOLE_TESTS_CORE_RECORD_MUST_OPEN_H_

#include <memory>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "core/record/shard_formats.h"
#include "gmock/gmock.h"
#include "tests/status_matchers.h"

namespace systole {

inline std::unique_ptr<RecordSource> MustOpen(const std::string& path,
                                              const ShardOptions& options = {}) {
  absl::StatusOr<std::unique_ptr<RecordSource>> shard = OpenShard(path, options);
  EXPECT_THAT(shard, IsOk());
  return *std::move(shard);
}

}  // namespace systole

#endif  // SYSTOLE_TESTS_CORE_RECORD_MUST_OPEN_H_
