#include "core/engine/run_blocks.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <utility>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "core/order/order.h"
#include "core/order/shard_map.h"
#include "core/plan/read_blocks.h"
#include "core/record/source/record_source.h"

namespace systole {
namespace {

// The order in which RunBlocks keeps blocks. If several blocks begin at the same byte, the largest
// is last. std::less can compare pointers into different arrays.
bool IsBefore(const BlockRange& a, const BlockRange& b) {
  if (a.source != b.source) return std::less<>()(a.source, b.source);
  return a.offset != b.offset ? a.offset < b.offset : a.size < b.size;
}

// Puts the uses in order. Several uses of one range become one, and their records are added up.
void Join(std::vector<BlockUse>& uses) {
  std::sort(uses.begin(), uses.end(),
            [](const auto& a, const auto& b) { return IsBefore(a.range, b.range); });
  size_t kept = 0;
  for (const BlockUse& use : uses) {
    if (kept > 0 && uses[kept - 1].range == use.range) {
      uses[kept - 1].records += use.records;
    } else {
      uses[kept++] = use;
    }
  }
  uses.resize(kept);
}

// Adds what must be read for a part of the dataset's record `record`.
void AddUses(const RecordSource::Part& part, int64_t record, const ReadBlocks& blocks,
             RunUses& uses) {
  const RecordSource& source = *part.source;
  if (source.far_bytes() == nullptr) return;
  if (const ByteSource* const index = source.unread_index(); index != nullptr) {
    uses.indexes.push_back({.range = {.source = index}});
    return;
  }
  if (source.IsTooLarge(part.record)) return;
  for (const ReadBlock& block : blocks.BlocksOf(source, part.record, record)) {
    uses.blocks.push_back(
        {.range = {.source = source.far_bytes(), .offset = block.offset, .size = block.size},
         .records = 1,
         .records_in_block = block.num_records()});
  }
}

}  // namespace

RunUses UsesOf(const FeedPlan& plan, int64_t step, int core, const ExampleRange& examples,
               bool keeps_all) {
  const Dataset& dataset = plan.dataset();
  const ReadBlocks blocks(plan.order(), keeps_all);
  std::vector<Place> places(static_cast<size_t>(examples.size()));
  plan.order().PlacesOnCore(step, core, examples.begin, absl::MakeSpan(places));
  RunUses uses;
  for (const Place& place : places) {
    if (!place.record.has_value()) continue;
    const ShardPlace in_shard = dataset.map().Find(*place.record);
    const RecordSource& shard = *dataset.shards()[static_cast<size_t>(in_shard.shard)];
    for (size_t part = 0; part < shard.num_parts(); ++part) {
      AddUses(shard.PartOf(in_shard.index, part), *place.record, blocks, uses);
    }
  }
  Join(uses.indexes);
  Join(uses.blocks);
  return uses;
}

RunBlocks::RunBlocks(std::vector<BlockPtr> blocks, std::vector<absl::Status> index_errors)
    : blocks_(std::move(blocks)), index_errors_(std::move(index_errors)) {
  std::sort(blocks_.begin(), blocks_.end(),
            [](const BlockPtr& a, const BlockPtr& b) { return IsBefore(a->range(), b->range()); });
}

absl::Status RunBlocks::NoBlock() const {
  return index_errors_.empty() ? absl::InternalError("the run has no block of a record")
                               : index_errors_.front();
}

absl::StatusOr<absl::string_view> RunBlocks::Find(const ByteSource& source,
                                                  const RecordSpan& span) const {
  // Finds the last block that holds the whole span. If the span is a piece of a compressed file,
  // several blocks may hold it.
  const BlockRange wanted = {
      .source = &source, .offset = span.offset, .size = std::numeric_limits<uint64_t>::max()};
  auto after = std::upper_bound(
      blocks_.begin(), blocks_.end(), wanted,
      [](const BlockRange& a, const BlockPtr& b) { return IsBefore(a, b->range()); });
  while (after != blocks_.begin()) {
    const Block& block = **--after;
    const BlockRange& range = block.range();
    if (range.source != &source) break;
    if (span.offset - range.offset + span.size > range.size) continue;
    if (!block.status().ok()) return block.status();
    return block.bytes().substr(span.offset - range.offset, span.size);
  }
  return NoBlock();
}

}  // namespace systole
