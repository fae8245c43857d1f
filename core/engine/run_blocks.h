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

// What must be read for a run, each range once.
struct RunUses {
  // The indexes that must be read first; see RecordSource::unread_index(). Each is a block of 0
  // bytes.
  std::vector<BlockUse> indexes;
  // The blocks of the records whose places are known. No block is read for a record that is too
  // large, or whose shard is on this machine or has an index that could not be read.
  std::vector<BlockUse> blocks;
};
// `keeps_all` as in ReadBlocks.
RunUses UsesOf(const FeedPlan& plan, int64_t step, int core, const ExampleRange& examples,
               bool keeps_all);

class RunBlocks {
 public:
  // `blocks`: the blocks of the run's uses, as BlockReader has read them. `index_errors`: the
  // errors of reading the run's indexes.
  explicit RunBlocks(std::vector<BlockPtr> blocks, std::vector<absl::Status> index_errors = {});

  // The bytes of `span` (a record or a piece) of `source`, or the error of reading these bytes. The
  // view is valid as long as this object. If no block of the run has these bytes, returns the error
  // of an index that could not be read, perhaps of another shard of the run. If all indexes were
  // read, returns Internal.
  absl::StatusOr<absl::string_view> Find(const ByteSource& source, const RecordSpan& span) const;

 private:
  absl::Status NoBlock() const;

  std::vector<BlockPtr> blocks_;  // By source and offset.
  std::vector<absl::Status> index_errors_;
};

}  // namespace systole

#endif  // SYSTOLE_CORE_ENGINE_RUN_BLOCKS_H_
