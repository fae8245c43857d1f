#include "core/plan/read_blocks.h"

#include <algorithm>
#include <tuple>

#include "core/record/source/record_source.h"
#include "core/storage/stored_pieces.h"

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

// The first piece of [begin, end) that begins at `offset` or later; `end` if there is none.
int64_t FirstFrom(const StoredPieces& pieces, int64_t begin, int64_t end, uint64_t offset) {
  while (begin < end) {
    const int64_t middle = begin + (end - begin) / 2;
    if (pieces.PlaceOf(middle).begin < offset) {
      begin = middle + 1;
    } else {
      end = middle;
    }
  }
  return begin;
}

// The pieces of a compressed shard in which records [first, last] lie.
PieceRanges PiecesOf(const RecordSource& shard, int64_t first, int64_t last) {
  const RecordSpan end = shard.span(last);
  return shard.far_pieces()->PiecesOf(
      {.begin = shard.span(first).offset, .end = end.offset + end.size});
}

}  // namespace

ReadBlocks::ReadBlocks(const Order& order, bool keeps_all) : run_bytes_(kRunBytes) {
  const OrderSpec& spec = order.spec();
  if (spec.mode == ShuffleMode::kGlobal) run_bytes_ = keeps_all ? kKeptRunBytes : 0;
  // In a selection or a mixture, a block of the shuffle is not a run of the dataset's records.
  const bool whole = spec.selection == nullptr && spec.mixture == nullptr;
  if (spec.mode == ShuffleMode::kWindow && whole) window_block_ = spec.block_records;
}

ReadBlocks::Records ReadBlocks::SharingWith(const RecordSource& shard, int64_t index,
                                            int64_t record) const {
  if (run_bytes_ == 0 || shard.ReadsEachRecord()) {
    return {.first = index, .end = index + 1};
  }
  Records records = {.first = 0, .end = shard.num_records()};
  if (window_block_ > 0) {
    const int64_t in_block = record % window_block_;
    records.first = std::max(records.first, index - in_block);
    records.end = std::min(records.end, index - in_block + window_block_);
  }
  return records;
}

ReadBlocks::Blocks ReadBlocks::BlocksOf(const RecordSource& shard, int64_t index,
                                        int64_t record) const {
  auto [first, end] = SharingWith(shard, index, record);
  if (shard.far_pieces() != nullptr) {
    Blocks blocks;
    for (size_t kind = 0; kind < std::tuple_size_v<PieceRanges>; ++kind) {
      AddBlocks(shard, index, {.first = first, .end = end}, kind, blocks);
    }
    return blocks;
  }
  if (end - first > 1) {
    const uint64_t run = shard.span(index).offset / run_bytes_;
    first = FirstFrom(shard, first, index, run * run_bytes_);
    end = FirstFrom(shard, index + 1, end, (run + 1) * run_bytes_);
  }
  // Leaves out a record that is never read, because it is too large. Only the last record of a run
  // can be too large: the record after it begins beyond the stretch of bytes of this run.
  if (end - 1 > index && shard.IsTooLarge(end - 1)) --end;
  const uint64_t offset = shard.span(first).offset;
  const RecordSpan last = shard.span(end - 1);
  return {{.shard = &shard,
           .first = first,
           .last = end - 1,
           .offset = offset,
           .size = last.offset + last.size - offset}};
}

void ReadBlocks::AddBlocks(const RecordSource& shard, int64_t index, const Records& sharing,
                           size_t kind, Blocks& blocks) const {
  const StoredPieces& pieces = *shard.far_pieces();
  const PieceRange needed = PiecesOf(shard, index, index)[kind];
  const bool alone = sharing.end - sharing.first == 1;
  const PieceRange all = alone ? needed : PiecesOf(shard, sharing.first, sharing.end - 1)[kind];
  PieceRange block;
  for (int64_t piece = needed.begin; piece < needed.end; piece = block.end) {
    block = all;
    if (!alone) {
      const uint64_t run = pieces.PlaceOf(piece).begin / run_bytes_;
      block = {.begin = FirstFrom(pieces, all.begin, piece, run * run_bytes_),
               .end = FirstFrom(pieces, piece + 1, all.end, (run + 1) * run_bytes_)};
    }
    const ByteStretch bytes = pieces.BytesOf(block);
    const uint64_t offset = pieces.PlaceOf(block.begin).begin;
    // The block has the record that begins at or before its first byte, and all records that begin
    // at a later byte of the block.
    blocks.push_back({.shard = &shard,
                      .first = FirstFrom(shard, sharing.first + 1, index + 1, bytes.begin + 1) - 1,
                      .last = FirstFrom(shard, index + 1, sharing.end, bytes.end) - 1,
                      .offset = offset,
                      .size = pieces.PlaceOf(block.end - 1).end - offset});
  }
}

}  // namespace systole
