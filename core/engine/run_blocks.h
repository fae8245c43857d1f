// The bytes of a run's records, in blocks that were read ahead.
//
// Thread-compatible: immutable. Holds the blocks, which stay in memory as long as this object.
#ifndef SYSTOLE_CORE_ENGINE_RUN_BLOCKS_H_
#define SYSTOLE_CORE_ENGINE_RUN_BLOCKS_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "core/engine/pending_slice.h"
#include "core/fetch/block.h"
#include "core/plan/feed_plan.h"
#include "core/record/source/record_index.h"
#include "core/storage/byte_source.h"

namespace systole {

// The indexes that must be read before BlocksOf() the run can be asked
// (RecordSource::unread_index()), each once, as blocks of no bytes.
std::vector<BlockUse> UnreadIndexesOf(const FeedPlan& plan, int64_t step, int core,
                                      const ExampleRange& examples);

// The blocks that a run needs, each once. `keeps_all` as in ReadBlocks. Records of shards at hand
// need none, and neither do records of shards whose index could not be read.
std::vector<BlockUse> BlocksOf(const FeedPlan& plan, int64_t step, int core,
                               const ExampleRange& examples, bool keeps_all);

class RunBlocks {
 public:
  // What BlockReader has read for BlocksOf() the run, and the errors of its UnreadIndexesOf().
  explicit RunBlocks(std::vector<BlockPtr> blocks, std::vector<absl::Status> index_errors = {});

  // The bytes of a span of `source`, a record or a piece, or why they could not be read. A view as
  // long as this lives. Internal if the run has no such block. If an index could not be read, an
  // error of one, which may be that of another shard of the run.
  absl::StatusOr<absl::string_view> Find(const ByteSource& source, const RecordSpan& span) const;

 private:
  absl::Status NoBlock() const;

  std::vector<BlockPtr> blocks_;  // By source and offset.
  std::vector<absl::Status> index_errors_;
};

}  // namespace systole

#endif  // SYSTOLE_CORE_ENGINE_RUN_BLOCKS_H_
