#include "core/plan/read_blocks.h"

#include <algorithm>

#include "core/record/source/record_source.h"

namespace systole {
namespace {

// The first record of [begin, end) whose bytes begin at `offset` or later; `end` if there is none.
int64_t FirstFrom(const RecordSource& shard, int64_t begin, int64_t end, uint64_t offset) {
  while (begin < end) {
    const int64_t middle = begin + (end - begin) / 2;
    if (shard.span(middle).offset < offset) {
      begin = middle + 1;
    } else {
      end = middle;
    }
  }
  return begin;
}

}  // namespace

ReadBlocks::ReadBlocks(const Order& order, const Dataset& dataset, bool keeps_all)
    : dataset_(dataset), run_bytes_(kRunBytes) {
  const OrderSpec& spec = order.spec();
  if (spec.mode == ShuffleMode::kGlobal) run_bytes_ = keeps_all ? kKeptRunBytes : 0;
  // Blocks of a selection or of a mixture are not runs of the dataset's records.
  const bool whole = spec.selection == nullptr && spec.mixture == nullptr;
  if (spec.mode == ShuffleMode::kWindow && whole) window_block_ = spec.block_records;
}

ReadBlock ReadBlocks::BlockOf(const ShardPlace& place, int64_t record) const {
  const RecordSource& shard = *dataset_.shards()[static_cast<size_t>(place.shard)];
  int64_t first = place.index;
  int64_t end = place.index + 1;
  if (run_bytes_ > 0 && !shard.ReadsEachRecord()) {
    first = 0;
    end = shard.num_records();
    if (window_block_ > 0) {
      const int64_t in_block = record % window_block_;
      first = std::max(first, place.index - in_block);
      end = std::min(end, place.index - in_block + window_block_);
    }
    const uint64_t run = shard.span(place.index).offset / run_bytes_;
    first = FirstFrom(shard, first, place.index, run * run_bytes_);
    end = FirstFrom(shard, place.index + 1, end, (run + 1) * run_bytes_);
  }
  // A record that is never read may be of any size. Of a run, only the last one can be larger.
  if (end - 1 > place.index && shard.IsTooLarge(end - 1)) --end;
  const uint64_t offset = shard.span(first).offset;
  const RecordSpan last = shard.span(end - 1);
  return {.shard = place.shard,
          .first = first,
          .last = end - 1,
          .offset = offset,
          .size = last.offset + last.size - offset};
}

}  // namespace systole
