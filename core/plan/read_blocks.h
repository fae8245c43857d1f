// Which bytes of a far shard (a shard that is not on this machine) are read together. Each record
// that can be read ahead is in one block: a run of neighbours that one request fetches, and that is
// kept or dropped as a whole. The length of the blocks depends on the order, because a block should
// have only bytes that the feed needs soon:
//   no shuffle   runs of some MiB: the feed needs the whole run next.
//   WINDOW       runs of some MiB, too. If the feed has a whole dataset, a run also ends where one
//                of the shuffle's own blocks (OrderSpec::block_records) ends, so it has no bytes
//                that only another window needs.
//   GLOBAL       the record alone. If memory keeps all fetched bytes, runs of some 100 KiB, because
//                small requests are slow, and the feed needs the neighbours later.
//
// If each record is a file of its own, records are always read alone.
//
// The file is divided into stretches of equal length. A run has all records that begin in one
// stretch. So no table of blocks is needed: two binary searches of the index find the block of a
// record.
//
// In a compressed file a block has the same length, but it is a run of pieces
// (core/storage/stored_pieces.h) instead of records. A record that lies in the pieces of two blocks
// needs both blocks. If records are read in order, each piece is read once. With GLOBAL, if not all
// bytes are kept, a piece is read once for each record that lies in it.
//
// Thread-compatible value type.
#ifndef SYSTOLE_CORE_PLAN_READ_BLOCKS_H_
#define SYSTOLE_CORE_PLAN_READ_BLOCKS_H_

#include <cstddef>
#include <cstdint>

#include "absl/container/inlined_vector.h"
#include "core/order/order.h"
#include "core/record/source/record_source.h"

namespace systole {

// Bytes of RecordSource::far_bytes(), and the records [first, last] of the shard that need them.
struct ReadBlock {
  const RecordSource* shard = nullptr;
  int64_t first = 0;
  int64_t last = 0;
  uint64_t offset = 0;
  uint64_t size = 0;

  int64_t num_records() const { return last - first + 1; }
  friend bool operator==(const ReadBlock&, const ReadBlock&) = default;
};

class ReadBlocks {
 public:
  // The length of a run in bytes, with WINDOW and without a shuffle. A run of this length is long
  // enough that a request's latency is small beside the time of the transfer, and short enough that
  // a window has several runs.
  static constexpr uint64_t kRunBytes = uint64_t{4} << 20;
  // The length of a run in bytes, with GLOBAL, if memory keeps all fetched bytes.
  static constexpr uint64_t kKeptRunBytes = uint64_t{256} << 10;

  // `keeps_all`: memory keeps all bytes of the dataset that were fetched.
  ReadBlocks(const Order& order, bool keeps_all);

  // The blocks of a record. A record of a compressed shard may have several blocks. Any other
  // record has one.
  using Blocks = absl::InlinedVector<ReadBlock, 2>;
  // The blocks of record `index` of `shard`. This record is record number `record` of the dataset
  // or, in a zip, a part of that record.
  // REQUIRES: the shard has far_bytes(), and the record is not too large to be read. O(log records)
  // for each block.
  Blocks BlocksOf(const RecordSource& shard, int64_t index, int64_t record) const;

 private:
  // Records [first, end) of a shard.
  struct Records {
    int64_t first = 0;
    int64_t end = 0;
  };

  // The records that may share blocks with record `index`.
  Records SharingWith(const RecordSource& shard, int64_t index, int64_t record) const;
  // Adds the blocks with those pieces of record `index` that are of kind `kind`, an index into
  // PieceRanges. `sharing` is the result of SharingWith().
  void AddBlocks(const RecordSource& shard, int64_t index, const Records& sharing, size_t kind,
                 Blocks& blocks) const;

  uint64_t run_bytes_;        // 0: each record by itself.
  int64_t window_block_ = 0;  // Records of a block of WINDOW; 0: runs may end anywhere.
};

}  // namespace systole

#endif  // SYSTOLE_CORE_PLAN_READ_BLOCKS_H_
